"""The SQLite file itself: how it is opened, made and recognised, and what its errors mean."""

import os
import sqlite3
from collections.abc import Generator
from contextlib import closing, contextmanager
from urllib.parse import quote

from rxagent.errors import RxAgentError, StoreCorrupt, StoreError, StoreFull, StoreReadOnly, StoreTooNew

APPLICATION_ID = 0x52784167  # "RxAg", at byte 68 of the file
SCHEMA_VERSION = 1
BUSY_TIMEOUT = 30.0  # seconds to wait for another process's transaction

# An event's place is its session's key in the upper bits and its seq in the lower 32: one b-tree, appended to at
# its end. ``opening``: the seq of the earliest answer that is still streaming after the event (see `openings`).
# ``log`` is for people with a SQLite shell.
_SCHEMA = (
    "CREATE TABLE sessions (key INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, first_time REAL, last_time REAL)",
    "CREATE TABLE events (place INTEGER PRIMARY KEY, opening INTEGER, event TEXT NOT NULL)",
    (
        "CREATE VIEW log AS SELECT sessions.id AS session, place & 4294967295 AS seq, event "
        "FROM events JOIN sessions ON key = place >> 32 ORDER BY place"
    ),
    f"PRAGMA application_id = {APPLICATION_ID}",
    f"PRAGMA user_version = {SCHEMA_VERSION}",
)

_KINDS: dict[int, tuple[type[StoreError], str]] = {
    sqlite3.SQLITE_FULL: (StoreFull, "has no room left; nothing of this append was kept. Make room and append again"),
    sqlite3.SQLITE_READONLY: (StoreReadOnly, "can be read but not written"),
    sqlite3.SQLITE_CORRUPT: (StoreCorrupt, "is damaged and was left as it is"),
    sqlite3.SQLITE_NOTADB: (StoreCorrupt, "is no SQLite file and was left as it is"),
    sqlite3.SQLITE_BUSY: (StoreError, f"was kept locked by another program for {BUSY_TIMEOUT:.0f} s"),
    sqlite3.SQLITE_CANTOPEN: (StoreError, "can't be opened"),
    sqlite3.SQLITE_IOERR: (StoreError, "can't be read or written"),
}


def explained(path: str, error: sqlite3.Error) -> StoreError:
    """A SQLite error as one of ours."""
    code: int = getattr(error, "sqlite_errorcode", 0)
    kind, meaning = _KINDS.get(code & 0xFF, (StoreError, "failed"))
    return kind(f"{path} {meaning} ({error})")


@contextmanager
def translated(path: str) -> Generator[None, None, None]:
    """Turns SQLite's errors into ours."""
    try:
        yield
    except sqlite3.Error as error:
        raise explained(path, error) from error


def connect(path: str, mode: str = "rw") -> sqlite3.Connection:
    """Opens a file that exists; text comes as bytes, transactions are begun by hand."""
    try:
        return _open(path, f"mode={mode}")
    except sqlite3.OperationalError as error:
        # A directory that can't be written has no room for the index of a WAL; without a WAL none is needed.
        if error.sqlite_errorcode & 0xFF not in {sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY} or _size(f"{path}-wal"):
            raise
        return _open(path, "mode=ro&immutable=1")


def _open(path: str, options: str) -> sqlite3.Connection:
    db = sqlite3.connect(
        f"file:{quote(path)}?{options}", uri=True, isolation_level=None, check_same_thread=False, timeout=BUSY_TIMEOUT
    )
    try:
        db.text_factory = bytes  # damaged text is found by the reader of events, which names the place
        db.execute("PRAGMA synchronous = FULL")
        db.execute("PRAGMA fullfsync = ON")  # macOS: a sync that reaches the disk; elsewhere no effect
        db.execute("SELECT 1 FROM sqlite_master").fetchone()  # reads the file for the first time
    except BaseException:
        db.close()
        raise
    return db


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size  # noqa: PTH116 - a path is text all through this room
    except OSError:
        return 0


def prepare_file(path: str) -> None:
    """Makes sure that there is a store of ours in the file; a file that isn't one is left as it is.

    Raises:
        StoreCorrupt: it is no SQLite file, or damaged at its beginning.
        StoreTooNew: a later version made it.
        StoreError: another program's, or it can't be opened or made.
    """
    if os.path.exists(path) and not os.path.isfile(path):  # noqa: PTH110, PTH113 - as above
        raise StoreError(f"{path} can't be opened: it is no ordinary file")
    with translated(path):
        if _is_blank(path):
            _make(path)
        with closing(connect(path, "ro")) as db:
            problem = _refusal(path, db)
    if problem is not None:
        raise problem


def _is_blank(path: str) -> bool:
    """Whether there is nothing yet, or just what another process has begun to make."""
    if not _size(path):
        return True
    with closing(connect(path, "ro")) as db:
        return _tables(db) == 0 and db.execute("PRAGMA application_id").fetchone()[0] == 0


def _tables(db: sqlite3.Connection) -> int:
    return db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]


def _refusal(path: str, db: sqlite3.Connection) -> RxAgentError | None:
    version: int = db.execute("PRAGMA user_version").fetchone()[0]
    if db.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
        return StoreError(f"{path} is a SQLite file of another program; choose another path")
    if version > SCHEMA_VERSION:
        return StoreTooNew(
            f"{path} was written by a later rxagent (format {version}, this one knows {SCHEMA_VERSION}); "
            "it was left as it is, upgrade rxagent to open it"
        )
    return None


def _make(path: str) -> None:
    with closing(_open(path, "mode=rwc")) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("BEGIN IMMEDIATE")
        if not _tables(db):  # another process may have been faster
            for statement in _SCHEMA:
                db.execute(statement)
        db.execute("COMMIT")
