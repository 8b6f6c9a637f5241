"""Agents that work together: as tools of one another, by handing over, and in fixed orders.

1. There is no second vocabulary: a team is an `Agent`, its steps are tool calls, its members' events are a child's.
2. A member's transcript is its own; what it needs to know comes in as messages.
3. What is done, asked and still to do is read from the log, so a team is resumed like any agent.
"""

from rxagent.teams.as_tool import AgentTool, as_tool
from rxagent.teams.handoff import HandoffTool, handoff
from rxagent.teams.loop import loop
from rxagent.teams.parallel import parallel
from rxagent.teams.results import BreakLoop, Exit
from rxagent.teams.rounds import StepResult
from rxagent.teams.sequential import sequential

__all__ = [
    "AgentTool",
    "BreakLoop",
    "Exit",
    "HandoffTool",
    "StepResult",
    "as_tool",
    "handoff",
    "loop",
    "parallel",
    "sequential",
]
