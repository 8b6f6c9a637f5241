"""Reading that goes on live: one `Tail` per subscription.

- It is woken by the store's own commits, and by looks at the file while another store may write to the session.
- It runs on the loop it was subscribed under; without one, on a thread of its own.
- A consumer that holds makes it wait; nothing is read ahead but the page in hand.
"""

import asyncio
import contextlib
import threading
from typing import Protocol

from reactivex import Observable, abc

from rxagent.errors import RxAgentError, StoreClosed
from rxagent.events import AnyEvent
from rxagent.flow import Hub, emit
from rxagent.stores.medium import Cursor

SHORTEST_LOOK = 0.004  # seconds between looks for other processes' writing while there is some
LONGEST_LOOK = 0.025  # and after a while without any


class Source(Protocol):
    """What a tail needs of a store."""

    def cursor(self, session_id: str, from_seq: int) -> Cursor:
        """A place to read from."""
        ...

    async def next_page(self, cursor: Cursor) -> list[AnyEvent]:
        """The next events there are now. Raises `StoreClosed` after the end."""
        ...

    def stamp(self, session_id: str) -> object:
        """Changes when another store has written to the session; None while none can."""
        ...

    def join(self, tail: "Tail") -> None:
        """Rings the tail from now on."""
        ...

    def leave(self, tail: "Tail") -> None:
        """Rings it no more."""
        ...


class Reading(Observable[AnyEvent]):
    """The events of a session from one seq on: cold, every subscription reads for itself."""

    def __init__(self, source: Source, session_id: str, from_seq: int) -> None:
        super().__init__()
        self._source = source
        self._session_id = session_id
        self._from_seq = from_seq

    def subscribe(
        self,
        on_next: abc.ObserverBase[AnyEvent] | abc.OnNext[AnyEvent] | None = None,
        on_error: abc.OnError | None = None,
        on_completed: abc.OnCompleted | None = None,
        *,
        scheduler: abc.SchedulerBase | None = None,
    ) -> abc.DisposableBase:
        """Begin to read; ``scheduler`` is unused."""
        tail = Tail(self._source, self._session_id, self._from_seq)
        tail.begin(tail.hub.subscribe(on_next, on_error, on_completed))
        return tail


class Tail(abc.DisposableBase):
    """One subscription to a session."""

    def __init__(self, source: Source, session_id: str, from_seq: int) -> None:
        self.hub: Hub[AnyEvent] = Hub()
        self.session_id = session_id
        self.thread: threading.Thread | None = None
        self._source = source
        self._from_seq = from_seq
        self._entry: abc.DisposableBase | None = None
        self._task: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._bell = asyncio.Event()
        self._look: asyncio.TimerHandle | None = None
        self._period = LONGEST_LOOK

    def begin(self, entry: abc.DisposableBase) -> None:
        """Read for a subscription of ``hub``, on the running loop or on a new thread."""
        self._entry = entry
        self._source.join(self)
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            # A daemon: a script that ends while it listens shall end.
            self.thread = threading.Thread(target=asyncio.run, args=(self._run(),), name="rxagent-store-tail", daemon=True)
            self.thread.start()
        else:
            self._loop = loop
            self._task = loop.create_task(self._run(), name=f"tail of {self.session_id}")

    def dispose(self) -> None:
        """Deliver nothing from now on and stop reading; from any thread."""
        if self._entry is not None:
            self._entry.dispose()
        self.ring()

    def ring(self) -> None:
        """There is something to see: more events, or an end. From any thread."""
        loop = self._loop
        if loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop is closed, and the tail went with it
                loop.call_soon_threadsafe(self._bell.set)

    async def _run(self) -> None:
        self._loop = asyncio.get_running_loop()
        try:
            await self._deliver()
        except StoreClosed:
            self.hub.on_completed()
        except RxAgentError as error:
            self.hub.on_error(error)
        finally:
            self._source.leave(self)
            if self._look is not None:
                self._look.cancel()

    async def _deliver(self) -> None:
        cursor = self._source.cursor(self.session_id, self._from_seq)
        while self.hub.observed:
            self._bell.clear()
            stamp = self._source.stamp(self.session_id)
            page = await self._source.next_page(cursor)
            for event in page:
                await emit(self.hub.on_next, event)
                if not self.hub.observed:
                    return
            if not page:
                await self._wait(stamp)

    async def _wait(self, stamp: object) -> None:
        if stamp is not None:
            self._look_later(stamp)
        try:
            await self._bell.wait()
        finally:
            if self._look is not None:
                self._look.cancel()

    def _look_later(self, stamp: object) -> None:
        assert self._loop is not None
        self._look = self._loop.call_later(self._period, self._look_now, stamp)

    def _look_now(self, stamp: object) -> None:
        try:
            same = self._source.stamp(self.session_id) in {stamp, None}
        except RxAgentError:  # the next page will say what it is
            same = False
        if same:
            self._period = min(self._period * 1.5, LONGEST_LOOK)
            self._look_later(stamp)
        else:
            self._period = SHORTEST_LOOK
            self._bell.set()
