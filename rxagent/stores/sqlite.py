"""`SqliteStore`: event logs in one SQLite file, the embedded default.

- WAL, ``synchronous=FULL``: an append is acknowledged when its transaction is synced.
- One connection writes, one reads, one watches for other processes; each opened when first needed.
- A file that isn't ours, is newer, or is damaged is refused and stays as it is.
"""

import os
import sqlite3
import threading
from collections.abc import Sequence
from dataclasses import dataclass

from rxagent.errors import RxAgentError, StoreClosed, StoreCorrupt, StoreError, UsageError, WrongSeq
from rxagent.events import AnyEvent
from rxagent.log import SessionInfo
from rxagent.stores.locks import SessionLocks
from rxagent.stores.medium import Append, Line, LineCursor, Outcome, check_seq, encoded
from rxagent.stores.openings import Openings, message_time
from rxagent.stores.sqlite_file import connect, prepare_file, translated
from rxagent.stores.store import Store

CHECKED_BYTES = 1 << 28  # a file up to this size is checked whole before it is first written (a second or so)

_SEQS = 1 << 32  # events a session can have


@dataclass(slots=True)
class _Session:
    """What the writer knows of a session it writes."""

    key: int
    next_seq: int
    openings: Openings


class _Sqlite:
    durability = "disk"
    blocking = True

    def __init__(self, path: str) -> None:
        self._path = path
        self._locks = SessionLocks(f"{path}-lock")
        self._write_lock = threading.RLock()
        self._read_lock = threading.Lock()
        self._watch_lock = threading.Lock()
        self._connections: dict[str, sqlite3.Connection] = {}
        self._written: dict[str, _Session] = {}
        self._closed = False
        self._damaged = False
        prepare_file(path)

    # -- writing -----------------------------------------------------------------------------

    def prepare(self, session_id: str, first_seq: int, events: Sequence[AnyEvent]) -> Append:
        return Append(session_id, first_seq, events, encoded(events))

    def commit(self, appends: Sequence[Append]) -> list[Outcome]:
        with self._write_lock:
            db = self._connection("write")
            taken: list[str] = []
            try:
                with translated(self._path):
                    db.execute("BEGIN IMMEDIATE")
                    staged: dict[str, _Session] = {}
                    outcomes = [self._append(db, append, staged, taken) for append in appends]
                    db.execute("COMMIT")
            except BaseException as error:
                self._roll_back(db, taken, error)
                raise
            self._written.update(staged)
            for session_id in taken:
                if session_id not in staged:  # it was refused, so it made nobody a writer
                    self._locks.release(session_id)
            return outcomes

    def _roll_back(self, db: sqlite3.Connection, taken: list[str], error: BaseException) -> None:
        if db.in_transaction:
            try:
                db.execute("ROLLBACK")
            except sqlite3.Error:  # the first error says it all; a new connection starts clean
                self._disconnect("write")
        self._written.clear()  # whether the commit took place is read again
        self._damaged = self._damaged or isinstance(error, StoreCorrupt)
        for session_id in taken:
            self._locks.release(session_id)

    def _append(self, db: sqlite3.Connection, append: Append, staged: dict[str, _Session], taken: list[str]) -> Outcome:
        try:
            if self._locks.acquire(append.session_id):
                taken.append(append.session_id)
                self._written.pop(append.session_id, None)
        except RxAgentError as error:
            return error
        session = staged.get(append.session_id) or self._written.get(append.session_id)
        if session is None:
            session = self._look_up(db, append.session_id)
        refused: WrongSeq | None = check_seq(append, session.next_seq)
        if refused is None and append.events:
            staged[append.session_id] = self._insert(db, append, session)
        return refused

    def _look_up(self, db: sqlite3.Connection, session_id: str) -> _Session:
        key = _key(db, session_id)
        last = None if key is None else _last_before(db, key, _SEQS)
        if key is None or last is None:
            return _Session(key or 0, 0, Openings())
        seq, opening = last
        openings = Openings()
        if opening is not None:
            cursor = LineCursor(_Within(self, db), session_id, opening)
            while events := cursor.next(1024):
                for event in events:
                    openings.after(event)
        return _Session(key, seq + 1, openings)

    def _insert(self, db: sqlite3.Connection, append: Append, session: _Session) -> _Session:
        key = session.key or self._begin_session(db, append.session_id)
        openings = session.openings.copy()
        after = openings.after
        first = (key << 32) + append.first_seq
        rows = [
            (place, after(event), line.decode())
            for place, (event, line) in enumerate(zip(append.events, append.lines, strict=True), first)
        ]
        db.executemany("INSERT INTO events (place, opening, event) VALUES (?, ?, ?)", rows)
        starts = [event for event in append.events if event.type == "message_start"]
        times = [time for event in starts if (time := message_time(event)) is not None]
        if times:
            update = "UPDATE sessions SET first_time = coalesce(first_time, ?), last_time = ? WHERE key = ?"
            db.execute(update, (times[0], times[-1], key))
        return _Session(key, append.next_seq, openings)

    def _begin_session(self, db: sqlite3.Connection, session_id: str) -> int:
        key = db.execute("INSERT INTO sessions (id) VALUES (?)", (session_id,)).lastrowid
        assert key is not None
        return key

    def release(self, session_id: str) -> None:
        with self._write_lock:
            self._written.pop(session_id, None)
            self._locks.release(session_id)

    # -- reading -----------------------------------------------------------------------------

    def cursor(self, session_id: str, from_seq: int) -> LineCursor:
        return LineCursor(self, session_id, from_seq)

    def anchor(self, session_id: str, from_seq: int) -> int:
        with self._read_lock, translated(self._path):
            return _anchor(self._connection("read"), session_id, from_seq)

    def page(self, session_id: str, from_seq: int, limit: int) -> list[Line]:
        with self._read_lock, translated(self._path):
            return _page(self._connection("read"), session_id, from_seq, limit)

    def has(self, session_id: str) -> bool:
        return bool(self.page(session_id, 0, 1))

    def sessions(self) -> list[SessionInfo]:
        with self._read_lock, translated(self._path):
            rows = self._connection("read").execute(
                "SELECT id, (SELECT max(place) FROM events WHERE place >= key << 32 AND place < (key + 1) << 32), "
                "first_time, last_time FROM sessions ORDER BY key"
            )
            return [SessionInfo(name.decode(), _count(place), first, last) for name, place, first, last in rows]

    def stamp(self, session_id: str) -> object:
        if self._locks.holds(session_id):
            return None
        with self._watch_lock, translated(self._path):
            return self._connection("watch").execute("PRAGMA data_version").fetchone()[0]

    def damaged(self, problem: str) -> StoreCorrupt:
        return StoreCorrupt(f"{self._path} is damaged, it was left as it is: {problem}")

    # -- connections -------------------------------------------------------------------------

    def _connection(self, purpose: str) -> sqlite3.Connection:
        if self._closed:
            raise StoreClosed("the store was closed")
        found = self._connections.get(purpose)
        if purpose == "write" and self._damaged:
            raise self.damaged("that was found before, so nothing is written any more")
        if found is None:
            with translated(self._path):
                found = self._connections[purpose] = connect(self._path)
            if purpose == "write":
                self._check(found)
        return found

    def _check(self, db: sqlite3.Connection) -> None:
        """Before the first write: a damaged file shall stay as it is."""
        if os.path.getsize(self._path) > CHECKED_BYTES:  # noqa: PTH202 - a path is text all through this room
            return
        try:
            with translated(self._path):
                problem = db.execute("PRAGMA quick_check(1)").fetchone()[0].decode()
            if problem != "ok":
                raise self.damaged(problem)
        except StoreError as error:
            self._disconnect("write")
            self._damaged = isinstance(error, StoreCorrupt)
            raise

    def _disconnect(self, purpose: str) -> None:
        db = self._connections.pop(purpose, None)
        if db is not None:
            db.close()

    def close(self) -> None:
        with self._write_lock, self._read_lock, self._watch_lock:
            self._closed = True
            for purpose in ("watch", "read", "write"):  # the last one to go tidies the file up
                self._disconnect(purpose)
            self._locks.close()


class _Within:
    """Reading through the writer's connection, inside its transaction."""

    def __init__(self, medium: _Sqlite, db: sqlite3.Connection) -> None:
        self._db = db
        self.damaged = medium.damaged

    def anchor(self, session_id: str, from_seq: int) -> int:
        return from_seq

    def page(self, session_id: str, from_seq: int, limit: int) -> list[Line]:
        return _page(self._db, session_id, from_seq, limit)


def _key(db: sqlite3.Connection, session_id: str) -> int | None:
    row = db.execute("SELECT key FROM sessions WHERE id = ?", (session_id,)).fetchone()
    return None if row is None else row[0]


def _count(last_place: int | None) -> int:
    return 0 if last_place is None else last_place % _SEQS + 1


def _last_before(db: sqlite3.Connection, key: int, seq: int) -> tuple[int, int | None] | None:
    """Seq and opening of a session's last event before ``seq``."""
    begin = key << 32
    row = db.execute(
        "SELECT place, opening FROM events WHERE place >= ? AND place < ? ORDER BY place DESC LIMIT 1",
        (begin, begin + min(seq, _SEQS)),
    ).fetchone()
    return None if row is None else (row[0] - begin, row[1])


def _anchor(db: sqlite3.Connection, session_id: str, from_seq: int) -> int:
    key = _key(db, session_id)
    last = None if key is None else _last_before(db, key, from_seq)
    if last is None:
        return 0
    seq, opening = last
    return seq + 1 if opening is None else opening


def _page(db: sqlite3.Connection, session_id: str, from_seq: int, limit: int) -> list[Line]:
    key = _key(db, session_id)
    if key is None:
        return []
    begin = key << 32
    rows = db.execute(
        "SELECT place, event FROM events WHERE place >= ? AND place < ? ORDER BY place LIMIT ?",
        (begin + from_seq, begin + _SEQS, limit),
    )
    return [(place - begin, f"session {session_id!r}, event {place - begin}", event) for place, event in rows]


class SqliteStore(Store):
    """Event logs in one SQLite file, made if it isn't there. Beside it stand ``…-wal``, ``…-shm`` and ``…-lock``.

    Many processes may read and follow it, and write different sessions of it. Opening it raises
    `StoreCorrupt`, `StoreTooNew`, or `StoreError` for a file that isn't an rxagent store.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        name = os.fspath(path)
        if name in {"", ":memory:"}:
            raise UsageError("SqliteStore needs a file; for logs in memory use MemoryStore()")
        super().__init__(_Sqlite(os.path.realpath(name)))
