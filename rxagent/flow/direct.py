"""``Direct``: an Observable without the stock wrapper around every subscription."""

from collections.abc import Callable
from typing import Generic, TypeVar

from reactivex import Observable, abc

from rxagent.flow.hub import Callbacks, callbacks

T = TypeVar("T")


class Handlers(abc.ObserverBase[T], Generic[T]):
    """An observer that is its three callbacks."""

    def __init__(self, given: Callbacks[T]) -> None:
        self.on_next, self.on_error, self.on_completed = given  # pyright: ignore[reportAttributeAccessIssue] each is what it stands for

    def on_next(self, value: T) -> None:
        """The next value."""

    def on_error(self, error: Exception) -> None:
        """The end, by an error."""

    def on_completed(self) -> None:
        """The end."""


class Direct(Observable[T]):
    """Hands a subscriber's callbacks straight to ``start``.

    The stock wrapper (stop after the end, stop after dispose) costs a call per value. It is not needed where
    ``start`` subscribes to a source that does the same: a hub, a stock Observable, or another `Direct`.
    """

    def __init__(self, start: Callable[[abc.ObserverBase[T]], abc.DisposableBase]) -> None:
        super().__init__()
        self._start = start

    def subscribe(
        self,
        on_next: abc.ObserverBase[T] | abc.OnNext[T] | None = None,
        on_error: abc.OnError | None = None,
        on_completed: abc.OnCompleted | None = None,
        *,
        scheduler: abc.SchedulerBase | None = None,
    ) -> abc.DisposableBase:
        """Subscribe; ``scheduler`` is unused."""
        return self._start(Handlers(callbacks(on_next, on_error, on_completed)))
