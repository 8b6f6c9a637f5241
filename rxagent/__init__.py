"""LLM agents as reactive streams: a run is an Observable of events, state is a fold over it."""

from rxagent import errors, events, hooks, messages, operators
from rxagent.engine import Agent, AgentContext, Limits, LoopConfig, Retry, Run, RunResult, run_loop
from rxagent.engine.launch import Cancel
from rxagent.hooks import Hooks, approve
from rxagent.messages import ToolResult
from rxagent.runner import Runner
from rxagent.state import AgentState, reduce
from rxagent.teams import BreakLoop, Exit, as_tool, handoff, loop, parallel, sequential
from rxagent.tools import ToolContext, tool

__all__ = [
    "Agent",
    "AgentContext",
    "AgentState",
    "BreakLoop",
    "Cancel",
    "Exit",
    "Hooks",
    "Limits",
    "LoopConfig",
    "Retry",
    "Run",
    "RunResult",
    "Runner",
    "ToolContext",
    "ToolResult",
    "approve",
    "as_tool",
    "errors",
    "events",
    "handoff",
    "hooks",
    "loop",
    "messages",
    "operators",
    "parallel",
    "reduce",
    "run_loop",
    "sequential",
    "tool",
]
