"""`StoreJournal`: keeps a session's events in a store, in batches, behind the run.

1. The run never waits for the store but where it must: before a tool runs, and at its end.
2. A store that can't keep up holds the run, so what is not stored yet stays bounded.
3. When the store fails, the run is told at once and ends as failed; nothing is stored after that.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from itertools import islice

from rxagent.errors import RxAgentError, StoreError, told
from rxagent.events import AnyEvent
from rxagent.flow import Release, hold
from rxagent.log import EventStore

BATCH = 512  # events written in one go: some milliseconds of encoding on the loop's thread
BACKLOG = 8192  # events not stored yet from which on the run is held


class StoreJournal:
    """The journal of one session. Belongs to the loop it is made on; ``append`` may be called from any thread.

    Args:
        store: where the events go.
        session_id: the session.
        next_seq: the seq of the first event to come.
        on_failure: is told, once, when the store fails.
    """

    def __init__(
        self, store: EventStore, session_id: str, next_seq: int, on_failure: Callable[[Exception], object] | None = None
    ) -> None:
        self._store = store
        self._session_id = session_id
        self._on_failure = on_failure
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[AnyEvent] = deque()
        self._stored = next_seq
        self._holds: list[Release] = []
        self._wakers: list[asyncio.Future[None]] = []
        self._task: asyncio.Task[None] | None = None
        self.failure: Exception | None = None

    def append(self, event: AnyEvent) -> None:
        """Takes the next event."""
        if self.failure is not None:
            return
        self._waiting.append(event)
        if self._task is None:
            try:
                here = asyncio.get_running_loop() is self._loop
            except RuntimeError:
                here = False
            if here:
                self._begin()
            elif not self._loop.is_closed():
                self._loop.call_soon_threadsafe(self._begin)

    def watch(self, event: AnyEvent) -> None:
        """An observer of the session's events: holds the run while too much is not stored."""
        if len(self._waiting) > BACKLOG and self.failure is None:
            self._holds.append(hold())

    async def acknowledged(self) -> None:
        """Returns when everything appended so far is stored.

        Raises:
            StoreError: the store failed.
        """
        target = self._stored + len(self._waiting)
        while self.failure is None and self._stored < target:
            waker: asyncio.Future[None] = self._loop.create_future()
            self._wakers.append(waker)
            self._begin()
            await waker
        if self.failure is not None:
            raise _as_store_error(self.failure) from self.failure

    async def finished(self) -> None:
        """As ``acknowledged``; then the session is let go, for other writers."""
        try:
            await self.acknowledged()
        finally:
            await self.release()

    async def release(self) -> None:
        """Lets other stores write the session."""
        try:
            await self._store.release(self._session_id)
        except RxAgentError as error:
            if self.failure is None:
                raise _as_store_error(error) from error

    def _begin(self) -> None:
        if self._task is None and self._waiting:
            self._task = self._loop.create_task(self._write(), name=f"rxagent journal {self._session_id}")

    async def _write(self) -> None:
        try:
            while self._waiting:
                batch = list(islice(self._waiting, BATCH))
                await self._store.append(self._session_id, self._stored, batch)
                for _ in batch:
                    self._waiting.popleft()
                self._stored += len(batch)
                self._wake()
        except Exception as error:  # whatever the store raised, the run has to hear of it
            self.failure = error
            self._waiting.clear()
            if self._on_failure is not None:
                self._on_failure(error)
        finally:
            self._task = None
            self._wake()

    def _wake(self) -> None:
        if len(self._waiting) <= BACKLOG // 2 and self._holds:
            holds, self._holds = self._holds, []
            for release in holds:
                release()
        wakers, self._wakers = self._wakers, []
        for waker in wakers:
            if not waker.done():
                waker.set_result(None)


def _as_store_error(error: Exception) -> RxAgentError:
    if isinstance(error, RxAgentError):
        return type(error)(*error.args)
    return StoreError(f"the store failed: {told(error)}")
