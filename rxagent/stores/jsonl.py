"""`JsonlStore`: event logs in one file of JSON Lines, for import, export and reading with other tools.

- An append is acknowledged when its lines are synced. A crash may leave the first lines of an append.
- The whole file is read once, at first use, and indexed in memory.
"""

import contextlib
import errno
import os
import stat
import threading
from collections.abc import Generator, Sequence

from pydantic_core import to_json

from rxagent.errors import CorruptLog, RxAgentError, StoreClosed, StoreError, StoreFull, StoreReadOnly
from rxagent.events import AnyEvent, MessageEnd, MessageStart
from rxagent.log import SessionInfo
from rxagent.stores.jsonl_file import Entry, LogFile
from rxagent.stores.locks import SessionLocks, file_mutex
from rxagent.stores.medium import Append, Line, LineCursor, Outcome, check_seq, encoded
from rxagent.stores.openings import Speaker, message_time
from rxagent.stores.store import Store

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


class _Jsonl:
    durability = "disk"
    blocking = True

    def __init__(self, path: str) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._locks = SessionLocks(path)
        self._fd, self._writable = _open(path)
        self._file = LogFile(path, self._fd)

    # -- writing -----------------------------------------------------------------------------

    def prepare(self, session_id: str, first_seq: int, events: Sequence[AnyEvent]) -> Append:
        lines = [
            line if event.origin.session_id == session_id else _wrapped(session_id, line)
            for event, line in zip(events, encoded(events), strict=True)
        ]
        return Append(session_id, first_seq, events, lines)

    def commit(self, appends: Sequence[Append]) -> list[Outcome]:
        with self._lock:
            self._check_open()
            if not self._writable:
                raise StoreReadOnly(f"{self._path} can be read but not written")
            with file_mutex(self._fd, shared=False):
                self._file.refresh()
                taken: list[str] = []
                staged: dict[str, int] = {}
                try:
                    outcomes = [self._accept(append, staged, taken) for append in appends]
                    accepted = [append for append, outcome in zip(appends, outcomes, strict=True) if outcome is None]
                    self._write([line for append in accepted for line in append.lines])
                except BaseException:
                    self._give_back(taken, {})
                    raise
                self._give_back(taken, staged)
            for append in accepted:
                for event, line in zip(append.events, append.lines, strict=True):
                    self._file.added(_entry(append.session_id, event), len(line))
            return outcomes

    def _accept(self, append: Append, staged: dict[str, int], taken: list[str]) -> Outcome:
        session_id = append.session_id
        try:
            if self._locks.acquire(session_id):
                taken.append(session_id)
        except RxAgentError as error:
            return error
        refused = check_seq(append, staged.get(session_id, self._count(session_id)))
        if refused is None and append.events:
            staged[session_id] = append.next_seq
        return refused

    def _give_back(self, taken: list[str], staged: dict[str, int]) -> None:
        for session_id in taken:
            if session_id not in staged:  # nothing was written, so it made nobody a writer
                self._locks.release(session_id)

    def _write(self, lines: list[bytes]) -> None:
        if not lines:
            return
        start = self._file.end
        data = b"\n".join([*lines, b""])
        try:
            os.ftruncate(self._fd, start)  # a torn line of a crash goes
            _write_all(self._fd, b"\n" + data if self._file.unended else data)
            os.fsync(self._fd)
        except OSError as error:
            with contextlib.suppress(OSError):  # what can't be cut off now is a torn line to the next writer
                os.ftruncate(self._fd, start)
            if error.errno in _FULL:
                raise StoreFull(f"{self._path}: {error.strerror}; nothing of this append was kept") from error
            raise StoreError(f"{self._path} can't be written: {error.strerror}") from error
        if self._file.unended:
            self._file.ended()

    def release(self, session_id: str) -> None:
        self._locks.release(session_id)

    # -- reading -----------------------------------------------------------------------------

    @contextlib.contextmanager
    def _reading(self) -> Generator[LogFile, None, None]:
        """The file, up to date; what another process is just writing is waited for, as it may yet fail."""
        with self._lock:
            self._check_open()
            with file_mutex(self._fd, shared=True):
                self._file.refresh()
            yield self._file

    def cursor(self, session_id: str, from_seq: int) -> LineCursor:
        return LineCursor(self, session_id, from_seq)

    def anchor(self, session_id: str, from_seq: int) -> int:
        with self._reading():
            last = min(from_seq, self._count(session_id)) - 1
            if last < 0:
                return 0
            opening = self._file.indexes[session_id].opening[last]
            return last + 1 if opening < 0 else opening

    def page(self, session_id: str, from_seq: int, limit: int) -> list[Line]:
        with self._reading() as file:
            stop = min(from_seq + limit, self._count(session_id))
            return [(seq, *file.line(session_id, seq)) for seq in range(from_seq, stop)]

    def has(self, session_id: str) -> bool:
        return self._count(session_id) > 0

    def sessions(self) -> list[SessionInfo]:
        with self._reading() as file:
            return [
                SessionInfo(session_id, len(index.offsets), index.first_time, index.last_time)
                for session_id, index in file.indexes.items()
            ]

    def stamp(self, session_id: str) -> object:
        if self._locks.holds(session_id):
            return None
        try:
            status = os.fstat(self._fd)
        except OSError as error:
            raise StoreClosed("the store was closed") from error
        return status.st_size, status.st_mtime_ns

    def damaged(self, problem: str) -> CorruptLog:
        return CorruptLog(problem)

    def close(self) -> None:
        with self._lock:
            self._locks.close()
            if self._fd >= 0:
                os.close(self._fd)
                self._fd = self._file.fd = -1

    def _count(self, session_id: str) -> int:
        index = self._file.indexes.get(session_id)
        return 0 if index is None else len(index.offsets)

    def _check_open(self) -> None:
        if self._fd < 0:
            raise StoreClosed("the store was closed")


def _open(path: str) -> tuple[int, bool]:
    """Opens or makes the file; whether it can be written."""
    flags = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
    try:
        try:
            fd, writable = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | flags, 0o666), True
        except OSError as error:
            if error.errno not in {errno.EACCES, errno.EPERM, errno.EROFS}:
                raise
            fd, writable = os.open(path, os.O_RDONLY | flags), False
    except OSError as error:
        raise StoreError(f"{path} can't be opened: {error.strerror}") from error
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise StoreError(f"{path} is no ordinary file; a log is read again and again, so it can't be a pipe or a device")
    return fd, writable


def _write_all(fd: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest) :]


def _wrapped(session_id: str, line: bytes) -> bytes:
    return b'{"session_id":%b,"event":%b}' % (to_json(session_id), line)


def _entry(session_id: str, event: AnyEvent) -> Entry:
    role = event.message.role if isinstance(event, MessageStart | MessageEnd) else ""
    speaker = Speaker(event.origin.path, event.origin.call_id)
    return Entry(session_id, event.seq, event.type, role, speaker, message_time(event))


class JsonlStore(Store):
    """Event logs in one file of JSON Lines, made if it isn't there. Raises `CorruptLog`, with the line, when it is damaged.

    A file that can't be written is read all the same; appends raise `StoreReadOnly`.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__(_Jsonl(os.path.realpath(path)))
