"""A hub that remembers: late subscribers get everything from the start, then go on live."""

from typing import Generic, Protocol, TypeVar

from reactivex import abc
from reactivex.scheduler import CurrentThreadScheduler

from rxagent.flow.emission import publish
from rxagent.flow.faults import OnFault
from rxagent.flow.holds import local
from rxagent.flow.hub import OBSERVER_FAULTS, Entry, Hub, callbacks
from rxagent.flow.loops import call_on, running_loop

T = TypeVar("T")


class Kept(Protocol[T]):
    """Where values are kept: a list, or what does as much of it."""

    def append(self, value: T, /) -> None:
        """Keep one more value."""
        ...

    def __len__(self) -> int: ...

    def __getitem__(self, index: int, /) -> T: ...


class Replay(Hub[T]):
    """A hub whose every subscriber sees all values in order, whenever it joins.

    ``values`` is what keeps them (the given, or an own list); ``on_next`` appends to it.
    A late subscriber is caught up at its own pace: while it holds, its delivery pauses, and goes
    on when it releases, on the loop it subscribed on, or else where it released. Having caught
    up it is inside the live emissions, where its holds slow the source. The end comes after the
    last value. A live value costs the same however many came before.
    """

    def __init__(self, values: Kept[T] | None = None, on_fault: OnFault | None = None) -> None:
        super().__init__(on_fault)
        self.values: Kept[T] = [] if values is None else values
        self._unsent = 0  # of the values, the last ones, that live subscribers haven't had yet
        self._closing = False

    def on_next(self, value: T) -> None:
        """Keep ``value`` and deliver it to whoever has caught up; does nothing after the end."""
        if self._closing:
            return
        with self.lock:
            self.values.append(value)
            waits = self._busy or self._unsent > 0
            if waits:
                self._unsent += 1
            elif not self._entries and not self._waiting:  # kept, and nobody to deliver it to
                return
            else:
                self._busy = True
            entries = self._entries
        if not waits:
            try:
                self._serve(entries, value)
            finally:
                self._busy = False
        if self._unsent or self._waiting:
            self._catch_up()

    def on_error(self, error: Exception) -> None:
        """End with ``error``; later calls do nothing."""
        if not self._closing:
            self._closing = True
            super().on_error(error)

    def on_completed(self) -> None:
        """End; later calls do nothing."""
        if not self._closing:
            self._closing = True
            super().on_completed()

    def subscribe(
        self,
        on_next: abc.ObserverBase[T] | abc.OnNext[T] | None = None,
        on_error: abc.OnError | None = None,
        on_completed: abc.OnCompleted | None = None,
        *,
        scheduler: abc.SchedulerBase | None = None,
    ) -> abc.DisposableBase:
        """Subscribe from the first value on; ``scheduler`` is unused."""
        entry = Entry(callbacks(on_next, on_error, on_completed), self)
        reader = _Reader(self, entry)
        # As stock sources do: inside a subscription that is being put together, wait until it is,
        # or an operator that has seen enough (take) couldn't dispose of us yet.
        trampoline = CurrentThreadScheduler.singleton()
        if trampoline.schedule_required():
            reader.run()
        else:
            trampoline.schedule(lambda _scheduler, _state: reader.run())
        return entry

    def go_live(self, entry: Entry[T], at: int) -> bool:
        """Make ``entry``, which has had ``at`` values, a live one; false when there are more."""
        with self.lock:
            if at < len(self.values) - self._unsent:
                return False
            if not self._ended:
                if entry.live:
                    self._entries = (*self._entries, entry)
                return True
        self._finish(entry)
        return True

    def _catch_up(self) -> None:
        while (self._unsent or self._waiting) and not self._busy:
            self._busy = True
            try:
                self._deliver_kept()
                self._drain()
            finally:
                self._busy = False

    def _deliver_kept(self) -> None:
        # The list itself is the queue of re-entrant values: a subscriber that joins in between
        # finds each value either already sent, and reads it, or not yet, and gets it live.
        values = self.values
        while self._unsent:
            with self.lock:
                value = values[len(values) - self._unsent]
                self._unsent -= 1
                entries = self._entries
            self._serve(entries, value)


class _Reader(Generic[T]):
    """One subscriber on its way from the first value to the live ones."""

    __slots__ = ("_again", "_at", "_entry", "_hub", "_loop", "_running")

    def __init__(self, hub: Replay[T], entry: Entry[T]) -> None:
        self._hub = hub
        self._entry = entry
        self._at = 0
        self._loop = running_loop()
        self._running = False
        self._again = False

    def run(self) -> None:
        """Deliver what is kept until the subscriber holds, leaves or has caught up."""
        values = self._hub.values
        entry = self._entry
        while entry.live and not self._hub.go_live(entry, self._at):
            value = values[self._at]
            self._at += 1
            pending = publish(self._give, value)
            if pending is not None and pending.held:
                pending.then(self._resume)
                return

    def _give(self, value: T) -> None:
        slot = local.slot
        owner = slot.owner
        slot.owner = self._entry
        try:
            self._entry.on_next(value)
        except OBSERVER_FAULTS as error:
            self._hub.drop(self._entry, error, value)
        finally:
            slot.owner = owner

    def _resume(self) -> None:
        if self._loop is not None and not self._loop.is_closed():
            call_on(self._loop, self.run)
            return
        self._again = True
        if self._running:  # released from within the delivery below: that one goes on
            return
        self._running = True
        try:
            while self._again:
                self._again = False
                self.run()
        finally:
            self._running = False
