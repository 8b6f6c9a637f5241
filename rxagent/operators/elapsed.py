"""`elapsed`: a clock that ticks while something runs."""

import asyncio
import math
from collections.abc import Callable

from reactivex import Observable, abc
from reactivex.disposable import Disposable

from rxagent.errors import NoRunningLoop, UsageError
from rxagent.events import agent as e
from rxagent.flow.loops import call_later, call_on, running_loop
from rxagent.flow.outlet import Outlet
from rxagent.operators.kit import Operator


def elapsed(period: float = 1.0) -> Operator[float]:
    """Seconds since the run began: 0 at its start, then every ``period``, and exactly at its end.

        ─A─────────────a──|         A  agent_start, a  agent_end
        elapsed()
        ─0────1────2───2.7|

    Put behind one Observable of `tool_executions` it is the clock of that call, from `ToolStart` to
    `ToolEnd`. The time is the running loop's. No timer runs while nothing does; a consumer that holds
    a tick misses those that were due meanwhile. The end stops the clock, and so do errors.

    Raises:
        UsageError: ``period`` is not above 0.
        NoRunningLoop: to the observer, when a run begins and no event loop is running.
    """
    if period <= 0:
        raise UsageError(f"elapsed: period is in seconds and must be above 0, not {period}")

    def operator(source: Observable[e.AnyEvent]) -> Observable[float]:
        def subscribe(observer: abc.ObserverBase[float], _: abc.SchedulerBase | None = None) -> abc.DisposableBase:
            clock = _Clock(observer, period)
            clock.outlet.upstream.disposable = source.subscribe(clock.on_next, clock.end, lambda: clock.end(None))
            return Disposable(clock.dispose)

        return Observable(subscribe)

    return operator


class _Clock:
    """One subscription's clock; ``_key`` says what it measures, None: nothing."""

    def __init__(self, observer: abc.ObserverBase[float], period: float) -> None:
        self.outlet = Outlet(observer)
        self._observer = observer
        self._period = period
        self._loop: asyncio.AbstractEventLoop | None = running_loop()
        self._key: tuple[str, str] | None = None
        self._began = 0.0
        self._stop: Callable[[], None] = _nothing  # cancels the timer

    def on_next(self, event: e.AnyEvent) -> None:
        """Starts with the first start there is; stops with its end."""
        self.outlet.meet()
        if self._key is None:
            if isinstance(event, e.AgentStart | e.ToolStart):
                self._start(event)
        elif isinstance(event, e.AgentEnd | e.ToolEnd) and _key(event) == self._key:
            self._key = None
            self._stop()
            assert self._loop is not None
            self._observer.on_next(self._loop.time() - self._began)

    def end(self, error: Exception | None) -> None:
        """The source is over."""
        self._key = None
        self._stop()
        self.outlet.end(error)

    def dispose(self) -> None:
        """Nobody listens any more."""
        self._key = None
        self._stop()
        self.outlet.dispose()

    def _start(self, event: e.AgentStart | e.ToolStart) -> None:
        loop = self._loop = running_loop() or self._loop
        if loop is None:
            self.outlet.end(NoRunningLoop("elapsed needs a running asyncio loop: subscribe, or run the agent, on one"))
            return
        self._key = _key(event)
        self._began = loop.time()
        self._observer.on_next(0.0)
        self._next_tick()

    def _next_tick(self) -> None:
        loop = self._loop
        if self._key is None or loop is None or self.outlet.stopped:
            return
        run = loop.time() - self._began
        # A tick that came right on time may read a hair early (3 * 0.02 > 0.06); it must not be due again.
        due = (math.floor(run / self._period + 1e-6) + 1) * self._period
        self._stop = call_later(loop, due - run, self._tick)

    def _tick(self) -> None:
        if self._key is None or self._loop is None:
            return
        loop = self._loop
        pending = self.outlet.send(loop.time() - self._began)
        if pending is None:
            self._next_tick()
        else:
            pending.then(lambda: call_on(loop, self._next_tick))


def _nothing() -> None:
    return None


def _key(event: e.AgentStart | e.AgentEnd | e.ToolStart | e.ToolEnd) -> tuple[str, str]:
    call = event.call_id if isinstance(event, e.ToolStart | e.ToolEnd) else ""
    return event.origin.run_id, call
