"""`on_loop`: the operator that hands a stream over to a GUI's event loop, whatever the toolkit."""

from collections.abc import Callable
from typing import TypeVar

from reactivex import Observable, abc
from reactivex.disposable import Disposable

from rxagent.bridges.crossing import Crossing
from rxagent.bridges.frame import Frame
from rxagent.bridges.port import Port
from rxagent.errors import UsageError
from rxagent.flow.direct import Direct
from rxagent.state import AgentState

T = TypeVar("T")

PERIOD = 1 / 60
CAPACITY = 8192


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
    brings the next frame forward, and holds the source while the GUI can't keep up; a source that
    can't wait makes it grow (put ``overflow`` before). A callback that raises is reported
    (``agent.errors``) and gets the next frame all the same. Disposing, or closing the window,
    stops at once and lets the source go on. ``state`` is asked along with every value, on the
    source's thread; `Frame.state` is what it said for the last one.

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

        return Direct(subscribe)  # the stock wrapper would unsubscribe a callback that raised once

    return operator
