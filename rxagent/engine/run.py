"""`Run`: one invocation, as a replaying Observable, an awaitable and an async iterator; `RunResult`."""

import asyncio
from collections.abc import AsyncIterator, Callable, Generator, Iterable
from dataclasses import dataclass, field

from rxagent.engine.config import Output
from rxagent.engine.kept import Kept
from rxagent.errors import LimitReached, NoRunningLoop, RunAborted, RunFailed, RunInterrupted, WouldDeadlock
from rxagent.events import AgentEnd, AgentStart, AnyEvent, ErrorInfo, Interrupt, Interrupted, MessageUpdate, Origin, Outcome
from rxagent.flow import Gate, OnFault, Replay, held_here, to_aiter
from rxagent.flow.loops import wakeup
from rxagent.messages import AnyMessage, AssistantMessage, Usage
from rxagent.signals import Signal

FAILURES: dict[Outcome, type[RunFailed]] = {
    "aborted": RunAborted,
    "failed": RunFailed,
    "interrupted": RunInterrupted,
    "limit": LimitReached,
}


@dataclass(frozen=True, slots=True)
class RunResult:
    """How a run ended.

    ``messages`` are what it appended; ``text`` is its last non-empty answer; ``output`` the answer as
    the agent's output type, if it has one; ``interrupts`` what it waits for.
    """

    messages: tuple[AnyMessage, ...] = ()
    outcome: Outcome = "completed"
    error: ErrorInfo | None = None
    usage: Usage = field(default_factory=Usage)
    text: str = ""
    output: object = None
    interrupts: tuple[Interrupt, ...] = ()


def last_text(messages: tuple[AnyMessage, ...]) -> str:
    """The last non-empty answer's text."""
    for message in reversed(messages):
        if isinstance(message, AssistantMessage) and message.text:
            return message.text
    return ""


class Run(Replay[AnyEvent]):
    """A run that was started: an Observable of its own events, from the first one, whenever subscribed.

    ``await run`` gives its `RunResult`; model failures and aborts are results, not exceptions.
    ``async for event in run`` pulls; leaving it early aborts the run. Unsubscribing never does.
    """

    def __init__(self, origin: Origin, signal: Signal, output: Output | None, on_fault: OnFault | None = None) -> None:
        self._kept = kept = Kept()
        super().__init__(kept, on_fault)
        self.origin = origin
        self.signal = signal
        self.gate: Gate | None = None
        self.task: asyncio.Task[None] | None = None  # the loop itself only keeps weak references
        self._output = output
        self._run_failure: BaseException | None = None
        self._wakers: list[Callable[[], None]] = []
        self._agent_end: AgentEnd | None = None
        self._interrupts: tuple[Interrupt, ...] = ()
        self._begun = False
        self.finished = False

    def __repr__(self) -> str:
        state = self._agent_end.outcome if self._agent_end is not None else "running"
        return f"<Run {self.origin.run_id} of {self.origin.agent}: {state}>"

    @property
    def run_id(self) -> str:
        """The run's id."""
        return self.origin.run_id

    @property
    def outcome(self) -> Outcome | None:
        """The outcome, None while it runs."""
        return self._agent_end.outcome if self._agent_end is not None else None

    def begin(self, origin: Origin, gate: Gate) -> None:
        """Says where the run's events come from; called once, before the first of them."""
        self.origin, self.gate = origin, gate

    def expects(self, output: Output | None) -> None:
        """Says what type the last answer has, where that isn't the type of the agent that was prompted."""
        self._output = output

    def recall(self, events: Iterable[AnyEvent]) -> None:
        """Takes in the events of this run that another process has logged."""
        self._begun = True
        for event in events:
            super().on_next(event)

    def on_next(self, value: AnyEvent) -> None:
        """Keeps and delivers an event, if it stands between this run's start and its end."""
        if type(value) is MessageUpdate:
            last = self._kept.last
            alike = last is not None and value.seq == last.next_seq and type(value.delta) is last.kind
            # Kept.append and Replay.on_next, with nobody subscribed: once per delta. The interpreter doesn't
            # switch threads between this test and the addition, so nobody subscribes in between.
            if last is not None and alike and value.origin is last.origin and not self._entries and not self._unsent:
                last.next_seq += 1
                return
        elif isinstance(value, Interrupted):
            if value.origin.run_id == self.origin.run_id:  # its own, maybe of the agent it was handed over to
                self._interrupts = value.interrupts
        elif value.origin is self.origin:
            if isinstance(value, AgentStart):
                self._begun = True
            elif isinstance(value, AgentEnd):
                super().on_next(value)
                self._agent_end = value
                return
        if self._begun and self._agent_end is None:
            super().on_next(value)

    def finish(self, failure: BaseException | None = None) -> None:
        """The run is over and kept; called once, by whoever drives it."""
        self._run_failure = failure
        self.finished = True
        if failure is not None and self._agent_end is None and isinstance(failure, Exception):
            self.on_error(failure)
        else:
            self.on_completed()
        for wake in self._wakers:
            wake()
        self._wakers.clear()

    def abort(self, reason: str | None = None) -> None:
        """Aborts this run, if it still runs; from any thread."""
        self.signal.cancel(reason)

    async def result(self, *, raise_on_failure: bool = False) -> RunResult:
        """Waits for the end.

        Raises:
            WouldDeadlock: called from a listener or tool of this very run.
            RunFailed: with ``raise_on_failure``, where the outcome isn't ``completed``.
            StoreError: the run's end could not be stored.
        """
        await self.ended()
        if self._run_failure is not None:
            raise self._run_failure
        end = self._agent_end
        assert end is not None
        if raise_on_failure and end.outcome != "completed":
            reason = f": {self.signal.reason}" if end.outcome == "aborted" and self.signal.reason else ""
            text = end.error.message if end.error else f"the run was {end.outcome}{reason}"
            raise FAILURES[end.outcome](text, end.outcome)
        text = last_text(end.messages)
        output = None
        if self._output is not None and end.outcome == "completed":
            output = self._output.read(text)
        return RunResult(end.messages, end.outcome, end.error, end.usage, text, output, self._interrupts)

    # The one argued override of a type: Observable's own __await__ gives the last value, and a run's
    # last value is less useful than its result.
    def __await__(self) -> Generator[object, None, RunResult]:  # pyright: ignore[reportIncompatibleMethodOverride]
        return self.result().__await__()

    async def ended(self) -> None:
        """Waits for the end, whatever it is.

        Raises:
            WouldDeadlock: called from a listener or tool of this very run.
        """
        if self.finished:
            return
        self._check_wait("await run")
        done, wake = wakeup()
        self._wakers.append(wake)
        if self.finished:  # it ended on another thread in between
            wake()
        await done

    def _check_wait(self, action: str) -> None:
        if self.gate is not None:
            self.gate.check(action)
        if held_here(self.signal):
            raise WouldDeadlock(f"{action}: called from a tool that this run is waiting for. Let the tool return first.")

    def __aiter__(self) -> AsyncIterator[AnyEvent]:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            raise NoRunningLoop("iterate over a run inside of a coroutine, or use prompt_sync") from None
        if not self.finished:
            self._check_wait("async for … in run")
        return _Events(self)


class _Events(AsyncIterator[AnyEvent]):
    """The events of a run as an iterator; dropped before its end, it aborts the run."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._items = aiter(to_aiter(run, capacity=1))
        self._over = False

    async def __anext__(self) -> AnyEvent:
        try:
            return await anext(self._items)
        except BaseException:
            self._over = True
            raise

    async def aclose(self) -> None:
        """Leaves early: aborts the run and waits for its end."""
        if not self._over:
            self._over = True
            self._run.abort("the iteration was left")
            aclose = getattr(self._items, "aclose", None)
            if aclose is not None:
                await aclose()

    def __del__(self) -> None:
        if not self._over:
            self._run.abort("the iteration was left")
