"""Input lines as the parts of an agent: a model, a tool, a user."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing

from pydantic_core import to_json
from reactivex import Observable

from rxagent.engine import Agent
from rxagent.events import (
    ModelError,
    ModelEvent,
    ResponseEnd,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
)
from rxagent.flow import Release, hold
from rxagent.marble.streams import Source
from rxagent.marble.vocabulary import Action, Asked, Call, Cut, Returned
from rxagent.messages import JsonObject, ToolDeclaration
from rxagent.models import ModelRequest
from rxagent.tools import ToolContext


class _End(Exception):
    """The line has completed."""


class _Pull:
    """An Observable pulled value by value: it is held from each value until the next one is asked for."""

    def __init__(self, source: Observable[object]) -> None:
        self._values: deque[tuple[object, Release]] = deque()
        self._end: Exception | None = None
        self._wake = asyncio.Event()
        self._subscription = source.subscribe(self._put, self._finish, lambda: self._finish(_End()))

    def _put(self, value: object) -> None:
        self._values.append((value, hold()))
        self._wake.set()

    def _finish(self, end: Exception) -> None:
        self._end = end
        self._wake.set()

    async def values(self) -> AsyncGenerator[object]:
        try:
            while True:
                while not self._values:
                    if self._end is not None:
                        raise self._end
                    self._wake.clear()
                    await self._wake.wait()
                value, release = self._values.popleft()
                try:
                    yield value
                finally:
                    release()
        except _End:
            return
        finally:
            self._subscription.dispose()


class LineModel:
    """A model whose n-th answer is the n-th line of an input; ``requests`` holds what it was asked.

    Texts and thinking become blocks by themselves, ``call add(2, 2)`` a whole tool call. The line's end is
    the answer's end, unless it says ``done``, ``error`` or ``cut`` itself. It fails (``#``) by raising.
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self.requests: list[ModelRequest] = []
        self._calls = 0

    @property
    def name(self) -> str:
        """The name of the input."""
        return self.source.name

    @property
    def provider(self) -> str:
        """What ``get_api_key`` hooks are asked for."""
        return "marble"

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Play the next line."""
        self.requests.append(request)
        blocks = _Blocks()
        async with aclosing(_Pull(self.source).values()) as values:
            async for value in values:
                if isinstance(value, Cut):
                    return
                for event in self._events(value, blocks):
                    yield event
        if not blocks.ended:
            yield ResponseEnd("tool_use" if blocks.calls else "stop")

    def _events(self, value: object, blocks: "_Blocks") -> list[ModelEvent]:
        if isinstance(value, Call):
            self._calls += 1
            index = blocks.call()
            arguments = to_json(value.arguments).decode()
            return [
                ToolCallStart(value.id or f"call_{self._calls}", value.name, index),
                ToolCallDelta(arguments, index),
                ToolCallEnd(index),
            ]
        if isinstance(value, TextDelta | ThinkingDelta) and value.index == 0:
            return [type(value)(value.text, blocks.of(type(value)))]
        blocks.ended = blocks.ended or isinstance(value, ResponseEnd | ModelError)
        return [value]  # pyright: ignore[reportReturnType] what is no model event is the engine's to refuse


class _Blocks:
    """Numbers the blocks of one answer: neighbouring deltas of one kind are one block."""

    def __init__(self) -> None:
        self.ended = False
        self.calls = 0
        self._index = -1
        self._kind: type | None = None

    def of(self, kind: type) -> int:
        if self._kind is not kind:
            self._kind = kind
            self._index += 1
        return self._index

    def call(self) -> int:
        self.calls += 1
        self._kind = None
        self._index += 1
        return self._index


class LineTool:
    """A tool whose n-th call plays the n-th line of an input.

    Values are its progress; ``result x`` returns ``x``, ``ask "…"`` interrupts, ``#`` raises; a line that just
    ends returns its last value.
    """

    sequential = False
    timeout: float | None = None

    def __init__(self, source: Source) -> None:
        self.source = source
        self.declaration = ToolDeclaration(source.name, f"The input line {source.name}.", {"type": "object"})

    def bind(self, arguments: JsonObject) -> "LineCall":
        """Accept any arguments."""
        return LineCall(self.source, arguments)


class LineCall:
    """One call of a ``LineTool``."""

    def __init__(self, source: Source, arguments: JsonObject) -> None:
        self.source = source
        self.arguments = arguments

    async def start(self, context: ToolContext) -> object:
        """Play the line to its result."""
        last: object = ""
        async with aclosing(_Pull(self.source).values()) as values:
            async for value in values:
                if isinstance(value, Returned):
                    return value.value
                if isinstance(value, Asked):
                    return await context.interrupt(value.question)
                last = value
                await context.update(value)
        return last


def act(action: object, agent: Agent) -> None:
    """Do what one symbol of a user's line says. Raises ``TypeError`` for anything that is no action."""
    if callable(action):
        action(agent)
        return
    if not isinstance(action, Action):
        raise TypeError(f"a user's line holds actions (prompt, steer, interrupt, follow_up, abort, …), not {action!r}")
    if action.kind == "interrupt":
        agent.steer(action.text, interrupt=True)
    elif action.kind == "abort":
        agent.abort(action.text or None)
    elif action.kind in ("prompt", "steer", "follow_up"):
        getattr(agent, action.kind)(action.text)
    else:
        getattr(agent, {"continue": "continue_"}.get(action.kind, action.kind))()


__all__ = ["LineCall", "LineModel", "LineTool", "act"]
