"""`Exit` and `BreakLoop`: results with which a tool ends more than its own call."""

from collections.abc import Sequence

from rxagent.messages import ToolResult, UserPart


def Exit(content: str | UserPart | Sequence[UserPart | str] = (), details: object = None) -> ToolResult:  # noqa: N802 - reads as the result it is
    """A tool's result that ends its agent's run, and every team the agent is a step of.

    It acts up to the nearest agent that runs as a tool, never beyond. ``content``, if there is any, is then
    the agent's answer.
    """
    return ToolResult(content, details, action="exit")


def BreakLoop(content: str | UserPart | Sequence[UserPart | str] = (), details: object = None) -> ToolResult:  # noqa: N802 - as above
    """A tool's result that ends its agent's run, and the nearest `loop` around it with all that is within.

    Without a loop up to the nearest agent that runs as a tool, it is an `Exit`. ``content``, if there is any, is
    then the agent's answer.
    """
    return ToolResult(content, details, action="break_loop")
