"""Reading the next event by the last one: in a stream of deltas each differs from the one before in its text only.

Where all bytes but those of one JSON string are as they were in an event that was parsed, parsing again would
give the same again but for that string. So only the string is read. Everything else is parsed as ever.
"""

import re
from collections.abc import Callable

from pydantic_core import from_json

from rxagent.events.model import ModelEvent

MakeDelta = Callable[[str, int], ModelEvent]

_COUNTER = re.compile(rb'"sequence_number"\s*:\s*')
_STRING = re.compile(rb'(?:[^"\\]|\\.)*+"', re.DOTALL)  # the rest of a string
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

    def read(self, name: str, data: bytes) -> str | None:
        """The text of an event that is otherwise like the last; None for any other event."""
        if not data.startswith(self._head) or not data.endswith(self._tail) or name != self._name:
            return None
        start = len(self._head)
        if self._counter:
            after = data.find(b",", start)
            if not data.startswith(self._middle, after) or not data[start:after].isdigit():
                return None
            start = after + len(self._middle)
        raw = data[start : len(data) - len(self._tail)]
        if not raw:
            return None
        self._futile = 0
        return _text(raw)

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


def _text(raw: bytes) -> str | None:
    """What stands between the quotes of a string; None if it is not one string or not valid."""
    try:
        text = raw.decode()
        # with a quote in it, it is one string only if the quote is escaped; the parser knows
        return from_json(b'"%b"' % raw) if "\\" in text or '"' in text else text
    except ValueError:
        return None
