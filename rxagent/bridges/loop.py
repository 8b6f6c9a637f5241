"""`on_loop`: the operator that hands a stream over to a GUI's event loop, whatever the toolkit."""

from collections.abc import Callable
from typing import TypeVar

from reactivex import Observable, abc
from reactivex.disposable import Disposable

from rxagent.bridges.crossing import Crossing
from rxagent.bridges.frame import Frame
from rxagent.bridges.port import Port
from rxagent.errors import UsageError
from rxagent.flow.hub import Callbacks, callbacks
from rxagent.state import AgentState

T = TypeVar("T")

PERIOD = 1 / 60
CAPACITY = 8192


class _Target(abc.ObserverBase[Frame[T]]):
    """The three callbacks of a subscriber, as they are."""

    def __init__(self, given: Callbacks[Frame[T]]) -> None:
        self._on_next, self._on_error, self._on_completed = given

    def on_next(self, value: Frame[T]) -> None:
        self._on_next(value)

    def on_error(self, error: Exception) -> None:
        self._on_error(error)

    def on_completed(self) -> None:
        self._on_completed()


class _Frames(Observable[Frame[T]]):
    """Overrides ``subscribe``: the stock wrapper would unsubscribe a callback that raised once."""

    def __init__(self, open_: Callable[[abc.ObserverBase[Frame[T]]], abc.DisposableBase]) -> None:
        super().__init__()
        self._open = open_

    def subscribe(
        self,
        on_next: abc.ObserverBase[Frame[T]] | abc.OnNext[Frame[T]] | None = None,
        on_error: abc.OnError | None = None,
        on_completed: abc.OnCompleted | None = None,
        *,
        scheduler: abc.SchedulerBase | None = None,
    ) -> abc.DisposableBase:
        """Subscribe, from any thread; everything comes on the GUI thread. ``scheduler`` is unused."""
        return self._open(_Target(callbacks(on_next, on_error, on_completed)))


def on_loop(
    port: Port,
    *,
    period: float = PERIOD,
    capacity: int = CAPACITY,
    state: Callable[[], AgentState] | None = None,
) -> Callable[[Observable[T]], Observable[Frame[T]]]:
    """Frames of the source's values, on the GUI thread of ``port``: at most one per ``period`` seconds. Lossless.

    The first value comes at once, the rest within a period. The end, also an error, comes right
    after a last frame that says ``final``. At most ``capacity`` values are queued: a full queue
    brings the next frame forward, and holds the source while the GUI can't keep up. A callback
    that raises is reported (``agent.errors``) and gets the next frame all the same. Disposing, or
    closing the window, stops at once and lets the source go on. ``state`` is asked along with
    every value, on the source's thread; `Frame.state` is what it said for the last one.

        source   abc·d······e|
        on_loop  a··(bcd)···e|     on the GUI thread; a period is three columns
    """
    if period <= 0:
        raise UsageError(f"on_loop: period is in seconds and must be above 0, not {period}")
    if capacity < 1:
        raise UsageError(f"on_loop: capacity must be at least 1, not {capacity}")

    def operator(source: Observable[T]) -> Observable[Frame[T]]:
        def subscribe(observer: abc.ObserverBase[Frame[T]]) -> abc.DisposableBase:
            crossing: Crossing[T] = Crossing(observer, port, period, capacity, state)
            crossing.outlet.upstream.disposable = source.subscribe(crossing.push, crossing.finish, crossing.finish)
            return Disposable(crossing.dispose)

        frames: _Frames[T] = _Frames(subscribe)
        return frames

    return operator
