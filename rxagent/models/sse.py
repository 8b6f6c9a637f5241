"""Server-sent events out of bytes, however they are cut. No I/O here.

Follows the WHATWG event-stream format, but for what real servers need beyond it: a last event
without its blank line is delivered, bare JSON, be it over many lines, counts as data, and two JSON objects in
neighbouring ``data:`` lines are two events.
"""

import re
from typing import NamedTuple

KEEP_ALIVES = (b"ping", b"pong", b"keepalive", b"keep-alive", b"heartbeat")  # data that is no answer
FRAMED_AGAIN = re.compile(rb"(data:\s*)+")  # what is before the data where a proxy framed what was framed already
_BOM = b"\xef\xbb\xbf"
_FIELDS = (b"data", b"event", b"id", b"retry")
_OPEN = (b"{", b"[", b"[{")  # how JSON over many lines begins


class SseEvents(NamedTuple):
    """Events of one name (``""`` where they have none).

    ``data`` is that of one event, as UTF-8; or that of many, with ``between`` between each two, not split yet.
    """

    name: str
    data: bytes
    between: bytes = b""


class EventTooLarge(Exception):
    """One event is larger than the cap."""


class DamagedLine(Exception):
    """A line carries data under a name that is no field: bytes were lost or changed on the way."""


class SseDecoder:
    """Decodes one stream.

    Args:
        cap: bytes that one event may have at most.

    """

    __slots__ = ("_cap", "_cr", "_data", "_name", "_partial", "_size")

    def __init__(self, cap: int) -> None:
        self._cap = cap
        self._partial = bytearray()
        self._data: list[bytes] = []
        self._size = 0
        self._name = ""
        self._cr = False

    def feed(self, chunk: bytes, out: list[SseEvents]) -> None:
        """Appends the events that are complete with these bytes to ``out``.

        Raises:
            EventTooLarge: an event grows over the cap; the events before it are in ``out``.
            DamagedLine: a line that can't be trusted; the events before it are in ``out``.
        """
        if self._cr or b"\r" in chunk:
            chunk = self._unix(chunk)
        if self._partial or self._data or self._name:
            end = chunk.find(b"\n\n") + 2
            if end == 1:
                self._lines(chunk, out)
                return
            self._lines(chunk[:end], out)
            chunk = chunk[end:]
        end = chunk.rfind(b"\n\n") + 2
        if end > 1:
            self._whole(chunk[:end], out)
            chunk = chunk[end:]
        if chunk:
            self._lines(chunk, out)

    def _whole(self, chunk: bytes, out: list[SseEvents]) -> None:
        """Takes whole events, told by their blank lines: nearly everything that is ever read."""
        if len(chunk) > self._cap:
            self._lines(chunk, out)
            return
        first = chunk[: chunk.find(b"data: ") + 6]
        named = first.startswith(b"event: ") and first.find(b"\n") == len(first) - 7
        if named or first == b"data: ":
            between = b"\n\n" + first
            if chunk.count(b"\n") == (3 if named else 2) * (chunk.count(between) + 1):
                # all of one name and no other line in between: each is one line of data
                out.append(SseEvents(first[7:-7].decode("utf-8", "replace") if named else "", chunk[len(first) : -2], between))
                return
        for block in chunk[:-2].split(b"\n\n"):
            title, newline, data = block.partition(b"\n")
            if not newline and title.startswith(b"data: "):
                out.append(SseEvents("", title[6:]))
            elif title.startswith(b"event: ") and data.startswith(b"data: ") and b"\n" not in data:
                out.append(SseEvents(title[7:].decode("utf-8", "replace"), data[6:]))
            else:
                self._lines(block + b"\n\n", out)

    def end(self, out: list[SseEvents]) -> None:
        """The bytes are at their end: delivers an event that lacks its blank line."""
        if self._partial:
            line, self._partial = bytes(self._partial), bytearray()
            self._line(line, out)
        self._dispatch(out)

    def _unix(self, chunk: bytes) -> bytes:
        # a CR ends its line at once; the LF that may follow it, perhaps in the next read, is part of it
        if self._cr and chunk:
            self._cr = False
            if chunk.startswith(b"\n"):
                chunk = chunk[1:]
        if b"\r" not in chunk:
            return chunk
        self._cr = chunk.endswith(b"\r")
        return chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")

    def _lines(self, chunk: bytes, out: list[SseEvents]) -> None:
        if b"\n" in chunk:
            lines = chunk.split(b"\n")
            if self._partial:
                lines[0] = bytes(self._partial) + lines[0]
            self._partial = bytearray(lines.pop())
            for line in lines:
                self._line(line, out)
        else:
            self._partial += chunk
        if len(self._partial) + self._size > self._cap:
            raise EventTooLarge

    def _line(self, line: bytes, out: list[SseEvents]) -> None:
        line = line.removeprefix(_BOM)  # not the first line's only: proxies join streams that each have one
        if not line:
            self._dispatch(out)
            return
        field, colon, value = line.partition(b":")
        if field == b"data":
            self._more(value.removeprefix(b" "), out)
        elif field == b"event":
            self._name = value.removeprefix(b" ").decode("utf-8", "replace")
        elif not field or field in _FIELDS:
            return
        elif field.strip().lower() == b"data":
            self._more(value.removeprefix(b" "), out)
        elif line.lstrip()[:1] in (b"{", b"[") or (self._data and self._data[0].strip() in _OPEN):
            self._more(line, out)
        elif colon and b"{" in line:
            raise DamagedLine(line[:100].decode("utf-8", "replace"))

    def _more(self, value: bytes, out: list[SseEvents]) -> None:
        # inside one JSON value no line ends with } where the next starts with {
        if self._data and (value == b"[DONE]" or (value[:1] == b"{" and self._data[-1].rstrip()[-1:] == b"}")):
            self._dispatch(out)
        self._size += len(value) + 1
        if self._size > self._cap:
            raise EventTooLarge
        self._data.append(value)

    def _dispatch(self, out: list[SseEvents]) -> None:
        if self._data:
            out.append(SseEvents(self._name, b"\n".join(self._data)))
            self._data = []
            self._size = 0
        self._name = ""
