"""`ScriptedModel`: a model whose answers are written down beforehand, for tests, demos and marbles.

It makes no request and knows no network. Time passes only where ``delay`` asks for it.
"""

import asyncio
import inspect
import re
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import cast, get_args

from pydantic_core import to_json
from reactivex import Observable

from rxagent.errors import UsageError, told
from rxagent.events.model import (
    BlockEvent,
    ModelError,
    ModelEvent,
    ResponseEnd,
    ResponseStart,
    TextEnd,
    TextStart,
    ThinkingEnd,
    ThinkingStart,
    ToolCallEnd,
    ToolCallStart,
    text_delta,
    thinking_delta,
    tool_call_delta,
)
from rxagent.flow import to_aiter
from rxagent.messages import AssistantMessage, StopReason, TextPart, ThinkingPart, ToolCall, Usage
from rxagent.models.base import ModelRequest

ScriptedPart = str | TextPart | ThinkingPart | ToolCall | ModelEvent
ScriptedAnswer = ScriptedPart | AssistantMessage | Exception | Sequence[ScriptedPart]
ScriptedTurn = (
    ScriptedAnswer
    | AsyncIterable[ModelEvent]
    | Observable[ModelEvent]
    | Callable[[ModelRequest], ScriptedAnswer | Awaitable[ScriptedAnswer] | AsyncIterable[ModelEvent] | Observable[ModelEvent]]
)

_EVENTS = (ResponseStart, *get_args(BlockEvent), ResponseEnd, ModelError)
_PIECE = re.compile(r"\s{0,8}\S{1,8}|\s{1,8}")


class ScriptedModel:
    """Answers each request with the next turn of a script; ``requests`` holds what it was asked.

    A turn is one of

    - text, a ``TextPart``, ``ThinkingPart`` or ``ToolCall``: streamed in small deltas;
    - a list of those, as blocks in order; neighbouring strings are the deltas of one text, as cut;
    - a list of `ModelEvent` values only: played as it is, nothing added, so a broken stream can be played;
    - an ``AssistantMessage``, with its stop reason and usage;
    - a ``ModelError``, or an exception, which becomes one (kind ``server``, not retryable);
    - an async iterator or an Observable of `ModelEvent` values;
    - a function of the request, sync or async, that gives any of these.

    One function in place of the list answers every request.

    Args:
        turns: the script; it may be endless.
        delay: seconds before each event, by ``asyncio.sleep``.
        usage: what each answer says it cost, unless its turn says so itself.

    """

    def __init__(
        self,
        turns: Iterable[ScriptedTurn] | Callable[[ModelRequest], object] = (),
        *,
        name: str = "scripted",
        delay: float = 0.0,
        usage: Usage | None = None,
    ) -> None:
        self.name = name
        self.provider = "scripted"
        self.requests: list[ModelRequest] = []
        self._turns: Iterator[object] = _always(turns) if callable(turns) else iter([turns] if isinstance(turns, str) else turns)
        self._delay = delay
        self._usage = usage

    def __repr__(self) -> str:
        return f"ScriptedModel({self.name!r}, {len(self.requests)} requests)"

    def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Plays the next turn; after the last one every request fails with ``invalid_request``."""
        self.requests.append(request)
        return self._play(request, next(self._turns, _END))

    async def _play(self, request: ModelRequest, turn: object) -> AsyncIterator[ModelEvent]:
        try:
            if callable(turn):
                turn = turn(request)
            if inspect.isawaitable(turn) and not isinstance(turn, Observable):  # an Observable is awaitable, too
                turn = await turn
            if isinstance(turn, Observable):
                turn = to_aiter(cast("Observable[ModelEvent]", turn))
            if isinstance(turn, AsyncIterable):
                async for event in cast("AsyncIterable[ModelEvent]", turn):
                    await self._pause()
                    yield event
                return
            events = self._events(request, turn)
        except Exception as error:
            events = [_failure(error)]
        for event in events:
            await self._pause()
            yield event

    async def _pause(self) -> None:
        if self._delay:
            await asyncio.sleep(self._delay)

    def _events(self, request: ModelRequest, turn: object) -> Iterable[ModelEvent]:
        if turn is _END:
            n = len(self.requests)
            return [
                ModelError(
                    "invalid_request", f"the script has {n - 1} turns and this is request {n}: add a turn to ScriptedModel"
                )
            ]
        if isinstance(turn, Exception):
            return [_failure(turn)]
        if isinstance(turn, ModelError):
            return [turn]
        play = _Play(self.name, streaming=request.streaming)
        if isinstance(turn, AssistantMessage):
            return play.message(turn, self._usage)
        parts = list(cast("Sequence[object]", turn)) if isinstance(turn, list | tuple) else [turn]
        if all(isinstance(part, _EVENTS) for part in parts):
            return cast("list[ModelEvent]", parts)
        return play.parts(parts, self._usage)


_END = object()


def _always(function: Callable[[ModelRequest], object]) -> Iterator[object]:
    while True:
        yield function


def _failure(error: Exception) -> ModelError:
    return ModelError("server", f"the scripted turn raised {told(error)}")


@dataclass
class _Play:
    """Turns parts into the events of one answer."""

    model: str
    streaming: bool
    index: int = 0
    has_calls: bool = False
    events: list[ModelEvent] = field(default_factory=list[ModelEvent])

    def message(self, message: AssistantMessage, usage: Usage | None) -> list[ModelEvent]:
        self.events.append(ResponseStart(message.model or self.model))
        for part in message.content:
            self.part(part)
        if message.stop_reason in ("error", "aborted"):
            self.events.append(
                ModelError("server", message.error_message or f"the scripted answer ended as {message.stop_reason}")
            )
        else:
            self.end(message.stop_reason, message.usage or usage)
        return self.events

    def parts(self, parts: list[object], usage: Usage | None) -> list[ModelEvent]:
        if not isinstance(parts[0], ResponseStart):
            self.events.append(ResponseStart(self.model))
        at = 0
        while at < len(parts):
            start, part = at, parts[at]
            at += 1
            if isinstance(part, str) and len(parts) > 1:
                while at < len(parts) and isinstance(parts[at], str):
                    at += 1
                self.text(cast("list[str]", parts[start:at]))
            else:
                self.part(part)
        if not isinstance(parts[-1], ResponseEnd | ModelError):
            self.end(None, usage)
        return self.events

    def part(self, part: object) -> None:
        if isinstance(part, str):
            self.text(self.cut(part))
        elif isinstance(part, TextPart):
            self.text(self.cut(part.text), TextEnd(self.index, part.replay))
        elif isinstance(part, ThinkingPart):
            deltas = [thinking_delta(piece, self.index) for piece in self.cut(part.text)]
            self.block([ThinkingStart(self.index), *deltas, ThinkingEnd(self.index, part.replay)])
        elif isinstance(part, ToolCall):
            self.has_calls = True
            raw = part.invalid if part.invalid is not None else to_json(part.arguments).decode()
            deltas = [tool_call_delta(piece, self.index) for piece in self.cut(raw)]
            self.block([ToolCallStart(part.id, part.name, self.index), *deltas, ToolCallEnd(self.index, replay=part.replay)])
        elif isinstance(part, _EVENTS):
            self.event(cast("ModelEvent", part))
        else:
            raise UsageError(f"a scripted turn can't hold {part!r:.200}: expected text, a part, a ToolCall or a ModelEvent")

    def text(self, pieces: list[str], end: TextEnd | None = None) -> None:
        deltas = [text_delta(piece, self.index) for piece in pieces if piece]
        self.block([TextStart(self.index), *deltas, end or TextEnd(self.index)])

    def block(self, events: list[ModelEvent]) -> None:
        self.events += events
        self.index += 1

    def event(self, event: ModelEvent) -> None:
        self.has_calls = self.has_calls or isinstance(event, ToolCallStart)
        self.index = max(self.index, getattr(event, "index", -1) + 1)
        self.events.append(event)

    def cut(self, text: str) -> list[str]:
        return _PIECE.findall(text) if self.streaming else [text]

    def end(self, stop_reason: StopReason | None, usage: Usage | None) -> None:
        self.events.append(ResponseEnd(stop_reason or ("tool_use" if self.has_calls else "stop"), usage))
