"""``frames``: a flood of values as lists at a steady pace."""

from collections.abc import Callable
from itertools import islice
from typing import TypeVar

from reactivex import Observable, abc

from rxagent.errors import UsageError
from rxagent.flow.pacer import NOW, Pacer, paced

T = TypeVar("T")


class _Frames(Pacer[T, list[T]]):
    def __init__(self, observer: abc.ObserverBase[list[T]], period: float, max_items: int) -> None:
        super().__init__(observer)
        self._period = period
        self._max_items = max_items
        self._kept: list[T] = []
        self._next = NOW

    def arrive(self, value: T) -> None:
        # The common case, a value between two frames, costs an append.
        if self._timer is None or len(self._kept) + 1 >= self._max_items or self.ending is not None:
            super().arrive(value)
        else:
            self._kept.append(value)

    def put(self, value: T) -> None:
        self._kept.append(value)

    def due(self) -> float | None:
        if not self._kept:
            return None
        if self.ending is not None or len(self._kept) >= self._max_items:
            return NOW
        return self._next

    def take(self) -> list[T]:
        self._next = self.now + self._period
        kept = self._kept
        if len(kept) <= self._max_items:
            self._kept = []
            return kept
        self._kept = kept[self._max_items :]
        return list(islice(kept, self._max_items))

    def full(self) -> bool:
        return len(self._kept) >= self._max_items

    def hurry(self) -> None:
        self._next = NOW


def frames(period: float = 1 / 60, max_items: int = 8192) -> Callable[[Observable[T]], Observable[list[T]]]:
    """The first value at once, then at most one non-empty list per ``period`` seconds. Lossless.

    The rest is flushed before the end, also before an error. A list has at most ``max_items``: more
    than that within a period means an early flush, and holds the source while a consumer holds. No
    timer runs while there is nothing to deliver.

        source  abc·d······e|
        frames  a··(bcd)···e|     a period is three columns
    """
    if not period > 0:
        raise UsageError(f"frames: period is in seconds and must be above 0, not {period}")
    if max_items < 1:
        raise UsageError(f"frames: max_items must be at least 1, not {max_items}")
    return paced(lambda observer: _Frames(observer, period, max_items))
