"""``debounce``: a value once there was silence after it."""

from collections.abc import Callable
from typing import TypeVar

from reactivex import Observable, abc

from rxagent.errors import UsageError
from rxagent.flow.pacer import NOW, Pacer, paced

T = TypeVar("T")


class _Debounce(Pacer[T, T]):
    def __init__(self, observer: abc.ObserverBase[T], seconds: float) -> None:
        super().__init__(observer)
        self._seconds = seconds
        self._kept: list[T] = []
        self._quiet_at = NOW

    def put(self, value: T) -> None:
        self._kept[:] = [value]
        self._quiet_at = self.now + self._seconds

    def due(self) -> float | None:
        if not self._kept:
            return None
        return NOW if self.ending is not None else self._quiet_at

    def take(self) -> T:
        return self._kept.pop()

    def hurry(self) -> None:
        self._quiet_at = NOW


def debounce(seconds: float) -> Callable[[Observable[T]], Observable[T]]:
    """The latest value, once none has come for ``seconds``.

    Drops what a newer value overtakes, and never holds the source. The last value always arrives,
    before the end or an error. One timer at most, however many values come.

        source    ab····c|
        debounce  ···b··c|     two columns
    """
    if not seconds >= 0:
        raise UsageError(f"debounce: seconds must be 0 or more, not {seconds}")
    return paced(lambda observer: _Debounce(observer, seconds))
