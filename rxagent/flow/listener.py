"""Coroutine functions as observers: one value at a time, the source waiting as long as it should."""

import asyncio
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from contextvars import copy_context
from typing import Generic, NamedTuple, TypeVar

from reactivex import Observable, abc

from rxagent.errors import NoRunningLoop, UsageError, WouldDeadlock
from rxagent.flow.faults import Fault, OnFault, call_site, print_fault, report
from rxagent.flow.holds import Chain, Link, Release, carry, held_here, hold, lineage
from rxagent.flow.loops import call_later, call_on, current_loop, running_loop, wakeup

T = TypeVar("T")

NO_LOOP = "a coroutine handler needs an asyncio loop: subscribe it on a running one, or have the source emit on one"


class _Job(NamedTuple, Generic[T]):
    value: T
    chain: Chain


class Listener(abc.DisposableBase, Generic[T]):
    """A subscription of a coroutine function; see ``subscribe_async``.

    The worker task lives only while there is something to handle. It runs on the loop the
    subscription was made on, or, if there was none or it is gone, on the loop of the source. A value
    that arrives where no loop runs is the listener's failure; if ``patient``, it waits for the next
    value, or call of ``drained``, on one.
    """

    def __init__(
        self,
        handler: Callable[[T], Awaitable[object]],
        *,
        capacity: int,
        hold_timeout: float | None,
        on_fault: OnFault | None,
        patient: bool = False,
    ) -> None:
        if capacity < 0:
            raise UsageError(f"capacity must be 0 or more, not {capacity}")
        if hold_timeout is not None and not hold_timeout > 0:
            raise UsageError(f"hold_timeout is in seconds and must be above 0, not {hold_timeout}; None waits for ever")
        self._handler = handler
        self._capacity = capacity
        self._hold_timeout = hold_timeout
        self._on_fault = on_fault or print_fault
        self._patient = patient
        self._site = call_site()
        self._context = copy_context()
        self._home = running_loop()
        self._lock = threading.Lock()
        self._jobs: deque[_Job[T]] = deque()
        self._unfinished = 0
        self._working = False
        self._holds: list[tuple[Release, Callable[[], None] | None]] = []
        self._idle: list[Callable[[], None]] = []
        self._task: asyncio.Task[None] | None = None
        self._worker: Coroutine[object, object, None] | None = None
        self._upstream: abc.DisposableBase | None = None
        self._disposed = False

    @property
    def waiting(self) -> int:
        """How many values are not handled yet, the one being handled included."""
        return self._unfinished

    async def drained(self) -> None:
        """Return when everything that arrived is handled, on whatever loop this is awaited.

        Raises ``WouldDeadlock`` within the handler itself.
        """
        if held_here(self):
            raise WouldDeadlock("drained() from within the handler: it would wait for itself to return")
        future, wake = wakeup()
        self._revive()
        with self._lock:
            if self._unfinished == 0:
                return
            self._idle.append(wake)
            start, self._working = not self._working, True
        if start:
            self._start(self._loop() or current_loop("drained"))
        await future

    def dispose(self) -> None:
        """Unsubscribe: what waits is dropped, what is held released, a running handler cancelled.

        From within the handler it is not cancelled: it runs to its end.
        """
        with self._lock:
            if self._disposed:
                return
            self._disposed = True
            self._unfinished -= len(self._jobs)
            self._jobs.clear()
            idle = self._take_idle()
            holds = self._take_holds()
            task = self._task
        if self._upstream is not None:
            self._upstream.dispose()
        _let_go(holds)
        for wake in idle:
            wake()
        if task is not None and not task.done() and not held_here(self):
            call_on(task.get_loop(), task.cancel)

    def attach(self, source: Observable[T]) -> None:
        """Subscribe to ``source``."""
        self._upstream = source.subscribe(self._on_next, self._on_error)
        if self._disposed:  # during the subscription already
            self._upstream.dispose()

    def _on_next(self, value: T) -> None:
        chain = (*lineage(), Link(self))
        self._revive()
        loop = self._loop()
        if loop is None and not self._patient:
            self._fail(NoRunningLoop(NO_LOOP), value)
            return
        with self._lock:
            if self._disposed:
                return
            self._unfinished += 1
            crowded = self._unfinished > self._capacity
            self._jobs.append(_Job(value, chain))
            start = loop is not None and not self._working
            self._working = self._working or start
        if crowded and loop is not None:
            self._hold(value, loop)
        if start and loop is not None:
            self._start(loop)

    def _on_error(self, error: Exception) -> None:
        # A handler has no way to hear of it; what arrived before is still handled.
        report(self._on_fault, Fault(error, error, str(self._site)))

    def _hold(self, value: T, loop: asyncio.AbstractEventLoop) -> None:
        release = hold()
        if not release.active:
            return
        stop = None if self._hold_timeout is None else self._watch(self._hold_timeout, value, release, loop)
        with self._lock:
            if self._unfinished > self._capacity:
                self._holds.append((release, stop))
                return
        _let_go([(release, stop)])

    def _watch(self, seconds: float, value: T, release: Release, loop: asyncio.AbstractEventLoop) -> Callable[[], None]:
        def too_slow() -> None:
            if release.active:
                late = TimeoutError(f"a handler kept its source waiting for {seconds} s")
                self._fail(late, value)

        return call_later(loop, seconds, too_slow)

    def _loop(self) -> asyncio.AbstractEventLoop | None:
        home = self._home
        return home if home is not None and home.is_running() else running_loop()

    def _revive(self) -> None:
        """A loop that was closed with the handler in it will never go on with it: the next value finds another."""
        task, worker = self._task, self._worker
        if task is None or worker is None or not task.get_loop().is_closed():
            return
        self._task = self._worker = None
        with suppress(RuntimeError):  # the handler wanted to wait once more
            worker.close()
        self._working = False

    def _start(self, loop: asyncio.AbstractEventLoop) -> None:
        def create() -> None:
            self._worker = self._work()
            self._task = loop.create_task(self._worker, context=self._context)
            self._task.add_done_callback(self._ended)

        if running_loop() is loop:
            create()
        else:
            call_on(loop, create)

    async def _work(self) -> None:
        while (job := self._next()) is not None:
            try:
                await self._handle(job)
            finally:
                self._finish(job)

    def _ended(self, task: asyncio.Task[None]) -> None:
        if self._task is task:
            self._task = self._worker = None
        if task.cancelled():  # perhaps before its first step: the loop shuts down
            if self._patient:
                self._working = False
            else:
                self.dispose()

    def _next(self) -> _Job[T] | None:
        with self._lock:
            if self._jobs:
                return self._jobs.popleft()
            self._working = False
            return None

    async def _handle(self, job: _Job[T]) -> None:
        carry(job.chain)
        try:
            await self._handler(job.value)
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is not None and task.cancelling():  # we are, not something it waited for
                if not self._patient:
                    self.dispose()
                raise
            self._fail(error, job.value)
        except Exception as error:
            self._fail(error, job.value)

    def _finish(self, job: _Job[T]) -> None:
        for link in job.chain[-2:]:
            link.open = False
        with self._lock:
            self._unfinished -= 1
            idle = self._take_idle()
            holds = self._take_holds()
        _let_go(holds)
        for wake in idle:
            wake()

    def _take_idle(self) -> list[Callable[[], None]]:
        if self._unfinished:
            return []
        idle, self._idle = self._idle, []
        return idle

    def _take_holds(self) -> list[tuple[Release, Callable[[], None] | None]]:
        if self._unfinished > self._capacity and not self._disposed:
            return []
        holds, self._holds = self._holds, []
        return holds

    def _fail(self, error: BaseException, value: object) -> None:
        self.dispose()
        report(self._on_fault, Fault(error, value, str(self._site)))


def subscribe_async(
    source: Observable[T],
    handler: Callable[[T], Awaitable[object]],
    *,
    capacity: int = 0,
    hold_timeout: float | None = None,
    on_fault: OnFault | None = None,
) -> Listener[T]:
    """Subscribe a coroutine function: serial within the subscription, concurrent across several.

    The source waits while more than ``capacity`` values are unfinished; 0 means that it waits for
    the handler of each. A handler that keeps it waiting longer than ``hold_timeout`` seconds, or
    that raises, is reported to ``on_fault`` (default: stderr) and unsubscribed; the source goes on.
    Await ``drained()`` of the result for the handler to be done with all that arrived.
    """
    listener = Listener(handler, capacity=capacity, hold_timeout=hold_timeout, on_fault=on_fault)
    listener.attach(source)
    return listener


def _let_go(holds: list[tuple[Release, Callable[[], None] | None]]) -> None:
    for release, stop in holds:
        if stop is not None:
            stop()
        release.release()
