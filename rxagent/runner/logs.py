"""Where a runner's sessions are: in a store, or, without one, with the runs themselves."""

from collections.abc import Callable, Sequence
from typing import Protocol
from weakref import WeakKeyDictionary, WeakValueDictionary

from rxagent.engine.run import Run
from rxagent.engine.session import Journal
from rxagent.errors import UnknownSession
from rxagent.events import AnyEvent
from rxagent.log import EventStore, SessionInfo
from rxagent.runner.journal import BATCH, StoreJournal

OnFailure = Callable[[Exception], object]


class Logs(Protocol):
    """The logs of a runner's sessions."""

    async def load(self, session_id: str, from_seq: int = 0) -> Sequence[AnyEvent]:
        """The events from a seq on; raises `UnknownSession`."""
        ...

    def journal(self, session_id: str, next_seq: int, on_failure: OnFailure) -> Journal:
        """What keeps the events to come."""
        ...

    async def put(self, session_id: str, events: Sequence[AnyEvent]) -> None:
        """Keeps a whole new session."""
        ...

    async def sessions(self) -> list[SessionInfo]:
        """All sessions, in the order in which they were begun."""
        ...

    def settle(self, session_id: str, run: Run, *, named: bool) -> None:
        """A run of the session is over; ``named``: the application gave the session its id."""
        ...


class StoredLogs:
    """Sessions in an `EventStore`."""

    def __init__(self, store: EventStore) -> None:
        self._store = store

    async def load(self, session_id: str, from_seq: int = 0) -> Sequence[AnyEvent]:
        """See `Logs`."""
        return await self._store.load(session_id, from_seq)

    def journal(self, session_id: str, next_seq: int, on_failure: OnFailure) -> Journal:
        """See `Logs`."""
        return StoreJournal(self._store, session_id, next_seq, on_failure)

    async def put(self, session_id: str, events: Sequence[AnyEvent]) -> None:
        """See `Logs`."""
        for first in range(0, len(events), BATCH):
            await self._store.append(session_id, first, events[first : first + BATCH])
        await self._store.release(session_id)

    async def sessions(self) -> list[SessionInfo]:
        """See `Logs`."""
        return await self._store.sessions()

    def settle(self, session_id: str, run: Run, *, named: bool) -> None:
        """The store keeps everything."""


class Log:
    """The events of one session, and their journal."""

    def __init__(self, events: Sequence[AnyEvent] = ()) -> None:
        self.events = list(events)

    def append(self, event: AnyEvent) -> None:
        """Takes the next event."""
        self.events.append(event)

    async def acknowledged(self) -> None:
        """Memory keeps at once."""

    async def finished(self) -> None:
        """Nobody else writes here."""


class KeptLogs:
    """Sessions without a store.

    Kept as long as the runner: sessions the application has named, and those that wait for answers. All
    others are kept as long as one of their runs is referred to.
    """

    def __init__(self) -> None:
        self._kept: dict[str, Log] = {}
        self._loose: WeakValueDictionary[str, Log] = WeakValueDictionary()
        self._of_run: WeakKeyDictionary[Run, Log] = WeakKeyDictionary()

    async def load(self, session_id: str, from_seq: int = 0) -> Sequence[AnyEvent]:
        """See `Logs`."""
        log = self._kept.get(session_id) or self._loose.get(session_id)
        if log is None or not log.events:
            raise UnknownSession(f"there is no session {session_id!r}; without a store only named or waiting ones are kept")
        return log.events[from_seq:]

    def journal(self, session_id: str, next_seq: int, on_failure: OnFailure) -> Journal:
        """See `Logs`."""
        log = self._kept.get(session_id)
        if log is None:
            log = self._kept[session_id] = self._loose.get(session_id) or Log()
        return log

    async def put(self, session_id: str, events: Sequence[AnyEvent]) -> None:
        """See `Logs`."""
        self._kept[session_id] = Log(events)

    async def sessions(self) -> list[SessionInfo]:
        """See `Logs`."""
        logs = {**self._loose, **self._kept}
        return [SessionInfo(session_id, len(log.events)) for session_id, log in logs.items() if log.events]

    def settle(self, session_id: str, run: Run, *, named: bool) -> None:
        """See `Logs`."""
        log = self._kept.get(session_id)
        if log is None or named or run.outcome == "interrupted":
            return
        self._loose[session_id] = self._of_run[run] = log
        del self._kept[session_id]
