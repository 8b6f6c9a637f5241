"""Reading the next event by the last one: in a stream of deltas each differs from the one before in its text only.

Where all bytes but those of one JSON string are as they were in an event that was parsed, parsing again would
give the same again but for that string. So only the string is read. Everything else is parsed as ever.
"""

import re
from contextlib import suppress
from itertools import takewhile

from pydantic_core import from_json

from rxagent.models.deltas import MakeDelta

_COUNTER = re.compile(rb'"sequence_number"\s*:\s*')
_STRING = re.compile(rb'(?:[^"\\]|\\.)*+"', re.DOTALL)  # the rest of a string
_WINDOW = 16_384  # bytes looked at together, so that events that all differ are not looked at again and again
_FUTILE = 12  # events learnt from in a row, none of which helped: this server's events all differ


class Stencil:
    """The bytes around the text of the last event. While ``make`` is None there is none to go by."""

    __slots__ = ("_counter", "_futile", "_head", "_middle", "_name", "_tail", "index", "make")

    def __init__(self) -> None:
        self.make: MakeDelta | None = None
        self.index = 0
        self._name = ""
        self._head = b""
        self._middle = b""  # between a running number and the text
        self._tail = b""
        self._counter = False
        self._futile = 0

    def read(self, name: str, data: bytes, at: int = 0, between: bytes = b"") -> tuple[list[str], int]:
        """The texts of the events from ``at`` on that are otherwise like the last one, and where the first other one begins.

        ``between`` is what stands between two events of ``data``; with none, it is one event.
        """
        if name != self._name:
            return [], at
        end = len(data)
        if between and end - at > _WINDOW:
            end = max(data.rfind(between, at, at + _WINDOW), at)
        window = data[at:end]
        events = window.split(between) if between else [window]
        raws = self._insides(events, window, between)
        if not raws:
            return [], at
        self._futile = 0
        texts = _texts(raws)
        read = sum(map(len, events[: len(texts)])) + len(texts) * len(between)
        return texts, min(at + read, len(data))

    def _insides(self, events: list[bytes], window: bytes, between: bytes) -> list[bytes]:
        """What stands where the text should be, up to the first event that is not like the last."""
        start, end = len(self._head), -len(self._tail)
        # cut out of all of them what should differ, and see whether it was that
        raws = insides = [event[start:end] for event in events]
        alike = self._head + (self._tail + between + self._head).join(insides) + self._tail == window
        if self._counter:
            numbers, _, counted = zip(*[inside.partition(self._middle) for inside in insides], strict=True)
            raws = list(counted)
            alike = alike and b"".join(numbers).isdigit() and b"" not in numbers
        return raws if alike and b"" not in raws else list(takewhile(bool, map(self._inside, events)))

    def _inside(self, event: bytes) -> bytes:
        """What stands where the text should be; nothing in an event that is not like the last."""
        if not event.startswith(self._head) or not event.endswith(self._tail):
            return b""
        inside = event[len(self._head) : -len(self._tail)]
        if not self._counter:
            return inside
        number, _, raw = inside.partition(self._middle)
        return raw if number.isdigit() else b""

    def learn(self, name: str, data: bytes, key: re.Pattern[bytes], text: str) -> bool:
        """Takes an event as the pattern for the next ones; tells whether it can be one.

        ``key`` finds the text: a pattern that ends with the string's opening quote.
        """
        if self._futile > _FUTILE:
            return False
        self._futile += 1
        found = key.search(data)
        if found is None or key.search(data, found.end()) is not None:
            return False
        start = found.end()
        string = _STRING.match(data, start)
        if string is None or _text(data[start : string.end() - 1]) != text:
            return False
        end = string.end() - 1
        self._name, self._tail = name, data[end:]
        counter = _COUNTER.search(data, 0, start)
        self._counter = counter is not None
        if counter is None:
            self._head = data[:start]
        else:
            self._head = data[: counter.end()]
            self._middle = data[data.find(b",", counter.end()) : start]
        return True


def _texts(raws: list[bytes]) -> list[str]:
    """The strings of which these are the inside, up to the first that is none."""
    joined = b"\n".join(raws)
    if b"\\" not in joined and b'"' not in joined:
        with suppress(ValueError):
            split = joined.decode().split("\n")
            if len(split) == len(raws):  # else a string has a bare newline in it
                return split
    texts: list[str] = []
    for raw in raws:
        text = _text(raw)
        if text is None:
            break
        texts.append(text)
    return texts


def _text(raw: bytes) -> str | None:
    """What stands between the quotes of a string; None if it is not one string or not valid."""
    try:
        text = raw.decode()
        # with a quote in it, it is one string only if the quote is escaped; the parser knows
        return from_json(b'"%b"' % raw) if "\\" in text or '"' in text else text
    except ValueError:
        return None
