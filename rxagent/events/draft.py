"""`Draft`: folds model events into the message so far, at constant cost per delta.

All partial messages of one answer share the draft's growing lists; each knows only its position in
them. Text is joined and arguments are parsed when somebody reads them, and the joined text is cached
in the draft, not in the partial message, so reading at every delta keeps memory linear.
"""

from collections.abc import Callable
from types import MappingProxyType
from typing import Literal, cast

from rxagent.events import model as m
from rxagent.events.block import Block, BlockKind
from rxagent.events.model_check import check
from rxagent.messages import (
    AssistantMessage,
    AssistantPart,
    JsonObject,
    StopReason,
    Usage,
)

# pieces as the deltas that they came in
_DELTAS = MappingProxyType({"text": m.text_delta, "thinking": m.thinking_delta, "tool_call": m.tool_call_delta})


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

    def __new__(cls, *args: object, **fields: object) -> AssistantMessage:
        """A plain message: what ``dataclasses.replace`` makes of this one is no view any more."""
        return cast("Callable[..., AssistantMessage]", AssistantMessage)(*args, **fields)

    def __reduce__(self) -> tuple[Callable[..., AssistantMessage], tuple[object, ...]]:
        """A copy, pickled or not, is a plain message that equals this one: it has left its stream."""
        return _plain, (self.content, self.model, self.id, self.timestamp)


def _plain(content: tuple[AssistantPart, ...], model: str, id: str, timestamp: float) -> AssistantMessage:  # noqa: A002 - the message's field
    return AssistantMessage(content, model=model, id=id, timestamp=timestamp)


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
        self._blocks: list[Block] = []
        self._open: dict[tuple[BlockKind, int], Block] = {}
        self._last: Block | None = None
        self._read: Block | None = None

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
        """Takes one event in and gives the message so far.

        Raises:
            TypeError: it is no model event, or not what it should be; nothing is taken in.
        """
        position = self.position + 1
        if isinstance(event, m.TextDelta):
            text, block = event.text, self._last
            if block is None or block.index != event.index or block.kind != "text" or type(text) is not str:
                self._piece("text", event, text)
            else:
                block.pieces.append(text)  # _piece, without the call
                block.positions.append(position)
                self.position = position
        elif isinstance(event, m.ToolCallDelta):
            self._piece("tool_call", event, event.arguments)
        elif isinstance(event, m.ThinkingDelta):
            self._piece("thinking", event, event.text)
        else:
            self._boundary(event)
        message = _new(PartialMessage)
        _set_draft(message, self)
        _set_position(message, position)
        return message

    def _piece(self, kind: BlockKind, delta: m.TextDelta | m.ThinkingDelta | m.ToolCallDelta, piece: str) -> None:
        block, index = self._last, delta.index
        if block is None or block.index != index or block.kind != kind or type(piece) is not str:
            check(delta)
            self.position += 1
            block = self._last = self._open.get((kind, index)) or self._start(kind, index)
        else:
            self.position += 1
        block.pieces.append(piece)
        block.positions.append(self.position)

    def _start(self, kind: BlockKind, index: int) -> Block:
        block = Block(kind, index, self.position)
        self._blocks.append(block)
        self._open[kind, index] = block
        return block

    def _boundary(self, event: m.ModelEvent) -> None:
        check(event)
        self.position += 1
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
            case _:
                pass  # the end of the stream; deltas don't come here

    def _end(self, kind: BlockKind, index: int, replay: JsonObject | None) -> Block | None:
        block = self._open.pop((kind, index), None)
        if block is None and replay is not None and kind != "tool_call":
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

    def is_calling(self, index: int) -> bool:
        """Whether a call at an index has begun and not ended."""
        return ("tool_call", index) in self._open

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
