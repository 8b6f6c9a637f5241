"""``throttle_first``: a value, then none for a while."""

import time
from collections.abc import Callable
from typing import TypeVar

from reactivex import Observable, abc

from rxagent.errors import UsageError
from rxagent.flow.loops import running_loop

T = TypeVar("T")


def throttle_first(seconds: float) -> Callable[[Observable[T]], Observable[T]]:
    """A value at once, then none for ``seconds``; what comes in between is dropped, the last too.

    Synchronous: it stays within the emission, so a hold downstream holds the source. By the clock
    of the loop it is subscribed on, or else its first value comes in on.

        source          ab·cd··e|
        throttle_first  a··c···e|     three columns
    """
    if not seconds > 0:
        raise UsageError(f"throttle_first: seconds must be above 0, not {seconds}")

    def operator(source: Observable[T]) -> Observable[T]:
        def subscribe(observer: abc.ObserverBase[T], _: abc.SchedulerBase | None = None) -> abc.DisposableBase:
            open_at = float("-inf")
            loop = running_loop()

            def on_next(value: T) -> None:
                nonlocal open_at, loop
                loop = loop or running_loop()
                now = time.monotonic() if loop is None else loop.time()
                if now >= open_at:
                    open_at = now + seconds
                    observer.on_next(value)

            return source.subscribe(on_next, observer.on_error, observer.on_completed)

        return Observable(subscribe)

    return operator
