"""``overflow``: what to do when a source that can't wait is faster than its consumers."""

import threading
from collections.abc import Callable
from typing import Literal, TypeVar

from reactivex import Observable, abc
from reactivex.disposable import Disposable

from rxagent.errors import BufferOverflow, UsageError
from rxagent.flow.handover import Handover
from rxagent.flow.loops import call_on, running_loop
from rxagent.flow.outlet import Outlet

T = TypeVar("T")

OverflowPolicy = Literal["drop_oldest", "drop_newest", "latest", "error"]


class _Buffer(Handover[T]):
    """A queue that drains where values come in, and after a hold on the loop that ran there."""

    batch_seconds = float("inf")  # there is nobody to give a turn to

    def __init__(self, outlet: Outlet[T], guard: "Overflow") -> None:
        super().__init__(outlet, guard.capacity, _at_once)
        self._guard = guard
        self._loop = running_loop()

    def push(self, value: T) -> None:
        guard = self._guard
        if self.size >= guard.capacity and self._end is None:
            if guard.policy == "drop_newest":
                guard.drop(value)
                return
            if guard.policy == "error":
                guard.drop(value)
                self.finish(BufferOverflow(f"overflow: {guard.capacity} values were waiting for a consumer that holds"))
                self.outlet.upstream.dispose()
                return
            try:
                oldest = self._queue.popleft()
            except IndexError:  # the consumer took it in the meantime: there is room
                pass
            else:
                guard.drop(oldest)
        super().push(value)

    def _resume(self) -> None:
        loop = self._loop
        if loop is None or loop.is_closed():
            self._drain()
        else:
            call_on(loop, self._drain)


def _at_once(drain: Callable[[], None]) -> None:
    drain()


class Overflow:
    """The operator ``overflow`` makes; ``dropped`` counts what it lost, over all subscriptions."""

    def __init__(self, policy: OverflowPolicy, capacity: int, on_drop: Callable[..., object] | None) -> None:
        self.policy: OverflowPolicy = policy
        self.capacity = 1 if policy == "latest" else capacity
        self._on_drop = on_drop
        self._lock = threading.Lock()
        self._dropped = 0

    @property
    def dropped(self) -> int:
        """How many values were dropped so far."""
        return self._dropped

    def __call__(self, source: Observable[T]) -> Observable[T]:
        """Apply the operator."""

        def subscribe(observer: abc.ObserverBase[T], _: abc.SchedulerBase | None = None) -> abc.DisposableBase:
            buffer = _Buffer(Outlet(observer), self)
            buffer.outlet.upstream.disposable = source.subscribe(buffer.push, buffer.finish, buffer.finish)
            return Disposable(buffer.dispose)

        return Observable(subscribe)

    def drop(self, value: object) -> None:
        """Count ``value`` as lost."""
        with self._lock:
            self._dropped += 1
        if self._on_drop is not None:
            self._on_drop(value)


def overflow(policy: OverflowPolicy, capacity: int = 1024, *, on_drop: Callable[..., object] | None = None) -> Overflow:
    """Never hold the source; while a consumer holds, keep ``capacity`` values and drop by ``policy``.

    For sources that can't wait: a Subject, a timer, a sensor. ``drop_oldest`` and ``drop_newest``
    say what goes, ``latest`` keeps one value, the newest, ``error`` ends with ``BufferOverflow``
    after what is kept. Drops are counted in ``dropped`` of the operator and given to ``on_drop``.
    Values go on where the source sends them, or, after a hold, on the loop that ran there, or else
    where the consumer released.

        source                  a b c d e|
        overflow("latest")      a····e|     while the consumer holds a
    """
    if policy not in ("drop_oldest", "drop_newest", "latest", "error"):
        raise UsageError(f"overflow: unknown policy {policy!r}; use drop_oldest, drop_newest, latest or error")
    if capacity < 1:
        raise UsageError(f"overflow: capacity must be at least 1, not {capacity}")
    return Overflow(policy, capacity, on_drop)
