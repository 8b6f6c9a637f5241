"""Turns whatever a tool returns into a `ToolResult`."""

from collections.abc import Sequence
from typing import cast

from pydantic_core import to_json

from rxagent.messages import ImagePart, TextPart, ToolResult, UserPart, to_json_value


def as_result(value: object, tool_name: str) -> ToolResult:
    """Text stays text; None is empty; parts are content; other values become JSON text with the value as details.

    Raises:
        Unserialisable: the value has no JSON form.
    """
    if isinstance(value, ToolResult):
        return value
    if value is None:
        return ToolResult()
    if isinstance(value, str | TextPart | ImagePart):
        return ToolResult(value)
    parts = _parts(value)
    if parts:
        return ToolResult(parts)
    data = to_json_value(value, f"the result of tool {tool_name!r}")
    if isinstance(data, str):
        return ToolResult(data)
    return ToolResult(to_json(data).decode(), data)


def _parts(value: object) -> list[UserPart]:
    """The parts of a list that holds parts, and texts between them, but nothing else."""
    items = cast("Sequence[object]", value) if isinstance(value, list | tuple) else ()
    if not any(isinstance(item, TextPart | ImagePart) for item in items):
        return []
    texts = [TextPart(item) if isinstance(item, str) else item for item in items]
    parts = [item for item in texts if isinstance(item, TextPart | ImagePart)]
    return parts if len(parts) == len(items) else []


def error_result(message: str) -> ToolResult:
    """A result that tells the model what went wrong."""
    return ToolResult(message, is_error=True, summary=message.split("\n", 1)[0][:120])
