"""`EventStore`: what a session's log is kept in, and the promises every store makes.

- A session's events are numbered 0, 1, 2… without holes; an append names the number it begins with.
- When ``append`` returns, the events are as safe as the store's ``durability`` says.
- A store doesn't interpret events; kinds it doesn't know come back as they went in.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol, Self, runtime_checkable

from reactivex import Observable

from rxagent.events import AnyEvent


@dataclass(frozen=True, slots=True)
class SessionInfo:
    """One session of a store. Times are those of its first and last message (seconds since 1970), None before any."""

    id: str
    events: int
    first_time: float | None = None
    last_time: float | None = None


@runtime_checkable
class EventStore(Protocol):
    """A place for event logs, one per session. Usable from any event loop and thread at once; an async context manager.

    Under a virtual-time loop its thread work runs inline, at the instant it is asked for.
    """

    @property
    def durability(self) -> str:
        """What an acknowledged event survives.

        ``"process"``: nothing, it goes with the process. ``"disk"``: a crash of program and machine (it was synced).
        Stores on other machines add words of their own.
        """
        ...

    async def append(self, session_id: str, expected_seq: int, events: Sequence[AnyEvent]) -> None:
        """Appends events and returns when they are acknowledged; all of them or, if it raises, none.

        ``expected_seq`` is the seq that the first of them will have. An event whose own seq is still -1
        gets its number here. The first append makes this store the session's writer, until ``release`` or
        ``close``; a writer that dies is one no more. Cancelled, it may still take effect.

        Raises:
            WrongSeq: the session goes on with another seq, or the events are numbered otherwise.
            SessionLocked: another store, here or in another process, is the session's writer.
            Unserialisable: an event has no JSON form.
            StoreError: full, read-only, damaged, closed; see `rxagent.errors`.
        """
        ...

    def read(self, session_id: str, from_seq: int = 0) -> Observable[AnyEvent]:
        """The events from ``from_seq`` on: what is stored, then live as they are acknowledged, in order, each once.

        The session needn't exist yet. Each update has its message, also when reading starts in the middle of one.
        Subscribed under a running event loop, it delivers there and waits for holds; elsewhere on a thread
        of its own. It completes when the store is closed.
        """
        ...

    async def load(self, session_id: str, from_seq: int = 0) -> list[AnyEvent]:
        """The events stored now, from ``from_seq`` on.

        Raises:
            UnknownSession: there is no such session.
            StoreCorrupt, CorruptLog: it can't be read.
        """
        ...

    async def sessions(self) -> list[SessionInfo]:
        """The sessions stored now, in the order in which they were begun."""
        ...

    async def release(self, session_id: str) -> None:
        """Stops being the session's writer, so that another store can be; the next append takes it up again."""
        ...

    async def close(self) -> None:
        """Finishes what was begun, completes all readers, and lets go of files, locks and threads. Repeatable.

        Afterwards everything else raises `StoreClosed`.
        """
        ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
