"""Names of tools that stand for agents, and the engine's side of their calls."""

import re

from rxagent.engine.host import Host
from rxagent.errors import InvalidTool, UsageError
from rxagent.tools import ToolContext


def tool_name(prefix: str, agent_name: str) -> str:
    """A tool's name for an agent: what a model may not send becomes ``_``, and it is cut at 64 characters."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", f"{prefix}{agent_name}")[:64] or "agent"


def checked_name(name: str) -> str:
    """A name that was given; raises `InvalidTool` where no model may send it."""
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name):
        raise InvalidTool(f"{name!r} can't be a tool's name: use 1 to 64 letters, digits, _ or -")
    return name


def host_of(context: ToolContext) -> Host:
    """The engine's side of a call; raises `UsageError` under a foreign one."""
    if not isinstance(context.host, Host):
        raise UsageError("agents run as tools only in rxagent's own loop, not under a ToolHost of another make")
    return context.host
