"""`merge_runs`: several streams as one, none of which can crowd out the others."""

import threading
from collections import deque
from functools import partial
from typing import Generic, TypeVar

from reactivex import Observable, abc
from reactivex.disposable import CompositeDisposable, Disposable

from rxagent.flow import Release, hold
from rxagent.flow.outlet import Outlet

T = TypeVar("T")


def merge_runs(*runs: Observable[T]) -> Observable[T]:
    """Several runs as one stream; while the consumer holds, they take turns.

        a  ─1──2──|
        b  ──3─4─────5|
        ─1─3──24──5|

    One value is on its way at a time. A run whose value has to wait is held meanwhile, and when the
    consumer is free again, the runs go round: a flood of one delays another by one value at most.
    Runs may come from any loop or thread. Completes when all have; an error of one is given after
    what waits, and ends the others' subscriptions (not their runs). Without runs it is empty.
    """

    def subscribe(observer: abc.ObserverBase[T], scheduler: abc.SchedulerBase | None = None) -> abc.DisposableBase:
        merge = _Merge(observer, len(runs))
        for index, run in enumerate(runs):
            merge.join(run, index, scheduler)
        merge.all_joined()
        return Disposable(merge.dispose)

    return Observable(subscribe)


class _Merge(Generic[T]):
    """What waits, by run, and whose turn it is. ``_busy``: a value is being delivered, or held."""

    def __init__(self, observer: abc.ObserverBase[T], count: int) -> None:
        self._outlet: Outlet[T] = Outlet(observer)
        self._upstream = CompositeDisposable()
        self._outlet.upstream.disposable = self._upstream
        self._lock = threading.RLock()
        self._waiting: list[deque[tuple[T, Release | None]]] = [deque() for _ in range(count)]
        self._turn = 0
        self._busy = False
        self._deliverer: int | None = None  # the thread on which a value is being delivered
        self._open = count + 1  # and one for the subscribing itself
        self._error: Exception | None = None

    def join(self, run: Observable[T], index: int, scheduler: abc.SchedulerBase | None) -> None:
        """Subscribes to a run."""
        if not self._outlet.stopped:
            self._upstream.add(
                run.subscribe(lambda value: self._arrive(index, value), self._fail, self._one_less, scheduler=scheduler)
            )

    def all_joined(self) -> None:
        """There are no further runs."""
        self._one_less()

    def dispose(self) -> None:
        """Delivers nothing more, and lets go all who wait."""
        self._outlet.dispose()
        for waiting in self._waiting:
            while waiting:
                _, release = waiting.popleft()
                if release is not None:
                    release()

    def _arrive(self, index: int, value: T) -> None:
        self._outlet.meet()
        with self._lock:
            if self._error is not None or self._outlet.stopped:
                return
            # Caused by the value that is being delivered, it would hold that one's emission, and wait for itself.
            waits = self._busy and self._deliverer != threading.get_ident()
            self._waiting[index].append((value, hold() if waits else None))
            if self._busy:
                return
            self._busy = True
        self._deliver()

    def _one_less(self) -> None:
        with self._lock:
            self._open -= 1
        self._settle()

    def _fail(self, error: Exception) -> None:
        with self._lock:
            self._error = self._error or error
        self._settle()

    def _settle(self) -> None:
        """Ends, if that is due."""
        with self._lock:
            if self._busy:
                return
            self._busy = True
        self._deliver()

    def _deliver(self) -> None:
        """Delivers what waits, run by run, until the consumer holds or nothing waits."""
        while (item := self._next()) is not None:
            value, release = item
            self._deliverer = threading.get_ident()
            pending = self._outlet.send(value)
            self._deliverer = None
            if pending is None:
                if release is not None:
                    release()
                continue
            # A value that did not wait is being delivered from within its own emission.
            pending.then(partial(self._free, release or hold()))
            return

    def _free(self, held: Release) -> None:
        held()
        self._deliver()

    def _next(self) -> tuple[T, Release | None] | None:
        with self._lock:
            count = len(self._waiting)
            for step in range(count):
                index = (self._turn + step) % count
                if self._waiting[index]:
                    self._turn = index + 1
                    return self._waiting[index].popleft()
            self._busy = False
            ended = self._error is not None or not self._open
        if ended:
            self._outlet.end(self._error)
        return None
