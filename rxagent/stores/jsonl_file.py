"""A file of JSON Lines with the logs of many sessions, and an index of where each event stands.

- A line is an event as `to_json` writes it; where its origin doesn't name the session, it is
  ``{"session_id": …, "event": …}``. So what ``rxagent run --mode json`` prints is such a file.
- A last line without its end is what a crash left: whole, it counts; torn, it is passed over and the next
  append cuts it off. Anything else that is no event is damage, and the file is left as it is.
"""

import os
from array import array
from typing import NamedTuple, cast

from pydantic import JsonValue
from pydantic_core import from_json, to_json

from rxagent.errors import CorruptLog
from rxagent.stores.openings import Openings, Speaker

BLOCK = 1 << 20

_Object = dict[str, JsonValue]


class Entry(NamedTuple):
    """What the index needs to know of one event."""

    session_id: str
    seq: int
    kind: str
    role: str
    speaker: Speaker
    time: float | None


class Index:
    """Where a session's events stand in the file: 24 bytes of memory for each."""

    def __init__(self) -> None:
        self.offsets = array("Q")
        self.sizes = array("I")
        self.numbers = array("I")
        self.opening = array("q")  # -1: no answer is streaming after the event
        self.openings = Openings()
        self.first_time: float | None = None
        self.last_time: float | None = None

    def add(self, entry: Entry, offset: int, size: int, number: int) -> None:
        """Notes the next event: its line begins at ``offset``, is ``size`` bytes long and the file's ``number``-th."""
        opening = self.openings.step(entry.seq, entry.kind, entry.role, entry.speaker)
        self.offsets.append(offset)
        self.sizes.append(size)
        self.numbers.append(number)
        self.opening.append(-1 if opening is None else opening)
        if entry.time is not None:
            self.last_time = entry.time
            self.first_time = entry.time if self.first_time is None else self.first_time


class LogFile:
    """The file as far as it has been read. Not thread-safe; reading and writing take turns."""

    def __init__(self, path: str, fd: int) -> None:
        self.path = path
        self.fd = fd
        self.indexes: dict[str, Index] = {}
        self.end = 0  # of the last event
        self.unended = False  # that event's line lacks its line end
        self._lines = 0

    def refresh(self) -> None:
        """Reads what has been added.

        Raises:
            CorruptLog: a line is no event, or not the next one of its session; names the line.
        """
        size = os.fstat(self.fd).st_size
        if size < self.end:
            raise CorruptLog(f"{self.path} has become shorter than what was read of it ({size} < {self.end} bytes)")
        rest = b""
        offset = self.end
        while block := self._at(offset + len(rest), BLOCK):
            *lines, rest = (rest + block).split(b"\n")
            for line in lines:
                self._take(line, offset)
                offset += len(line) + 1
        if rest and _is_whole(rest):
            self._take(rest, offset)
            self.end = offset + len(rest)
            self.unended = True

    def line(self, session_id: str, seq: int) -> tuple[str, bytes]:
        """Where an event stands, for errors, and its JSON."""
        index = self.indexes[session_id]
        line = self._at(index.offsets[seq], index.sizes[seq])
        place = f"{self.path}, line {index.numbers[seq]}"
        if b'"event"' not in line:
            return place, line
        value = cast("_Object", from_json(line))
        return place, line if "type" in value else to_json(value["event"])

    def added(self, entry: Entry, size: int) -> None:
        """Notes a line that has just been written at ``end``, with its line end."""
        self._lines += 1
        self.indexes.setdefault(entry.session_id, Index()).add(entry, self.end, size, self._lines)
        self.end += size + 1
        self.unended = False

    def ended(self) -> None:
        """Notes that the last line has got the line end it lacked."""
        self.end += 1
        self.unended = False

    def _at(self, offset: int, size: int) -> bytes:
        os.lseek(self.fd, offset, os.SEEK_SET)
        return os.read(self.fd, size)

    def _take(self, line: bytes, offset: int) -> None:
        if self.unended and not line:  # the end of a line that is known already
            self.ended()
            return
        self._lines += 1
        if line and not line.isspace():
            entry = self._entry(line)
            index = self.indexes.setdefault(entry.session_id, Index())
            if entry.seq != len(index.offsets):
                raise self._damage(
                    f"holds event {entry.seq} of session {entry.session_id!r}, which goes on with {len(index.offsets)}"
                )
            index.add(entry, offset, len(line), self._lines)
        self.end = offset + len(line) + 1

    def _entry(self, line: bytes) -> Entry:
        try:
            return entry_of(line)
        except ValueError as error:
            shown = line[:120].decode("utf-8", "replace")
            self._lines -= 1  # it is read again next time
            number = self._lines + 1
            raise CorruptLog(f"{self.path}, line {number} is no event: {error}; it reads {shown}") from error

    def _damage(self, problem: str) -> CorruptLog:
        number, self._lines = self._lines, self._lines - 1
        return CorruptLog(f"{self.path}, line {number} {problem}")


def entry_of(line: bytes) -> Entry:
    """What a line says about itself. Raises ValueError for one that is no event."""
    value = from_json(line, cache_strings="keys")
    if not isinstance(value, dict):
        raise ValueError("an event is a JSON object")  # noqa: TRY004 - of the line, not of an argument
    outer = event = cast("_Object", value)
    if "type" not in outer and isinstance(wrapped := outer.get("event"), dict):
        event = wrapped
    kind, seq, origin, message = (event.get(name) for name in ("type", "seq", "origin", "message"))
    origin = origin if isinstance(origin, dict) else {}
    message = message if isinstance(message, dict) else {}
    session_id = outer.get("session_id") if event is not outer else origin.get("session_id")
    if not isinstance(kind, str) or not isinstance(seq, int):
        raise ValueError("an event has a type and a seq")  # noqa: TRY004 - as above
    if not isinstance(session_id, str) or not session_id:
        raise ValueError("it names no session")
    path = origin.get("path")
    speaker = Speaker(tuple(map(str, path)) if isinstance(path, list) else (), str(origin.get("call_id", "")))
    time = message.get("timestamp") if kind == "message_start" else None
    return Entry(session_id, seq, kind, str(message.get("role")), speaker, time if isinstance(time, float) and time else None)


def _is_whole(line: bytes) -> bool:
    """Whether a last line without its end is an event all the same. A torn one isn't: its last brace is missing."""
    try:
        entry_of(line)
    except ValueError:
        return False
    return True
