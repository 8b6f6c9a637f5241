"""What all operators on the loop's clock share: a buffer, one timer at most, holds on both sides.

- Everything happens on one loop: the one subscribed on, or else the first value's.
- A value that comes in on another thread is handed over to that loop, bounded.
- No timer is set while nothing is due. What a source delivers as it is subscribed, before any loop runs, passes at once.
"""

import asyncio
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

from reactivex import Observable, abc
from reactivex.disposable import Disposable

from rxagent.errors import NoRunningLoop
from rxagent.flow.clock import LoopClock
from rxagent.flow.handover import Handover
from rxagent.flow.holds import Release, hold
from rxagent.flow.loops import call_on, on_loop, running_loop
from rxagent.flow.outlet import Outlet

A = TypeVar("A")
B = TypeVar("B")

NOW = float("-inf")
BRIDGE_CAPACITY = 1024


class Pacer(ABC, Generic[A, B]):
    """Decides what is delivered when; the subclass says which value, this class sees to the rest."""

    def __init__(self, observer: abc.ObserverBase[B]) -> None:
        self.outlet: Outlet[B] = Outlet(observer)
        self.loop: asyncio.AbstractEventLoop | None = None
        self.ending: tuple[Exception | None] | None = None
        self.now = 0.0
        self._blocked = False
        self._pumping = False
        self._timer: asyncio.TimerHandle | None = None
        self._holds: deque[Release] = deque()

    @abstractmethod
    def put(self, value: A) -> None:
        """Take one value in, at time ``self.now``."""

    @abstractmethod
    def due(self) -> float | None:
        """When the next delivery is due (``NOW``: as soon as possible), None if nothing is kept."""

    @abstractmethod
    def take(self) -> B:
        """Take out what is to be delivered, at time ``self.now``."""

    @abstractmethod
    def hurry(self) -> None:
        """Make everything kept due now: the loop it was waiting on is gone."""

    def full(self) -> bool:
        """Whether the source has to wait; never for operators that drop instead."""
        return False

    def end_due(self) -> float:
        """When the end is due, once nothing is kept any more."""
        return NOW

    def bind(self, loop: asyncio.AbstractEventLoop | None) -> None:
        """Live on ``loop`` from now on; None, when there is no loop any more, only to end."""
        if self.loop is not None:
            self.hurry()
        self.loop = loop
        self.now = 0.0 if loop is None else loop.time()
        self._timer = None
        self._blocked = False

    def arrive(self, value: A) -> None:
        """Take a value, on the loop, within its emission."""
        self.outlet.meet()
        if self.ending is not None or self.outlet.stopped or self.loop is None:
            return
        self.now = max(self.now, self.loop.time())
        self.put(value)
        self._pump()
        if self.full():
            self._holds.append(hold())
            if self.outlet.stopped:  # disposed meanwhile, by another thread
                self._let_go()

    def pass_on(self, value: A) -> None:
        """Deliver ``value`` at once: there is no clock to go by."""
        self.outlet.meet()
        self.put(value)
        self.outlet.send(self.take())

    def finish(self, error: Exception | None) -> None:
        """Take the end, on the loop: what is kept goes first."""
        if self.ending is None:
            self.ending = (error,)
            if self.loop is not None:
                self.now = max(self.now, self.loop.time())
            self._pump()

    def dispose(self) -> None:
        """Forget what is kept, release what is held, stop the timer; from any thread."""
        self.outlet.dispose()
        self._let_go()
        if self._timer is not None and self.loop is not None:
            if on_loop(self.loop):
                self._stop_timer()
            else:
                call_on(self.loop, self._stop_timer)

    def _pump(self) -> None:
        """Deliver what is due, then wait: for the consumer, for the next due time, or for values."""
        if self._pumping:  # a value came in from within a delivery: the loop below sees it
            return
        self._pumping = True
        try:
            while not self._blocked and not self.outlet.stopped:
                due = self.due()
                ends = due is None
                if due is None:
                    if self.ending is None:
                        break
                    due = self.end_due()
                if due > self.now:
                    self._set_timer(due)
                    break
                if ends:
                    self._end()
                    break
                self._deliver()
        finally:
            self._pumping = False
        if self.outlet.stopped:
            self._let_go()

    def _deliver(self) -> None:
        pending = self.outlet.send(self.take())
        if not self.full():
            self._let_go()
        if pending is not None:
            self._blocked = True
            pending.then(self._unblock)

    def _end(self) -> None:
        assert self.ending is not None
        self._stop_timer()
        self.outlet.end(self.ending[0])

    def _unblock(self) -> None:
        # Called wherever the consumer released; delivery goes on on the loop, in a step of its own.
        if self.loop is None:  # only an end was delivered so far, and ends are not held
            return
        call_on(self.loop, self._go_on)

    def _go_on(self) -> None:
        self._blocked = False
        if self.loop is not None:
            self.now = max(self.now, self.loop.time())
        self._pump()

    def _set_timer(self, due: float) -> None:
        assert self.loop is not None
        if self._timer is not None:
            if self._timer.when() <= due:
                return  # it fires early, and then sets itself again: cheaper than one per value
            self._timer.cancel()
        self._timer = self.loop.call_at(due, self._on_timer, due)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _on_timer(self, due: float) -> None:
        self._timer = None
        if self.loop is not None:
            # A loop may call a little early, within the resolution of its clock.
            self.now = max(self.now, self.loop.time(), due)
        self._pump()

    def _let_go(self) -> None:
        while self._holds:
            try:
                release = self._holds.popleft()
            except IndexError:  # another thread took the last one
                return
            release.release()


class _Entrance(abc.ObserverBase[A], Generic[A, B]):
    """Brings values to a pacer's loop: directly when they come in there, else through a queue."""

    def __init__(self, pacer: Pacer[A, B]) -> None:
        self._pacer = pacer
        self._home = running_loop()
        self._bridge: Handover[A] | None = None
        self.subscribing = True

    def on_next(self, value: A) -> None:
        pacer = self._pacer
        loop = pacer.loop
        if loop is None or loop.is_closed():
            if self.subscribing and self._home is None:  # the present value of a state, before any loop runs
                pacer.pass_on(value)
                return
            loop = self._bind()
        if self._bridge is None and running_loop() is loop:
            pacer.arrive(value)
        else:
            self._cross(loop).push(value)

    def on_error(self, error: Exception) -> None:
        self._finish(error)

    def on_completed(self) -> None:
        self._finish(None)

    def dispose(self) -> None:
        if self._bridge is not None:
            self._bridge.dispose()
        self._pacer.dispose()

    def _finish(self, error: Exception | None) -> None:
        loop = self._pacer.loop
        if loop is not None and loop.is_closed():
            loop = self._rebind(running_loop())
        if loop is None or (self._bridge is None and running_loop() is loop):
            self._pacer.finish(error)
        else:
            self._cross(loop).finish(error)

    def _bind(self) -> asyncio.AbstractEventLoop:
        home = self._home
        loop = home if home is not None and not home.is_closed() else running_loop()
        if loop is None:
            raise NoRunningLoop(
                "a time operator needs an asyncio loop: subscribe on a running one, or have the source emit on one"
            )
        self._rebind(loop)
        return loop

    def _rebind(self, loop: asyncio.AbstractEventLoop | None) -> asyncio.AbstractEventLoop | None:
        self._bridge = None
        self._pacer.bind(loop)
        return loop

    def _cross(self, loop: asyncio.AbstractEventLoop) -> Handover[A]:
        if self._bridge is None:
            clock = LoopClock(loop)

            def schedule(drain: Callable[[], None]) -> abc.DisposableBase:
                return clock.schedule(lambda _scheduler, _state: drain())

            self._bridge = Handover(Outlet(_Inside(self._pacer)), BRIDGE_CAPACITY, schedule)
        return self._bridge


class _Inside(abc.ObserverBase[A], Generic[A, B]):
    """The far end of the queue of an ``_Entrance``."""

    def __init__(self, pacer: Pacer[A, B]) -> None:
        self._pacer = pacer

    def on_next(self, value: A) -> None:
        self._pacer.arrive(value)

    def on_error(self, error: Exception) -> None:
        self._pacer.finish(error)

    def on_completed(self) -> None:
        self._pacer.finish(None)


def paced(make: Callable[[abc.ObserverBase[B]], Pacer[A, B]]) -> Callable[[Observable[A]], Observable[B]]:
    """The operator of a pacer, made anew for each subscription."""

    def operator(source: Observable[A]) -> Observable[B]:
        def subscribe(observer: abc.ObserverBase[B], _: abc.SchedulerBase | None = None) -> abc.DisposableBase:
            pacer = make(observer)
            entrance = _Entrance(pacer)
            pacer.outlet.upstream.disposable = source.subscribe(entrance.on_next, entrance.on_error, entrance.on_completed)
            entrance.subscribing = False
            return Disposable(entrance.dispose)

        return Observable(subscribe)

    return operator
