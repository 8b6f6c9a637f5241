"""``offload``: hand values over to another thread or loop, bounded and in order."""

from collections.abc import Callable
from typing import TypeVar

from reactivex import Observable, abc
from reactivex.disposable import Disposable

from rxagent.errors import UsageError
from rxagent.flow.handover import Handover
from rxagent.flow.outlet import Outlet

T = TypeVar("T")


def offload(scheduler: abc.SchedulerBase, capacity: int = 1024) -> Callable[[Observable[T]], Observable[T]]:
    """Deliver on ``scheduler`` (a thread, a pool, another loop, a GUI): bounded, ordered, in batches.

    Lossless: with more than ``capacity`` values queued the source is held until half of them are
    delivered, and delivery pauses while a consumer holds. A source that can't wait makes the queue
    grow; put ``overflow`` before. The end and errors come after what is queued. ``LoopClock(loop)``
    is the scheduler of an asyncio loop.

        source   a b c d|
        offload  ~~a b c d|     on the scheduler's thread
    """
    if capacity < 1:
        raise UsageError(f"offload: capacity must be at least 1, not {capacity}")
    if not hasattr(scheduler, "schedule"):  # a loop or an executor, by an easy slip
        raise UsageError(f"offload: {scheduler!r} is no scheduler; for an asyncio loop give LoopClock(loop)")

    def operator(source: Observable[T]) -> Observable[T]:
        def subscribe(observer: abc.ObserverBase[T], _: abc.SchedulerBase | None = None) -> abc.DisposableBase:
            def schedule(drain: Callable[[], None]) -> abc.DisposableBase:
                def action(_scheduler: abc.SchedulerBase, _state: object = None) -> None:
                    drain()

                return scheduler.schedule(action)

            handover = Handover(Outlet(observer), capacity, schedule)
            handover.outlet.upstream.disposable = source.subscribe(handover.push, handover.finish, handover.finish)
            return Disposable(handover.dispose)

        return Observable(subscribe)

    return operator
