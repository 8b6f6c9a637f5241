"""Who writes: locks of the operating system on a file, so that a writer that dies holds none any more.

- One lock per session, on the byte of a file (far behind its content) that the session's name picks.
- Where the system has no locks per open file (outside Linux), one lock covers the whole store.
"""

import contextlib
import hashlib
import os
import struct
import sys
import threading
from collections.abc import Generator

from rxagent.errors import SessionLocked, StoreError, StoreReadOnly

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

PER_SESSION = sys.platform == "linux"

_MUTEX = 1 << 62
_SESSIONS = (1 << 62) + 1
_WHOLE_STORE = 1 << 30  # within what every system can address


def _lock_byte(fd: int, kind: int, place: int, *, wait: bool) -> bool:
    """Sets, or with F_UNLCK removes, a lock on one byte; False: somebody else holds it."""
    request = struct.pack("hhqqi0q", kind, os.SEEK_SET, place, 1, 0)
    try:
        fcntl.fcntl(fd, fcntl.F_OFD_SETLKW if wait else fcntl.F_OFD_SETLK, request)
    except (BlockingIOError, PermissionError):
        return False
    return True


def _lock_store(fd: int) -> bool:
    try:
        if sys.platform == "win32":
            os.lseek(fd, _WHOLE_STORE, os.SEEK_SET)
            msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


@contextlib.contextmanager
def file_mutex(fd: int, *, shared: bool) -> Generator[None, None, None]:
    """Waits until no other process is (shared: is writing) inside; the file must be open for what is asked.

    Where locks are per store, other processes are readers at most and there is nothing to wait for.
    """
    if not PER_SESSION:
        yield
        return
    _lock_byte(fd, fcntl.F_RDLCK if shared else fcntl.F_WRLCK, _MUTEX, wait=True)
    try:
        yield
    finally:
        _lock_byte(fd, fcntl.F_UNLCK, _MUTEX, wait=False)


class SessionLocks:
    """The sessions one store writes. Keeps one file open, made when the first session is taken."""

    def __init__(self, path: str, *, per_session: bool = PER_SESSION) -> None:
        self._path = path
        self._per_session = per_session
        self._lock = threading.Lock()
        self._fd = -1
        self._held: set[str] = set()

    def acquire(self, session_id: str) -> bool:
        """Becomes the session's writer; False if it was already.

        Raises:
            SessionLocked: another store is.
        """
        with self._lock:
            if session_id in self._held:
                return False
            if self._fd < 0:
                self._fd = self._open()
            locked = (
                _lock_byte(self._fd, fcntl.F_WRLCK, _place(session_id), wait=False)
                if self._per_session
                else bool(self._held) or _lock_store(self._fd)
            )
            if not locked:
                raise SessionLocked(
                    f"session {session_id!r} already has a writer: another store on this file, maybe in another process, "
                    "has appended to it and neither released nor closed it"
                )
            self._held.add(session_id)
            return True

    def release(self, session_id: str) -> None:
        """Is its writer no more."""
        with self._lock:
            if session_id not in self._held:
                return
            self._held.remove(session_id)
            if self._per_session:
                _lock_byte(self._fd, fcntl.F_UNLCK, _place(session_id), wait=False)
            elif not self._held:
                self._close()

    def holds(self, session_id: str) -> bool:
        """Whether it is the session's writer, so that nobody else writes it."""
        return session_id in self._held

    def close(self) -> None:
        """Releases all."""
        with self._lock:
            self._held.clear()
            self._close()

    def _open(self) -> int:
        try:
            return os.open(self._path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o666)
        except PermissionError as error:
            raise StoreReadOnly(f"{self._path} can't be written, so this store can only be read") from error
        except OSError as error:
            raise StoreError(f"can't lock sessions: {error}") from error

    def _close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)  # and with it go all its locks
            self._fd = -1


def _place(session_id: str) -> int:
    digest = hashlib.blake2b(session_id.encode(), digest_size=8).digest()
    return _SESSIONS + (int.from_bytes(digest) >> 2)
