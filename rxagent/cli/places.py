"""Where recorded runs are: a store's file, or a log in JSON Lines."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from rxagent.errors import UnknownSession, UsageError
from rxagent.events import AnyEvent, EventReader, SessionStart
from rxagent.log import EventStore

_LINES = (".jsonl", ".ndjson")


@asynccontextmanager
async def opened(path: str, *, must_exist: bool) -> AsyncGenerator[EventStore]:
    """A store for the duration: JSON Lines by its suffix, else SQLite."""
    if must_exist and not Path(path).is_file():  # noqa: ASYNC240 - once, before anything runs
        raise UsageError(f"there is no store {path!r}; rxagent run --store {path} makes one")
    if path.endswith(_LINES):
        from rxagent.stores import JsonlStore

        store: EventStore = JsonlStore(path)
    else:
        from rxagent.stores import SqliteStore

        store = SqliteStore(path)
    async with store:
        yield store


async def recorded(run: str, store: str | None) -> list[AnyEvent]:
    """The events of a run.

    Args:
        run: a session's id, or the beginning of one, where a store is given; ``-`` for stdin; else a file of JSON Lines.
        store: the store's file.

    Raises:
        UsageError: there is no such file or session, or several sessions begin so.
        CorruptLog: a line is no event; names file and line.
    """
    if store is None:
        return _from_file(run)
    async with opened(store, must_exist=True) as open_store:
        ids = [info.id for info in await open_store.sessions()]
        found = [run] if run in ids else [each for each in ids if each.startswith(run)]
        if len(found) != 1:
            several = f"{len(found)} sessions of {store!r} begin with {run!r}" if found else f"{store!r} has no session {run!r}"
            raise UsageError(f"{several}; rxagent runs --store {store} lists them")
        try:
            return await open_store.load(found[0])
        except UnknownSession as error:
            raise UsageError(str(error)) from error


def _from_file(path: str) -> list[AnyEvent]:
    import sys

    if path == "-":
        return _read(sys.stdin.buffer.read(), "stdin")
    try:
        return _read(Path(path).read_bytes(), path)
    except OSError as error:
        raise UsageError(f"{path!r} can't be read: {error.strerror}. For a session of a store, give --store FILE") from error


def _read(data: bytes, name: str) -> list[AnyEvent]:
    reader = EventReader()
    events = [reader.read(line, place=f"{name}:{number}") for number, line in enumerate(data.splitlines(), 1) if line.strip()]
    if not events:
        raise UsageError(f"{name} holds no events")
    if len({event.origin.session_id for event in events if isinstance(event, SessionStart)}) > 1:
        raise UsageError(f"{name} holds several sessions: give --store {name} and the id of one")
    return events
