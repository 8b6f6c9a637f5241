"""``from_aiter``: an async iterable as a cold Observable that waits for its consumers."""

import asyncio
from collections.abc import AsyncIterable, Callable
from typing import Generic, TypeVar

from reactivex import Observable, abc

from rxagent.flow.emission import Gate, emit
from rxagent.flow.faults import Fault, call_site, print_fault
from rxagent.flow.hub import OBSERVER_FAULTS
from rxagent.flow.loops import call_on, current_loop, on_loop

T = TypeVar("T")


class _Pull(abc.DisposableBase, Generic[T]):
    """One subscription: the task that iterates."""

    def __init__(self, items: AsyncIterable[T], observer: abc.ObserverBase[T]) -> None:
        self._items = items
        self._observer = observer
        self._gate = Gate()
        self._site = call_site()
        self._loop = current_loop("from_aiter")
        self._done = False
        self._task = self._loop.create_task(self._run())

    def dispose(self) -> None:
        """Stop iterating and close the iterator; from any thread."""
        if self._done:
            return
        self._done = True
        self._gate.open()
        # From within its own on_next the task isn't cancelled but stops by itself: it has to close
        # the iterator, and a cancelled task can't wait for that undisturbed.
        if not on_loop(self._loop):
            call_on(self._loop, self._task.cancel)
        elif asyncio.current_task() is not self._task:
            self._task.cancel()

    async def _run(self) -> None:
        iterator = aiter(self._items)
        error: Exception | None = None
        try:
            async for value in iterator:
                if self._done or not await self._give(value):
                    break
        except Exception as raised:
            error = raised
        finally:
            close: Callable[[], object] | None = getattr(iterator, "aclose", None)
            if close is not None:
                closing = close()
                if asyncio.iscoroutine(closing) or hasattr(closing, "__await__"):
                    await closing  # pyright: ignore[reportGeneralTypeIssues]  # duck-typed, as in contextlib.aclosing
        self._end(error)

    async def _give(self, value: T) -> bool:
        try:
            await emit(self._observer.on_next, value, self._gate)
        except OBSERVER_FAULTS as error:
            task = asyncio.current_task()
            if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
                raise  # we are cancelled, not something the observer looked at
            self._done = True
            print_fault(Fault(error, value, str(self._site)))
        return not self._done

    def _end(self, error: Exception | None) -> None:
        if self._done:
            return
        self._done = True  # from here on a dispose is no reason to cancel the task that is ending
        try:
            if error is None:
                self._observer.on_completed()
            else:
                self._observer.on_error(error)
        except OBSERVER_FAULTS as fault:
            print_fault(Fault(fault, error, str(self._site)))


def from_aiter(items: AsyncIterable[T]) -> Observable[T]:
    """An Observable that iterates ``items`` from the moment of subscription, on the running loop.

    The next item is asked for when nobody holds the last one. Disposing cancels the iteration and
    closes the iterator. Without a running loop the subscriber gets ``NoRunningLoop``. An iterator
    can be subscribed once, an iterable as often as it can be iterated.
    """

    def subscribe(observer: abc.ObserverBase[T], _: abc.SchedulerBase | None = None) -> abc.DisposableBase:
        return _Pull(items, observer)

    return Observable(subscribe)
