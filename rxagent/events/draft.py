"""`Draft`: folds model events into the message so far, at constant cost per delta.

All partial messages of one answer share the draft's growing lists; each knows only its position in
them. Text is joined and arguments are parsed when somebody reads them, and the joined text is cached
in the draft, not in the partial message, so reading at every delta keeps memory linear.
"""

from array import array
from bisect import bisect_left, bisect_right
from types import MappingProxyType
from typing import Literal

from pydantic import JsonValue
from pydantic_core import from_json

from rxagent.events import model as m
from rxagent.messages import (
    AssistantMessage,
    AssistantPart,
    JsonObject,
    StopReason,
    TextPart,
    ThinkingPart,
    ToolCall,
    Usage,
)

BlockKind = Literal["text", "thinking", "tool_call"]


_DELTAS = MappingProxyType({"text": m.text_delta, "thinking": m.thinking_delta, "tool_call": m.tool_call_delta})


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


class _Block:
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


class PartialMessage(AssistantMessage):
    """The message so far: a view of the draft at one position, worked out when it is read."""

    __slots__ = ("draft", "position")
    draft: "Draft"
    position: int

    @property
    def content(self) -> tuple[AssistantPart, ...]:  # pyright: ignore[reportIncompatibleVariableOverride] a view, as all below
        """The parts so far."""
        return self.draft.parts(self.position)

    @property
    def text(self) -> str:
        """The text so far; joined once for all who read it."""
        return self.draft.text("text", self.position)

    @property
    def thinking(self) -> str:
        """The reasoning so far."""
        return self.draft.text("thinking", self.position)

    @property
    def id(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        """As of the draft."""
        return self.draft.id

    @property
    def timestamp(self) -> float:  # pyright: ignore[reportIncompatibleVariableOverride]
        """As of the draft."""
        return self.draft.timestamp

    @property
    def model(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        """As of the draft."""
        return self.draft.model

    @property
    def role(self) -> Literal["assistant"]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Always the assistant's."""
        return "assistant"

    @property
    def stop_reason(self) -> None:  # pyright: ignore[reportIncompatibleVariableOverride]
        """None: it goes on."""
        return None

    @property
    def usage(self) -> None:  # pyright: ignore[reportIncompatibleVariableOverride]
        """None: it isn't known yet."""
        return None

    @property
    def error_message(self) -> None:  # pyright: ignore[reportIncompatibleVariableOverride]
        """None: nothing failed."""
        return None

    @property
    def replay(self) -> None:  # pyright: ignore[reportIncompatibleVariableOverride]
        """None: it comes with the end."""
        return None

    def __reduce__(self) -> tuple[type[AssistantMessage], tuple[object, ...]]:
        raise TypeError("a partial message lives in its stream; pickle the finished one")


# PartialMessage is frozen like its base; its two slots are set from below, once.
_new = object.__new__
_set_draft = PartialMessage.__dict__["draft"].__set__
_set_position = PartialMessage.__dict__["position"].__set__


class Draft:
    """One answer in the making."""

    __slots__ = ("_blocks", "_last", "_open", "_read", "id", "model", "position", "timestamp")

    def __init__(self, id: str, timestamp: float, model: str) -> None:  # noqa: A002 - the message's field
        self.id = id
        self.timestamp = timestamp
        self.model = model
        self.position = 0
        self._blocks: list[_Block] = []
        self._open: dict[tuple[BlockKind, int], _Block] = {}
        self._last: _Block | None = None
        self._read: _Block | None = None

    def message(self) -> PartialMessage:
        """The message as it is now."""
        return self.message_at(self.position)

    def message_at(self, position: int) -> PartialMessage:
        """The message as it was after so many events."""
        message = _new(PartialMessage)
        _set_draft(message, self)
        _set_position(message, position)
        return message

    def delta_at(self, position: int) -> m.TextDelta | m.ThinkingDelta | m.ToolCallDelta:
        """The delta that was the event of this number, counted from 1.

        Raises:
            LookupError: that event was no delta.
        """
        read = self._read
        for block in self._blocks if read is None else (read, *self._blocks):
            piece = block.piece(position)
            if piece is not None:
                self._read = block
                return _DELTAS[block.kind](piece, block.index)
        raise LookupError(f"event {position} of this answer was no delta")

    def add(self, event: m.ModelEvent) -> PartialMessage:
        """Takes one event in and gives the message so far."""
        self.position = position = self.position + 1
        if isinstance(event, m.TextDelta):
            block = self._last
            if block is not None and block.kind == "text" and block.index == event.index:  # _piece, without the call
                block.pieces.append(event.text)
                block.positions.append(position)
            else:
                self._piece("text", event.index, event.text)
        elif isinstance(event, m.ToolCallDelta):
            self._piece("tool_call", event.index, event.arguments)
        elif isinstance(event, m.ThinkingDelta):
            self._piece("thinking", event.index, event.text)
        else:
            self._boundary(event)
        message = _new(PartialMessage)
        _set_draft(message, self)
        _set_position(message, position)
        return message

    def _piece(self, kind: BlockKind, index: int, piece: str) -> None:
        block = self._last
        if block is None or block.index != index or block.kind != kind:
            block = self._last = self._open.get((kind, index)) or self._start(kind, index)
        block.pieces.append(piece)
        block.positions.append(self.position)

    def _start(self, kind: BlockKind, index: int) -> _Block:
        block = _Block(kind, index, self.position)
        self._blocks.append(block)
        self._open[kind, index] = block
        return block

    def _boundary(self, event: m.ModelEvent) -> None:
        self._last = None
        match event:
            case m.ResponseStart():
                self.model = event.model or self.model
            case m.TextStart():
                self._start("text", event.index)
            case m.ThinkingStart():
                self._start("thinking", event.index)
            case m.ToolCallStart():
                block = self._start("tool_call", event.index)
                block.id, block.name = event.id, event.name
            case m.TextEnd():
                self._end("text", event.index, event.replay)
            case m.ThinkingEnd():
                self._end("thinking", event.index, event.replay)
            case m.ToolCallEnd():
                block = self._end("tool_call", event.index, event.replay)
                if block is not None and event.arguments is not None:
                    block.arguments = event.arguments
            case m.ResponseEnd() | m.ModelError() | m.TextDelta() | m.ThinkingDelta() | m.ToolCallDelta():
                pass  # the end of the stream; deltas don't come here
            case _:
                raise TypeError(f"{event!r:.200} is no model event")

    def _end(self, kind: BlockKind, index: int, replay: JsonObject | None) -> _Block | None:
        block = self._open.pop((kind, index), None)
        if block is None and replay is not None:
            block = self._start(kind, index)  # a signature or encrypted reasoning that came without text
            del self._open[kind, index]
        if block is not None and replay is not None:
            block.replay = replay
        return block

    def parts(self, position: int) -> tuple[AssistantPart, ...]:
        """The parts as of a position, in the order they were opened."""
        parts = [block.part(position) for block in self._blocks if block.opened <= position]
        return tuple([part for part in parts if part is not None])

    def text(self, kind: BlockKind, position: int) -> str:
        """The text of all blocks of a kind, joined."""
        texts = [block.text(position) for block in self._blocks if block.kind == kind and block.opened <= position]
        return texts[0] if len(texts) == 1 else "".join(texts)

    def current_call(self, index: int) -> tuple[str, str] | None:
        """Id and name of the newest call at an index, or None."""
        for block in reversed(self._blocks):
            if block.kind == "tool_call" and block.index == index:
                return block.id, block.name
        return None

    def finish(
        self,
        stop_reason: StopReason,
        *,
        usage: Usage | None = None,
        error_message: str | None = None,
        replay: JsonObject | None = None,
    ) -> AssistantMessage:
        """The whole message, its arguments parsed for good."""
        parts = [block.final(self.position) for block in self._blocks]
        return AssistantMessage(
            tuple([part for part in parts if part is not None]),
            stop_reason=stop_reason,
            usage=usage,
            model=self.model,
            error_message=error_message,
            replay=replay,
            id=self.id,
            timestamp=self.timestamp,
        )
