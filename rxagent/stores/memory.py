"""`MemoryStore`: event logs that live as long as the store. For tests, and for runs nobody needs to keep."""

import threading
from collections.abc import Sequence
from typing import cast

from rxagent.errors import StoreClosed
from rxagent.events import AnyEvent, EventReader, MessageUpdate
from rxagent.log import SessionInfo
from rxagent.stores.medium import Append, Outcome, check_seq
from rxagent.stores.openings import message_time
from rxagent.stores.store import Store


class _Cursor:
    def __init__(self, medium: "_Memory", session_id: str, from_seq: int) -> None:
        self._medium = medium
        self._session_id = session_id
        self._next = from_seq

    def next(self, limit: int) -> list[AnyEvent]:
        events = self._medium.part(self._session_id, self._next, self._next + limit)
        self._next += len(events)
        return events


class _Memory:
    durability = "process"
    blocking = False

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._logs: dict[str, list[AnyEvent]] = {}
        self._readers: dict[str, EventReader] = {}
        self._closed = False

    def prepare(self, session_id: str, first_seq: int, events: Sequence[AnyEvent]) -> Append:
        return Append(session_id, first_seq, events)

    def commit(self, appends: Sequence[Append]) -> list[Outcome]:
        with self._lock:
            return [self._append(append) for append in appends]

    def _append(self, append: Append) -> Outcome:
        log = self._logs.get(append.session_id, [])
        refused = check_seq(append, len(log))
        if refused is None and append.events:
            events = self._with_messages(append, log)
            self._logs.setdefault(append.session_id, log).extend(events)
        return refused

    def _with_messages(self, append: Append, log: list[AnyEvent]) -> Sequence[AnyEvent]:
        """The events; where updates come as their deltas alone, with the messages that these amount to."""
        reader = self._readers.get(append.session_id)
        if reader is None:
            if not any(_lacks_message(event) for event in append.events):
                return append.events
            reader = self._readers[append.session_id] = EventReader()
            for event in log:
                reader.fold(event)
        return [reader.fold(event) for event in append.events]

    def part(self, session_id: str, start: int, stop: int) -> list[AnyEvent]:
        with self._lock:
            if self._closed:
                raise StoreClosed("the store was closed")
            return self._logs.get(session_id, [])[start:stop]

    def cursor(self, session_id: str, from_seq: int) -> _Cursor:
        return _Cursor(self, session_id, from_seq)

    def stamp(self, session_id: str) -> object:
        return None

    def has(self, session_id: str) -> bool:
        return session_id in self._logs

    def sessions(self) -> list[SessionInfo]:
        with self._lock:
            return [_info(session_id, log) for session_id, log in self._logs.items()]

    def release(self, session_id: str) -> None:
        """Nobody else can write here, so there is nothing to give up."""

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._logs, self._readers = {}, {}


def _lacks_message(event: AnyEvent) -> bool:
    return isinstance(event, MessageUpdate) and cast("object", event.message) is None


def _info(session_id: str, log: list[AnyEvent]) -> SessionInfo:
    first = next((time for event in log if (time := message_time(event)) is not None), None)
    last = next((time for event in reversed(log) if (time := message_time(event)) is not None), None)
    return SessionInfo(session_id, len(log), first, last)


class MemoryStore(Store):
    """Event logs in memory, gone with the store; events are kept as they are, updates without a message get theirs.

    It needs no threads, and `SessionLocked` never comes: the store itself is the only way to write.
    """

    def __init__(self) -> None:
        super().__init__(_Memory())
