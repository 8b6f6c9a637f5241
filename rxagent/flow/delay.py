"""``delay``: everything later, by the loop's clock, keeping back-pressure."""

from collections import deque
from collections.abc import Callable
from typing import TypeVar

from reactivex import Observable, abc

from rxagent.errors import UsageError
from rxagent.flow.pacer import NOW, Pacer, paced

T = TypeVar("T")


class _Delay(Pacer[T, T]):
    def __init__(self, observer: abc.ObserverBase[T], seconds: float, capacity: int) -> None:
        super().__init__(observer)
        self._seconds = seconds
        self._capacity = capacity
        self._kept: deque[tuple[float, T]] = deque()
        self._end_due = NOW

    def put(self, value: T) -> None:
        self._kept.append((self.now + self._seconds, value))

    def due(self) -> float | None:
        return self._kept[0][0] if self._kept else None

    def take(self) -> T:
        return self._kept.popleft()[1]

    def full(self) -> bool:
        return len(self._kept) > self._capacity

    def finish(self, error: Exception | None) -> None:
        if self.ending is None and self.loop is not None:
            self._end_due = self.loop.time() + self._seconds
        super().finish(error)

    def end_due(self) -> float:
        return self._end_due

    def hurry(self) -> None:
        self._kept = deque((NOW, value) for _, value in self._kept)


def delay(seconds: float, capacity: int = 8192) -> Callable[[Observable[T]], Observable[T]]:
    """Each value, and the end, ``seconds`` later. Lossless, also before an error.

    With more than ``capacity`` values on the way the source is held; while a consumer holds, what
    is due waits.

        source  a·b·|
        delay   ···a·b·|     three columns
    """
    if not seconds >= 0:
        raise UsageError(f"delay: seconds must be 0 or more, not {seconds}")
    if capacity < 1:
        raise UsageError(f"delay: capacity must be at least 1, not {capacity}")
    return paced(lambda observer: _Delay(observer, seconds, capacity))
