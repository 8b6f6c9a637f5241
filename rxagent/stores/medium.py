"""The seam inside this room: what differs between stores. All calls may block; `Store` decides where they run."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from pydantic_core import PydanticSerializationError

from rxagent.errors import RxAgentError, Unserialisable, UsageError, WrongSeq
from rxagent.events import AnyEvent, EventReader, to_json
from rxagent.log import SessionInfo


@dataclass(frozen=True, slots=True)
class Append:
    """One call of ``append``: numbered events and, where the medium keeps bytes, a line of JSON for each."""

    session_id: str
    first_seq: int
    events: Sequence[AnyEvent]
    lines: Sequence[bytes] = ()

    @property
    def next_seq(self) -> int:
        """The number the session goes on with afterwards."""
        return self.first_seq + len(self.events)


Outcome = RxAgentError | None


class Cursor(Protocol):
    """A place in a session's log, moving forward."""

    def next(self, limit: int) -> list[AnyEvent]:
        """The next events, about ``limit`` at most; empty: there are no more yet."""
        ...


class Medium(Protocol):
    """Where the bytes go. Its methods are called from several threads and lock what they need to."""

    @property
    def durability(self) -> str:
        """As in `EventStore`."""
        ...

    @property
    def blocking(self) -> bool:
        """Whether it does I/O, so that its calls belong on a thread."""
        ...

    def prepare(self, session_id: str, first_seq: int, events: Sequence[AnyEvent]) -> Append:
        """Makes numbered events ready to be written; on the caller's thread, touching nothing."""
        ...

    def commit(self, appends: Sequence[Append]) -> list[Outcome]:
        """Writes them in one go; for each None or why it was refused. Raises when nothing could be written at all."""
        ...

    def cursor(self, session_id: str, from_seq: int) -> Cursor:
        """A place to read from; doesn't block."""
        ...

    def stamp(self, session_id: str) -> object:
        """A value that is another one after another store has written to the session; None while none can.

        Cheap: called on event loops.
        """
        ...

    def has(self, session_id: str) -> bool:
        """Whether the session has events."""
        ...

    def sessions(self) -> list[SessionInfo]:
        """As in `EventStore`."""
        ...

    def release(self, session_id: str) -> None:
        """As in `EventStore`."""
        ...

    def close(self) -> None:
        """Lets go of everything; repeatable."""
        ...


def check_session_id(session_id: str) -> None:
    """Raises `UsageError` for what can't name a session."""
    try:
        usable = bool(session_id.encode())
    except (UnicodeEncodeError, AttributeError):  # callers aren't all typed
        usable = False
    if not usable:
        raise UsageError(f"a session id is non-empty text, not {session_id!r}")


def check_seq(append: Append, next_seq: int) -> WrongSeq | None:
    """Why an append doesn't fit a session that goes on with ``next_seq``, or None."""
    if append.first_seq == next_seq:
        return None
    return WrongSeq(
        f"session {append.session_id!r} goes on with seq {next_seq}, but the append expected {append.first_seq}; "
        "somebody else has written, load the session again"
    )


def numbered(events: Sequence[AnyEvent], first_seq: int) -> list[AnyEvent]:
    """The events with their seqs, given here where they are -1.

    Raises:
        WrongSeq: one is numbered otherwise.
    """
    result: list[AnyEvent] = []
    for seq, event in enumerate(events, first_seq):
        if event.seq == seq:
            result.append(event)
        elif event.seq == -1:
            result.append(replace(event, seq=seq))
        else:
            raise WrongSeq(f"a {event.type} event carries seq {event.seq} where the append puts {seq}")
    return result


def encoded(events: Sequence[AnyEvent]) -> list[bytes]:
    """Each event as a line of JSON, without the line end.

    Raises:
        Unserialisable: one has no JSON form.
    """
    lines: list[bytes] = []
    for event in events:
        try:
            lines.append(to_json(event))
        except PydanticSerializationError as error:
            raise Unserialisable(f"the {event.type} event with seq {event.seq} has no JSON form: {error}") from error
    return lines


Line = tuple[int, str, bytes]
"""A stored event: its seq, where it stands (for errors), its JSON."""


class Lines(Protocol):
    """A medium that keeps lines of JSON."""

    def anchor(self, session_id: str, from_seq: int) -> int:
        """The seq to begin at so that updates from ``from_seq`` on find the start of their message."""
        ...

    def page(self, session_id: str, from_seq: int, limit: int) -> list[Line]:
        """The lines from a seq on, at most ``limit``, without holes."""
        ...

    def damaged(self, problem: str) -> RxAgentError:
        """The error that says so."""
        ...


class LineCursor:
    """A cursor over lines of JSON."""

    def __init__(self, lines: Lines, session_id: str, from_seq: int) -> None:
        self._lines = lines
        self._session_id = session_id
        self._from_seq = from_seq
        self._next = -1
        self._reader = EventReader()

    def next(self, limit: int) -> list[AnyEvent]:
        """See `Cursor`; skips what only led up to the place where reading begins."""
        if self._next < 0:
            self._next = self._lines.anchor(self._session_id, self._from_seq)
        events: list[AnyEvent] = []
        while not events:
            page = self._lines.page(self._session_id, self._next, limit)
            if not page:
                break
            for seq, place, line in page:
                event = self._read(seq, place, line)
                if seq >= self._from_seq:
                    events.append(event)
        return events

    def _read(self, seq: int, place: str, line: bytes) -> AnyEvent:
        if seq != self._next:
            raise self._lines.damaged(f"{place} follows {self._next - 1}: the events between are missing")
        try:
            event = self._reader.read(line, place=place)
        except ValueError as error:
            raise self._lines.damaged(str(error)) from error
        if event.seq != seq:
            raise self._lines.damaged(f"{place} says it has seq {event.seq}")
        self._next = seq + 1
        return event
