"""LLM agents as reactive streams: a run is an Observable of events, state is a fold over it."""

from rxagent import errors, events, hooks, messages, operators
from rxagent.engine import Agent, AgentContext, Limits, LoopConfig, Retry, Run, RunResult, run_loop
from rxagent.hooks import Hooks
from rxagent.messages import ToolResult
from rxagent.state import AgentState, reduce
from rxagent.tools import ToolContext, tool

__all__ = [
    "Agent",
    "AgentContext",
    "AgentState",
    "Hooks",
    "Limits",
    "LoopConfig",
    "Retry",
    "Run",
    "RunResult",
    "ToolContext",
    "ToolResult",
    "errors",
    "events",
    "hooks",
    "messages",
    "operators",
    "reduce",
    "run_loop",
    "tool",
]
