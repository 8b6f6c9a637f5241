"""``conflate``: the latest value at a steady pace."""

from collections.abc import Callable
from typing import TypeVar

from reactivex import Observable, abc

from rxagent.errors import UsageError
from rxagent.flow.pacer import NOW, Pacer, paced

T = TypeVar("T")


class _Conflate(Pacer[T, T]):
    def __init__(self, observer: abc.ObserverBase[T], period: float) -> None:
        super().__init__(observer)
        self._period = period
        self._kept: list[T] = []
        self._next = NOW

    def put(self, value: T) -> None:
        self._kept[:] = [value]

    def due(self) -> float | None:
        if not self._kept:
            return None
        return NOW if self.ending is not None else self._next

    def take(self) -> T:
        self._next = self.now + self._period
        return self._kept.pop()

    def hurry(self) -> None:
        self._next = NOW


def conflate(period: float = 1 / 60) -> Callable[[Observable[T]], Observable[T]]:
    """The first value at once, then at most one per ``period`` seconds: the latest.

    Drops what a newer value overtakes, and never holds the source: while a consumer holds, the
    latest value waits. The last value always arrives, before the end or an error. No timer runs
    while there is nothing to deliver.

        source    abc·d······e|
        conflate  a··d·······e|   a period is three columns
    """
    if not period > 0:
        raise UsageError(f"conflate: period is in seconds and must be above 0, not {period}")
    return paced(lambda observer: _Conflate(observer, period))
