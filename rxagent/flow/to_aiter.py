"""``to_aiter``: an Observable as an async iterator that slows its source down to its own pace."""

import threading
from collections import deque
from collections.abc import AsyncIterator, Callable
from types import TracebackType
from typing import Generic, Self, TypeVar

from reactivex import Observable, abc

from rxagent.errors import UsageError
from rxagent.flow.holds import Release, hold
from rxagent.flow.loops import wakeup

T = TypeVar("T")


class _Inbox(Generic[T]):
    """What came in and isn't taken yet; the source knows this part only, never the iterator."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._low = capacity // 2  # as in a handover: waking the source is dear, so not for every value
        self._values: deque[T] = deque()
        self._holds: list[Release] = []
        self._wakes: list[Callable[[], None]] = []
        self._lock = threading.Lock()
        self._end: tuple[Exception | None] | None = None

    def put(self, value: T) -> None:
        if self._end is not None:
            return
        self._values.append(value)
        if len(self._values) > self._capacity:
            with self._lock:  # so that nobody lets go what was looked at before this value came
                if len(self._values) > self._capacity:
                    self._holds.append(hold())
            if len(self._values) <= self._low:  # taken before the hold was there to be seen
                self._relax()
        self._wake()

    def finish(self, error: Exception | None = None) -> None:
        if self._end is None:
            self._end = (error,)
        self._wake()

    def close(self) -> None:
        """Forget everything: the iterator is gone."""
        self._end = (None,)
        self._values.clear()
        self._relax()
        self._wake()

    @property
    def ready(self) -> bool:
        """Whether there is a value to take."""
        return bool(self._values)

    def take(self) -> T:
        """The next value."""
        value = self._values.popleft()
        if self._holds:
            self._relax()
        return value

    def check_end(self) -> None:
        """Raise what the source ended with, once; afterwards, that the iteration is over."""
        if self._end is not None and not self._values:
            error, self._end = self._end[0], (None,)
            raise StopAsyncIteration if error is None else error

    async def wait(self) -> None:
        """Return when there may be something new."""
        future, wake = wakeup()
        with self._lock:
            self._wakes.append(wake)
        if self._values or self._end is not None:
            self._wake()
        try:
            await future
        finally:
            with self._lock:
                if wake in self._wakes:
                    self._wakes.remove(wake)

    def _wake(self) -> None:
        if self._wakes:
            with self._lock:
                wakes, self._wakes = self._wakes, []
            for wake in wakes:
                wake()

    def _relax(self) -> None:
        """Let the source go on once half the room is free."""
        with self._lock:
            if len(self._values) > self._low:
                return
            holds, self._holds = self._holds, []
        for release in holds:
            release.release()


class ObservableIterator(AsyncIterator[T]):
    """An async iterator over an Observable; see ``to_aiter``."""

    def __init__(self, inbox: _Inbox[T], subscription: abc.DisposableBase) -> None:
        self._inbox = inbox
        self._subscription = subscription

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T:
        inbox = self._inbox
        try:
            while True:
                if inbox.ready:
                    return inbox.take()
                inbox.check_end()
                await inbox.wait()
        finally:
            # The traceback of a cancelled task keeps this frame, which must not keep the subscription.
            del self

    def dispose(self) -> None:
        """Unsubscribe and end the iteration, from any thread."""
        self._subscription.dispose()
        self._inbox.close()

    async def aclose(self) -> None:
        """Unsubscribe and end the iteration; what ``contextlib.aclosing`` calls."""
        self.dispose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.dispose()

    def __del__(self) -> None:
        # A loop that is left early drops its iterator, and with it the subscription, at once.
        self.dispose()


def to_aiter(source: Observable[T], capacity: int = 64) -> ObservableIterator[T]:
    """Subscribe now, and iterate: ``async for value in to_aiter(source)``.

    Lossless: with more than ``capacity`` values waiting the source is held, until half of them are
    taken; 0 makes it wait for each. An error of the source is raised after what came before it. Leaving the loop
    early unsubscribes at once (hold no other reference, or use ``async with``). It may be iterated
    on any loop, also while the source runs on another or on a thread.
    """
    if capacity < 0:
        raise UsageError(f"to_aiter: capacity must be 0 or more, not {capacity}")
    inbox = _Inbox[T](capacity)
    return ObservableIterator(inbox, source.subscribe(inbox.put, inbox.finish, inbox.finish))
