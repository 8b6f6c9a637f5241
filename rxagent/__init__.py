"""LLM agents as reactive streams: a run is an Observable of events, state is a fold over it."""

from rxagent import errors, events, messages
from rxagent.state import AgentState, reduce

__all__ = ["AgentState", "errors", "events", "messages", "reduce"]
