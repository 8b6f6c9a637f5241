"""A bounded queue between two threads (or loops): one end fills it and holds, the other drains it."""

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

from reactivex import abc

from rxagent.flow.holds import Release, hold
from rxagent.flow.outlet import Outlet

T = TypeVar("T")

_CLOCK_EVERY = 32

Schedule = Callable[[Callable[[], None]], abc.DisposableBase | None]


class Handover(Generic[T]):
    """Takes values with ``push`` on any thread and sends them where ``schedule`` runs things.

    At most one drain is scheduled or running at any time, so order is kept whatever threads
    ``schedule`` uses. A drain goes on until the queue is empty, but for at most 4 ms, then it lets
    others have their turn. Upstream is held from ``capacity + 1`` values on until half is gone:
    waking another thread is dear, so it is done once per half queue instead of once per value.
    """

    batch_seconds = 0.004

    def __init__(self, outlet: Outlet[T], capacity: int, schedule: Schedule) -> None:
        self.outlet = outlet
        self._capacity = capacity
        self._low = capacity // 2
        self._schedule = schedule
        self._queue: deque[T] = deque()
        self._holds: list[Release] = []
        self._active = False
        self._lock = threading.Lock()
        self._end: tuple[Exception | None] | None = None
        self._scheduled: abc.DisposableBase | None = None

    @property
    def idle(self) -> bool:
        """Whether nothing is queued, being delivered or about to end."""
        return not self._active

    @property
    def size(self) -> int:
        """How many values are queued."""
        return len(self._queue)

    def push(self, value: T) -> None:
        """Queue ``value``; holds the emission it came in when the queue is full."""
        self.outlet.meet()
        if self._end is not None or self.outlet.stopped:
            return
        queue = self._queue
        queue.append(value)
        if not self._active:
            self._activate()
        if len(queue) > self._capacity:
            with self._lock:  # so that no drain lets go what it looked at before this value came
                if len(queue) > self._capacity:
                    self._holds.append(hold())
            if len(queue) <= self._low:  # drained before the hold was there to be seen
                self._relax()

    def finish(self, error: Exception | None = None) -> None:
        """Deliver the end after what is queued."""
        if self._end is None:
            self._end = (error,)
            if not self._active:
                self._activate()

    def dispose(self) -> None:
        """Drop what is queued and release what is held; from any thread."""
        self.outlet.dispose()
        self._queue.clear()
        self._relax()
        scheduled = self._scheduled
        if scheduled is not None:
            scheduled.dispose()

    def _activate(self) -> None:
        with self._lock:
            if self._active:
                return
            self._active = True
        self._start()

    def _start(self) -> None:
        if self.outlet.stopped:
            return
        try:
            self._scheduled = self._schedule(self._drain)
        except Exception as error:  # the other side is gone: a closed loop, a disposed scheduler
            self.outlet.fail(error, None)
            self.dispose()

    def _resume(self) -> None:
        self._start()

    def _drain(self) -> None:
        queue, send = self._queue, self.outlet.send
        until = time.monotonic() + self.batch_seconds
        left = _CLOCK_EVERY
        while not self.outlet.stopped:
            try:
                value = queue.popleft()
            except IndexError:
                if self._rest():
                    return
                continue
            pending = send(value)
            if self._holds:
                self._relax()
            if pending is not None:
                pending.then(self._resume)
                return
            left -= 1
            if not left:
                left = _CLOCK_EVERY
                if time.monotonic() > until:
                    self._start()
                    return
        self.dispose()

    def _rest(self) -> bool:
        """End, or become idle; false when there is more to do after all."""
        if self._end is not None and not self._queue:
            self.outlet.end(self._end[0])
            return True
        # Idle first, then look again: whoever pushed in between has seen one or the other.
        self._active = False
        if not self._queue and self._end is None:
            return True
        with self._lock:
            if self._active:  # that one has started a drain of its own
                return True
            self._active = True
        return False

    def _relax(self) -> None:
        """Let the source go on once half the queue is free."""
        with self._lock:
            if len(self._queue) > self._low:
                return
            holds, self._holds = self._holds, []
        for release in holds:
            release.release()
