"""The body of an answer, from raw bytes to events: gzip, JSON and HTML are told by their first bytes. No I/O here.

Headers are not asked: servers get them wrong both ways.
"""

import json
import zlib
from collections.abc import Iterator, Mapping
from typing import cast

from pydantic import JsonValue
from pydantic_core import from_json

from rxagent.events.model import ModelError, ModelEvent
from rxagent.messages import JsonObject
from rxagent.models.classify import error_of, error_of_bytes
from rxagent.models.deltas import each
from rxagent.models.mend import lenient, without_halves
from rxagent.models.sse import DamagedLine, EventTooLarge, SseDecoder, SseEvents
from rxagent.models.wire import Decoder

_PACKED = (b"\x1f\x8b", b"\x78\x01", b"\x78\x5e", b"\x78\x9c", b"\x78\xda")  # gzip, and zlib, which HTTP calls deflate
_UNPACK = 47  # zlib finds out which
_BOM = b"\xef\xbb\xbf"
_TRIED = 1 << 18  # bytes of a JSON body that are tried for completeness at each read
_ENDED_EARLY = "the answer ended before its end: the server closed the connection early"


class BodyReader:
    """Feeds one body to a decoder. After `done` nothing more needs to be read."""

    def __init__(self, decoder: Decoder, cap: int) -> None:
        self._decoder = decoder
        self._cap = cap
        self._sse = SseDecoder(cap)
        self._head: bytes | None = b""  # until the form is known
        self._gunzip: zlib._Decompress | None = None  # pyright: ignore[reportPrivateUsage] the type has no public name
        self._json: bytearray | None = None
        self._seen = b""  # the beginning, for messages
        self._any = False

    @property
    def done(self) -> bool:
        """The answer is complete."""
        return self._decoder.done

    @property
    def complete(self) -> bool:
        """The answer is whole; what may follow is worth a moment only."""
        return self._decoder.done or self._decoder.complete or self._is_whole()

    def feed(self, chunk: bytes) -> Iterator[ModelEvent]:
        """The events that are complete with these bytes."""
        decoder = self._decoder
        decoder.out = []
        if self._head is not None or self._gunzip is not None or self._json is not None:
            self._careful(chunk)
        else:
            self._stream(chunk)
        return each(decoder.out)

    def end(self) -> Iterator[ModelEvent]:
        """The body is at its end."""
        return self.broken(None)

    def broken(self, failure: ModelError | None) -> Iterator[ModelEvent]:
        """The body ended, with ``failure`` before its end. The last event is the terminal one."""
        decoder = self._decoder
        decoder.out = []
        if decoder.done:
            return each(decoder.out)
        if self._gunzip is not None:
            self._careful(b"", last=True)
        if self._head:
            self._stream(self._head)
        if self._json is not None:
            self._whole(bytes(self._json), failure)
        elif failure is None or failure.kind in ("transport", "protocol"):
            events: list[SseEvents] = []
            damage = self._decode(None, events)
            if failure is None or not events or _complete(events[-1].data):
                self._take(events)
            failure = failure or damage
        if not decoder.done:
            decoder.eof(failure or self._early())
        return each(decoder.out)

    def refused(self, raw: bytes, status: int, headers: Mapping[str, str]) -> Iterator[ModelEvent]:
        """The server answered with an error status; ``headers`` by lower-case name."""
        if raw.startswith(_PACKED):
            try:
                raw = zlib.decompressobj(_UNPACK).decompress(raw, self._cap)
            except zlib.error:
                raw = b""
        self._decoder.out = []
        self._decoder.fail(error_of_bytes(raw, status, headers))
        return each(self._decoder.out)

    def _is_whole(self) -> bool:
        """The body is one whole JSON value, though its end wasn't seen."""
        body = self._json
        return body is not None and body.endswith((b"}", b"]")) and len(body) <= _TRIED and _complete(bytes(body))

    def _early(self) -> ModelError:
        said = self._seen.decode("utf-8", "replace").strip()
        if self._any or not said:
            return ModelError("protocol", _ENDED_EARLY, retryable=True)
        if "\ufffd" in said or "\0" in said:
            said = "bytes that are no text, perhaps compressed in a way that nobody asked for"
        return ModelError("protocol", f"the server sent no event stream but: {said[:300]}", retryable=True)

    def _careful(self, chunk: bytes, *, last: bool = False) -> None:
        if self._gunzip is None and self._head is not None:
            head = self._head + chunk
            if head[:2] in _PACKED:
                self._gunzip, self._head, chunk = zlib.decompressobj(_UNPACK), b"", head
            elif head in (b"", b"\x1f", b"\x78"):
                self._head = head
                return
        if self._gunzip is None:
            self._sniffed(chunk)
            return
        try:
            while chunk and not self._decoder.done:
                if self._gunzip.eof:  # some servers end a member at each flush
                    if not chunk.startswith(_PACKED[0][:1]):
                        return
                    self._gunzip = zlib.decompressobj(_UNPACK)
                # in steps: a small body may hold gigabytes
                plain = self._gunzip.decompress(chunk, 1 << 18)
                chunk = self._gunzip.unused_data if self._gunzip.eof else self._gunzip.unconsumed_tail
                self._sniffed(plain)
            if last and not self._decoder.done:
                self._sniffed(self._gunzip.flush())
        except zlib.error as error:
            self._fail(ModelError("protocol", f"the answer's compressed data is broken: {error}", retryable=True))

    def _sniffed(self, chunk: bytes) -> None:
        if self._head is not None:
            head = self._head + chunk
            start = head.removeprefix(_BOM).lstrip()
            if not start or head in (_BOM[:1], _BOM[:2]):
                self._head = head if len(head) < 4096 else b""
                return
            self._head, chunk = None, head
            if start[:1] in (b"{", b"[", b"<"):
                self._json = bytearray()
        if self._json is None:
            self._stream(chunk)
            return
        self._json += chunk
        if len(self._json) > self._cap:
            self._fail(self._too_large())

    def _stream(self, chunk: bytes) -> None:
        if not self._any and len(self._seen) < 400:
            self._seen += chunk[:400]
        events: list[SseEvents] = []
        failure = self._decode(chunk, events)
        self._take(events)
        if failure is not None:
            self._fail(failure)

    def _decode(self, chunk: bytes | None, events: list[SseEvents]) -> ModelError | None:
        """Decodes a chunk, or what is left at the end; what was decoded before a fault is in ``events``."""
        try:
            if chunk is None:
                self._sse.end(events)
            else:
                self._sse.feed(chunk, events)
        except EventTooLarge:
            return self._too_large()
        except DamagedLine as line:
            return ModelError("protocol", f"the stream is damaged: a line that is no event: {line}", retryable=True)
        return None

    def _take(self, events: list[SseEvents]) -> None:
        if not events:
            return
        self._any = True
        self._decoder.feed(events)

    def _whole(self, raw: bytes, failure: ModelError | None) -> None:
        raw = raw.removeprefix(_BOM).strip()
        if raw[:1] == b"<":
            if failure is None:
                self._decoder.fail(error_of(raw.decode("utf-8", "replace"), unknown=("protocol", False)))
            return
        try:
            value: JsonValue = from_json(raw)
        except ValueError:
            if not self._mended(raw):
                if raw[:1] == b"[":
                    self._cut_array(raw, failure)
                else:
                    self._json_lines(raw)
            return
        if isinstance(value, dict):
            self._decoder.whole(value)
        elif isinstance(value, list):
            self._decoder.chunks(value)

    def _mended(self, raw: bytes) -> bool:
        """Reads a whole answer that a strict parser refuses; tells whether it could be read."""
        value, replaced = lenient(raw)
        if isinstance(value, list):
            # as a stream, whose events may hold halves of one character
            self._decoder.feed([SseEvents("", json.dumps(item).encode()) for item in cast("list[object]", value)])
        elif isinstance(value, dict):
            self._decoder.damaged = self._decoder.damaged or replaced
            self._decoder.whole(cast("JsonObject", without_halves(cast("object", value))))
        return value is not None

    def _cut_array(self, raw: bytes, failure: ModelError | None) -> None:
        """A stream that came as a JSON array and was cut: what is whole of it counts, but it is no complete answer."""
        try:
            value: JsonValue = from_json(raw.rstrip(b", \r\n\t") + b"]")
        except ValueError:
            try:
                value = from_json(raw, allow_partial=True)
            except ValueError:
                return
            value = value[:-1] if isinstance(value, list) else []
        if isinstance(value, list):
            self._decoder.chunks(value)
        self._fail(failure or self._early())

    def _json_lines(self, raw: bytes) -> None:
        lines = [line for line in raw.splitlines() if line.strip()]
        if len(lines) > 1 and _complete(lines[0]):
            # a stream of bare JSON lines; the last one may be cut
            self._any = True
            self._decoder.feed([SseEvents("", line) for line in (lines if _complete(lines[-1]) else lines[:-1])])

    def _fail(self, failure: ModelError) -> None:
        if not self._decoder.done:
            self._decoder.fail(failure)

    def _too_large(self) -> ModelError:
        said = f"the server sent an event of more than {self._cap >> 20} MiB; it was refused (HttpOptions.max_event)"
        return ModelError("protocol", said)


def _complete(data: bytes) -> bool:
    try:
        from_json(data)
    except ValueError:
        return data.strip() == b"[DONE]"
    return True
