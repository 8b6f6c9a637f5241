"""`Block`: one part of an answer in the making, and how its arguments are read."""

from array import array
from bisect import bisect_left, bisect_right
from typing import Literal

from pydantic import JsonValue
from pydantic_core import from_json

from rxagent.messages import AssistantPart, JsonObject, TextPart, ThinkingPart, ToolCall

BlockKind = Literal["text", "thinking", "tool_call"]


def parse_arguments(text: str) -> JsonObject | None:
    """Reads a call's arguments: blank and null are ``{}``, a doubly encoded object is unwrapped once; None: invalid."""
    if not text.strip():
        return {}
    try:
        value: JsonValue = from_json(text, allow_inf_nan=False)
        if isinstance(value, str):
            value = from_json(value, allow_inf_nan=False) if value.strip() else {}
    except ValueError:
        return None
    if value is None:
        return {}
    return value if isinstance(value, dict) else None


class Block:
    """One part in the making: its pieces, and at which position of the draft each came."""

    __slots__ = ("_cache", "arguments", "id", "index", "kind", "name", "opened", "pieces", "positions", "replay")

    def __init__(self, kind: BlockKind, index: int, opened: int) -> None:
        self.kind: BlockKind = kind
        self.index = index
        self.opened = opened
        self.id = ""
        self.name = ""
        self.pieces: list[str] = []
        self.positions = array("Q")
        self.arguments: JsonObject | str | None = None
        self.replay: JsonObject | None = None
        self._cache = ("", 0)

    def text(self, position: int) -> str:
        """The pieces up to a position, joined."""
        positions = self.positions
        count = len(positions)
        if count and positions[-1] > position:
            count = bisect_right(positions, position)
        joined, done = self._cache
        if count < done:
            return "".join(self.pieces[:count])
        if count > done:
            joined = "".join([joined, *self.pieces[done:count]])
            self._cache = (joined, count)
        return joined

    def piece(self, position: int) -> str | None:
        """The piece that came at a position, None if none did."""
        at = bisect_left(self.positions, position)
        return self.pieces[at] if at < len(self.positions) and self.positions[at] == position else None

    def part(self, position: int) -> AssistantPart | None:
        """The part as of a position; a text or thinking part without anything in it is None."""
        text = self.text(position)
        if self.kind == "text":
            return TextPart(text, replay=self.replay) if text or self.replay else None
        if self.kind == "thinking":
            return ThinkingPart(text, replay=self.replay) if text or self.replay else None
        return ToolCall(self.id, self.name, _partial_arguments(text), replay=self.replay)

    def final(self, position: int) -> AssistantPart | None:
        """The finished part: arguments parsed for good."""
        if self.kind != "tool_call":
            return self.part(position)
        given = self.arguments
        if isinstance(given, dict):
            return ToolCall(self.id, self.name, given, replay=self.replay)
        text = self.text(position) if given is None else given
        arguments = parse_arguments(text)
        if arguments is None:
            return ToolCall(self.id, self.name, {}, text, replay=self.replay)
        return ToolCall(self.id, self.name, arguments, replay=self.replay)


def _partial_arguments(text: str) -> JsonObject:
    """As much of unfinished arguments as can be told; an open string is given as far as it came."""
    try:
        value: JsonValue = from_json(text or "{}", allow_partial="trailing-strings")
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
