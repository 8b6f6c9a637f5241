"""`ToolContext`: what a running tool knows, and its ways to report, ask and stop."""

from collections.abc import Awaitable, Generator
from typing import Protocol

from pydantic import JsonValue

from rxagent.errors import ToolInterrupted
from rxagent.events import Origin
from rxagent.messages import JsonObject, to_json_value
from rxagent.signals import Signal


class Told:
    """What ``update`` and ``emit`` return. Awaiting it waits for the consumers that hold; not awaiting is fine."""

    __slots__ = ("_pending",)

    def __init__(self, pending: Awaitable[None] | None = None) -> None:
        self._pending = pending

    def __await__(self) -> Generator[object, None, None]:
        if self._pending is not None:
            yield from self._pending.__await__()


class ToolHost(Protocol):
    """The engine's side of a call. ``tell`` may be called from any thread."""

    @property
    def origin(self) -> Origin:
        """Session, run, agent and path."""
        ...

    def update(self, call_id: str, partial: JsonValue) -> Told:
        """See `ToolContext.update`."""
        ...

    def emit(self, name: str, data: JsonValue) -> Told:
        """See `ToolContext.emit`."""
        ...

    def answer(self, call_id: str, question: str, schema: JsonObject | None) -> tuple[bool, JsonValue]:
        """Whether the question of this call was answered, and the answer; otherwise it is noted as asked."""
        ...


class ToolContext:
    """Handed to a tool that has a parameter annotated ``ToolContext``.

    Attributes:
        call_id: id of the call, unique in the session.
        tool_name: the name it was called by.
        signal_taken: whether ``signal`` was looked at.
        deps: what the agent was made with as ``deps``.
        origin: session, run and agent; ``agent`` and ``path`` are short for its parts.
    """

    def __init__(self, host: ToolHost, call_id: str, tool_name: str, signal: Signal, deps: object) -> None:
        self._host = host
        self.call_id = call_id
        self.tool_name = tool_name
        self.deps = deps
        self.signal_taken = False
        self._signal = signal

    @property
    def signal(self) -> Signal:
        """Cancelled when the call should stop. A tool that takes it gets the grace period to act on it.

        One that never takes it has its coroutine cancelled at once instead.
        """
        self.signal_taken = True
        return self._signal

    @property
    def origin(self) -> Origin:
        """Session, run, agent and path."""
        return self._host.origin

    @property
    def agent(self) -> str:
        """Name of the agent that runs the tool."""
        return self._host.origin.agent

    @property
    def path(self) -> tuple[str, ...]:
        """Names of the agents from the root to this one."""
        return self._host.origin.path

    @property
    def host(self) -> ToolHost:
        """The engine's side; for tools that run agents of their own."""
        return self._host

    def update(self, partial: object) -> Told:
        """Reports progress as a `ToolUpdate`; dropped once the call has ended.

        From a worker thread it returns when no consumer holds any more; in a coroutine, await the
        result to the same end.

        Raises:
            Unserialisable: ``partial`` has no JSON form.
        """
        return self._host.update(self.call_id, to_json_value(partial, f"progress of tool {self.tool_name!r}"))

    def emit(self, name: str, data: object = None) -> Told:
        """Emits a `Custom` event of the application's own.

        Raises:
            Unserialisable: ``data`` has no JSON form.
        """
        return self._host.emit(name, to_json_value(data, f"data of event {name!r}"))

    async def interrupt(self, question: str, schema: JsonObject | None = None) -> JsonValue:
        """Asks a person: ends the run the first time, gives the answer in the resumed run.

        The tool is run again from its start when the run is resumed, so ask before doing anything
        that must not be done twice. Several questions are asked one after the other.

        Args:
            question: for the person.
            schema: JSON schema of the answer, if it has a form.
        """
        return self.interrupt_blocking(question, schema)

    def interrupt_blocking(self, question: str, schema: JsonObject | None = None) -> JsonValue:
        """``interrupt`` for tools that are plain functions."""
        answered, answer = self._host.answer(self.call_id, question, schema)
        if not answered:
            raise ToolInterrupted(question)
        return answer
