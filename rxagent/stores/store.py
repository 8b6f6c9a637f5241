"""`Store`: an `EventStore` over a medium. Group commit, readers that go on live, and where the work runs.

- Appends that come while one is being committed go into the next commit together.
- A blocking medium is served by two threads, one that writes and one that reads; both end with ``close``.
- A store that is dropped without ``close`` lets go of its files too.
"""

import asyncio
import threading
import weakref
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from types import TracebackType
from typing import Self, TypeVar

from reactivex import Observable

from rxagent.errors import RxAgentError, StoreClosed, StoreError, UnknownSession, UsageError
from rxagent.events import AnyEvent
from rxagent.log import SessionInfo
from rxagent.stores.medium import Append, Cursor, Medium, Outcome, check_session_id, numbered
from rxagent.stores.tail import Reading, Tail

T = TypeVar("T")

PAGE = 512  # events read at a time, a few milliseconds of work


@dataclass(frozen=True, slots=True)
class _Waiting:
    append: Append
    acknowledged: asyncio.Future[None]
    loop: asyncio.AbstractEventLoop

    def settle(self, outcome: Outcome) -> None:
        if self.acknowledged.done():  # cancelled meanwhile
            return
        if outcome is None:
            self.acknowledged.set_result(None)
        else:
            self.acknowledged.set_exception(outcome)


class Store:
    """What all stores of this package share; see `rxagent.log.EventStore` for the promises."""

    def __init__(self, medium: Medium) -> None:
        self._medium = medium
        self._lock = threading.Lock()
        self._flushing = threading.Lock()  # a virtual loop flushes inline, maybe beside the thread
        self._queue: list[_Waiting] = []
        self._flush_due = False
        self._closed = False
        self._tails: set[Tail] = set()
        self._threads: tuple[ThreadPoolExecutor, ...] = (
            tuple(ThreadPoolExecutor(1, f"rxagent-store-{what}") for what in ("write", "read")) if medium.blocking else ()
        )
        weakref.finalize(self, medium.close)

    @property
    def durability(self) -> str:
        """What an acknowledged event survives; see `EventStore`."""
        return self._medium.durability

    async def append(self, session_id: str, expected_seq: int, events: Sequence[AnyEvent]) -> None:
        """Appends events and returns when they are acknowledged; see `EventStore`."""
        check_session_id(session_id)
        self._check_open()
        append = self._medium.prepare(session_id, expected_seq, numbered(events, expected_seq))
        loop = asyncio.get_running_loop()
        acknowledged: asyncio.Future[None] = loop.create_future()
        with self._lock:
            self._check_open()
            self._queue.append(_Waiting(append, acknowledged, loop))
            due, self._flush_due = not self._flush_due, True
        if due:
            self._begin_flush(loop)
        await acknowledged

    def read(self, session_id: str, from_seq: int = 0) -> Observable[AnyEvent]:
        """What is stored and then what comes, live; see `EventStore`."""
        check_session_id(session_id)
        _check_from(from_seq)
        self._check_open()
        return Reading(self, session_id, from_seq)

    async def load(self, session_id: str, from_seq: int = 0) -> list[AnyEvent]:
        """What is stored now; see `EventStore`."""
        check_session_id(session_id)
        _check_from(from_seq)
        cursor = self._medium.cursor(session_id, from_seq)
        events: list[AnyEvent] = []
        while page := await self.next_page(cursor):
            events += page
        if not events and not await self._in_thread(1, lambda: self._medium.has(session_id)):
            raise UnknownSession(
                f"there is no session {session_id!r} in this store; list what there is (rxagent runs, or store.sessions())"
            )
        return events

    async def sessions(self) -> list[SessionInfo]:
        """The sessions stored now, in the order in which they were begun."""
        return await self._in_thread(1, self._medium.sessions)

    async def release(self, session_id: str) -> None:
        """Stops being the session's writer; see `EventStore`."""
        await self._in_thread(0, lambda: self._medium.release(session_id))
        self._ring({session_id})  # others may write now, so readers have to look out for that

    async def close(self) -> None:
        """Finishes, completes all readers, lets go of everything; repeatable."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            tails = list(self._tails)
        for tail in tails:
            tail.ring()
        loop = asyncio.get_running_loop()
        try:
            if self._threads:  # whatever was asked of them before comes first
                write, read = self._threads
                await loop.run_in_executor(read, _nothing)
                await loop.run_in_executor(write, self._medium.close)
            threads = [t.thread for t in tails if t.thread is not None and t.thread is not threading.current_thread()]
            if threads:
                await loop.run_in_executor(None, _join, threads)
        finally:
            self._medium.close()
            for thread in self._threads:
                thread.shutdown()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()

    # -- what a tail needs -------------------------------------------------------------------

    def cursor(self, session_id: str, from_seq: int) -> Cursor:
        """A place to read from."""
        return self._medium.cursor(session_id, from_seq)

    async def next_page(self, cursor: Cursor) -> list[AnyEvent]:
        """The next events there are now; empty: none yet."""
        return await self._in_thread(1, lambda: cursor.next(PAGE))

    def stamp(self, session_id: str) -> object:
        """Changes when another store has written to the session; None while none can."""
        return self._medium.stamp(session_id)

    def join(self, tail: Tail) -> None:
        """Rings the tail from now on, when its session grows and when the store closes."""
        with self._lock:
            self._tails.add(tail)
        if self._closed:
            tail.ring()

    def leave(self, tail: Tail) -> None:
        """Rings it no more."""
        with self._lock:
            self._tails.discard(tail)

    # -- inside ------------------------------------------------------------------------------

    def _check_open(self) -> None:
        if self._closed:
            raise StoreClosed("the store was closed; open a new one on the same file")

    async def _in_thread(self, which: int, work: Callable[[], T]) -> T:
        self._check_open()
        if not self._threads:
            return work()
        try:
            future = asyncio.get_running_loop().run_in_executor(self._threads[which], work)
        except RuntimeError:  # its threads have ended since the check
            self._check_open()
            raise
        return await future

    def _begin_flush(self, loop: asyncio.AbstractEventLoop) -> None:
        if not self._threads:
            self._flush()
            return
        try:
            loop.run_in_executor(self._threads[0], self._flush)
        except RuntimeError:  # closed since the check
            with self._lock:
                waiting, self._queue = self._queue, []
            self._settle(waiting, [StoreClosed("the store was closed before it could append") for _ in waiting])

    def _flush(self) -> None:
        with self._flushing:
            while True:
                with self._lock:
                    waiting, self._queue = self._queue, []
                    self._flush_due = bool(waiting)
                if not waiting:
                    return
                self._settle(waiting, self._commit([each.append for each in waiting]))

    def _commit(self, appends: list[Append]) -> list[Outcome]:
        try:
            return self._medium.commit(appends)
        except RxAgentError as error:
            return [type(error)(*error.args) for _ in appends]
        except Exception as error:  # whoever waits for an acknowledgement must hear, whatever went wrong
            return [StoreError(f"the append failed unexpectedly: {error!r}") for _ in appends]

    def _settle(self, waiting: list[_Waiting], outcomes: list[Outcome]) -> None:
        by_loop: dict[asyncio.AbstractEventLoop, list[tuple[_Waiting, Outcome]]] = {}
        for each, outcome in zip(waiting, outcomes, strict=True):
            by_loop.setdefault(each.loop, []).append((each, outcome))
        for loop, settled in by_loop.items():
            try:
                loop.call_soon_threadsafe(_settle_all, settled)
            except RuntimeError:  # that loop is closed, nobody waits there any more
                continue
        # Also where nothing was written: for a moment the session may have seemed to be nobody else's.
        self._ring({each.append.session_id for each in waiting})

    def _ring(self, session_ids: set[str]) -> None:
        with self._lock:
            tails = [tail for tail in self._tails if tail.session_id in session_ids]
        for tail in tails:
            tail.ring()


def _settle_all(settled: list[tuple[_Waiting, Outcome]]) -> None:
    for waiting, outcome in settled:
        waiting.settle(outcome)


def _check_from(from_seq: int) -> None:
    if from_seq < 0:
        raise UsageError(f"events are numbered from 0, so reading can't begin at {from_seq}")


def _join(threads: Iterable[threading.Thread]) -> None:
    for thread in threads:
        thread.join()


def _nothing() -> None:
    return None
