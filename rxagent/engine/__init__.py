"""What makes events: the loop, its turns and tools, and `Agent` around it."""

from rxagent.engine.agent import Agent
from rxagent.engine.cold import run_loop
from rxagent.engine.config import AgentContext, LoopConfig
from rxagent.engine.limits import Limits, Retry
from rxagent.engine.run import Run, RunResult
from rxagent.engine.session import Journal, Session

__all__ = ["Agent", "AgentContext", "Journal", "Limits", "LoopConfig", "Retry", "Run", "RunResult", "Session", "run_loop"]
