"""The hub: one source, many observers, none of whom can harm the others.

- Hot path without locks: a tuple of observers, replaced (never changed) on subscribe and dispose.
- A value sent while another is being delivered waits its turn: every observer sees one order.
- An observer that raises is reported and dropped.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from inspect import CO_COROUTINE
from typing import Generic, TypeVar, cast

from reactivex import Observable, abc

from rxagent.errors import UsageError
from rxagent.flow.faults import CallSite, Fault, OnFault, call_site, print_fault, report
from rxagent.flow.holds import Owner, local

T = TypeVar("T")

# asyncio.CancelledError is no Exception; raised by an observer (a cancelled future's result())
# it must not look like the cancellation of the task that happens to emit.
OBSERVER_FAULTS = (Exception, asyncio.CancelledError)


def ignore(_: object) -> None:
    """Do nothing with a value."""


def _nothing() -> None:
    return None


def _raise(error: Exception) -> None:
    raise error


Callbacks = tuple[Callable[[T], object], Callable[[Exception], object], Callable[[], object]]


class Entry(Owner, abc.DisposableBase, Generic[T]):
    """One observer of a hub: its three callbacks, its holds, and the subscription itself."""

    __slots__ = ("_hub", "on_completed", "on_error", "on_next", "site")

    def __init__(
        self,
        observer: Callbacks[T],
        hub: "Hub[T]",
    ) -> None:
        super().__init__()
        self.on_next, self.on_error, self.on_completed = observer
        self.site: CallSite = call_site()
        self._hub = hub

    def fail(self, error: BaseException, value: object) -> None:
        """Unsubscribe and report."""
        self._hub.drop(self, error, value)

    def report(self, error: BaseException, value: object) -> None:
        """Report only."""
        self._hub.report(self, error, value)

    def dispose(self) -> None:
        """Unsubscribe: nothing is delivered from now on, what is held is released."""
        self.close()
        self._hub.leave(self)
        self.release_holds()

    def close(self) -> None:
        """Deliver nothing any more, also from a dispatch that is under way."""
        self.live = False
        self.on_next = ignore
        self.on_error = ignore
        self.on_completed = _nothing


def callbacks(
    on_next: abc.ObserverBase[T] | abc.OnNext[T] | None,
    on_error: abc.OnError | None,
    on_completed: abc.OnCompleted | None,
) -> Callbacks[T]:
    """The three callbacks of what ``subscribe`` was given: an observer, or functions.

    Raises:
        UsageError: ``on_next`` is a coroutine function, which nobody would await.
    """
    if callable(getattr(on_next, "on_next", None)):  # an observer by shape, as reactivex takes them
        shaped = cast("abc.ObserverBase[T]", on_next)
        return shaped.on_next, shaped.on_error, shaped.on_completed
    function = cast("abc.OnNext[T] | None", on_next)
    if getattr(getattr(function, "__code__", None), "co_flags", 0) & CO_COROUTINE:
        raise UsageError(
            f"{function!r:.200} is a coroutine function, and subscribe(…) awaits nothing: "
            "take agent.subscribe(…) or flow.subscribe_async(…), which do, and which the source waits for"
        )
    return function or ignore, on_error or _raise, on_completed or _nothing


class Hub(Observable[T], abc.ObserverBase[T]):
    """Multicast: an Observable that is fed by ``on_next``, ``on_error`` and ``on_completed``.

    Feed it from one thread: of several, none loses a value and all observers see one order, but a
    value may be delivered by another's thread, whose emission is then the one that is held.
    Subscribe and dispose are safe from any thread and at any time: an observer that joins during a
    delivery gets the next value, one that leaves gets no more. ``on_fault`` hears of observers that
    raised; by default they are printed to stderr.
    """

    def __init__(self, on_fault: OnFault | None = None) -> None:
        super().__init__()
        self._entries: tuple[Entry[T], ...] = ()
        self._on_fault = on_fault or print_fault
        self._busy = False
        self._waiting: deque[Callable[[], None]] | tuple[()] = ()  # most hubs never need one
        self._ended = False
        self._error: Exception | None = None

    @property
    def observed(self) -> bool:
        """Whether anybody is subscribed."""
        return bool(self._entries)

    def subscribe(
        self,
        on_next: abc.ObserverBase[T] | abc.OnNext[T] | None = None,
        on_error: abc.OnError | None = None,
        on_completed: abc.OnCompleted | None = None,
        *,
        scheduler: abc.SchedulerBase | None = None,
    ) -> abc.DisposableBase:
        """Subscribe; after the end, the end is all there is to hear. ``scheduler`` is unused."""
        # Overrides subscribe, not _subscribe_core: the stock wrapper costs a call per value and
        # its guard against values after dispose is what Entry.close does.
        entry = Entry(callbacks(on_next, on_error, on_completed), self)
        with self.lock:
            if not self._ended:
                self._entries = (*self._entries, entry)
                return entry
        self._finish(entry)
        return entry

    def on_next(self, value: T) -> None:
        """Deliver ``value`` to every observer; what comes in meanwhile, from within too, waits its turn."""
        if self._busy or self._waiting:
            self._wait(lambda: self._serve(self._entries, value))
            self._catch_up()
            return
        self._busy = True
        slot = local.slot
        owner = slot.owner
        try:
            for entry in self._entries:
                slot.owner = entry
                try:
                    entry.on_next(value)
                except OBSERVER_FAULTS as error:
                    self.drop(entry, error, value)
        except BaseException:  # a KeyboardInterrupt or the like: what waits must not come later, out of turn
            self._waiting = ()
            raise
        finally:
            slot.owner = owner
            self._busy = False
        if self._waiting:
            self._catch_up()

    def on_error(self, error: Exception) -> None:
        """End with ``error``; later calls do nothing."""
        self._end(error)

    def on_completed(self) -> None:
        """End; later calls do nothing."""
        self._end(None)

    def _end(self, error: Exception | None) -> None:
        self._wait(lambda: self._end_now(error))
        self._catch_up()

    def _wait(self, call: Callable[[], None]) -> None:
        with self.lock:
            if not self._waiting:
                self._waiting = deque()
            self._waiting.append(call)

    def _end_now(self, error: Exception | None) -> None:
        with self.lock:
            if self._ended:
                return
            self._ended = True
            self._error = error
            entries, self._entries = self._entries, ()
        for entry in entries:
            self._finish(entry)

    def _finish(self, entry: Entry[T]) -> None:
        # An end is no disposal, though reactivex disposes after one: who still handles the last value may hold on.
        entry.holds = set()
        error = self._error
        slot = local.slot
        owner = slot.owner
        slot.owner = entry
        try:
            if error is None:
                entry.on_completed()
            else:
                entry.on_error(error)
        except OBSERVER_FAULTS as fault:
            self.drop(entry, fault, error)
        finally:
            slot.owner = owner
            entry.close()

    def _serve(self, entries: tuple[Entry[T], ...], value: T) -> None:
        slot = local.slot
        owner = slot.owner
        try:
            for entry in entries:
                slot.owner = entry
                try:
                    entry.on_next(value)
                except OBSERVER_FAULTS as error:
                    self.drop(entry, error, value)
        finally:
            slot.owner = owner

    def _catch_up(self) -> None:
        """Deliver what waits, unless that is being done already: by a caller of ours, or another thread."""
        # Between the test and the set of _busy no other thread gets in: the interpreter switches at
        # calls and jumps back. Whoever finds it set has queued before, and is seen in the loop.
        while self._waiting and not self._busy:
            self._busy = True
            try:
                self._drain()
            except BaseException:
                self._waiting = ()
                raise
            finally:
                self._busy = False

    def _drain(self) -> None:
        while waiting := self._waiting:
            waiting.popleft()()

    def drop(self, entry: Entry[T], error: BaseException, value: object) -> None:
        """Unsubscribe an observer that raised ``error`` on ``value``, and report it."""
        entry.dispose()
        report(self._on_fault, Fault(error, value, str(entry.site)))

    def report(self, entry: Entry[T], error: BaseException, value: object) -> None:
        """Report that an observer raised ``error`` on ``value``; it stays."""
        report(self._on_fault, Fault(error, value, str(entry.site), dropped=False))

    def leave(self, entry: Entry[T]) -> None:
        """Deliver to ``entry`` no more."""
        with self.lock:
            self._entries = tuple(each for each in self._entries if each is not entry)
