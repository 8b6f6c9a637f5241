"""``sample``: the latest value at fixed times."""

import math
from collections.abc import Callable
from typing import TypeVar

from reactivex import Observable, abc

from rxagent.errors import UsageError
from rxagent.flow.loops import running_loop
from rxagent.flow.pacer import NOW, Pacer, paced

T = TypeVar("T")


class _Sample(Pacer[T, T]):
    def __init__(self, observer: abc.ObserverBase[T], seconds: float) -> None:
        super().__init__(observer)
        loop = running_loop()
        self._start = None if loop is None else loop.time()
        self._seconds = seconds
        self._kept: list[T] = []
        self._tick = NOW

    def put(self, value: T) -> None:
        if self._start is None:  # subscribed outside a loop: time starts with the first value
            self._start = self.now
        if not self._kept:
            self._tick = self._start + (math.floor((self.now - self._start) / self._seconds) + 1) * self._seconds
        self._kept[:] = [value]

    def due(self) -> float | None:
        if not self._kept:
            return None
        return NOW if self.ending is not None else self._tick

    def take(self) -> T:
        return self._kept.pop()

    def hurry(self) -> None:
        self._tick = NOW
        self._start = None


def sample(seconds: float) -> Callable[[Observable[T]], Observable[T]]:
    """The latest value every ``seconds`` after the subscription, if there is a new one.

    Drops what a newer value overtakes, and never holds the source. The last value always arrives,
    before the end or an error, neither of which waits for the next time. No timer runs while there
    is nothing to deliver.

        source  ab·c······d|
        sample  ··b··c····d|     every three columns
    """
    if not seconds > 0:
        raise UsageError(f"sample: seconds must be above 0, not {seconds}")
    return paced(lambda observer: _Sample(observer, seconds))
