"""JSON of a stream that a strict parser refuses: characters cut in half between events, stray bytes."""

import json
import re
from typing import cast

# an escaped surrogate at the end or the start of a string; the backslash itself is not escaped
_HIGH_AT_END = re.compile(rb'(?<!\\)((?:\\\\)*)(\\u[dD][89abAB][0-9a-fA-F]{2})"')
_LOW_AT_START = re.compile(rb'"(\\u[dD][c-fC-F][0-9a-fA-F]{2})')
_LONE = re.compile("[\ud800-\udfff]")


class Surrogates:
    """Parses events whose strings hold half of a character (``"\\ud83d"``), as servers that cut by UTF-16 units send.

    The first half waits for the second, which comes in a later event; a half that finds no other becomes U+FFFD.
    """

    __slots__ = ("_held",)

    def __init__(self) -> None:
        self._held = b""

    def parse(self, data: bytes) -> tuple[object, bool]:
        """Gives the value, None where it is no JSON at all, and whether invalid bytes had to be replaced."""
        text = data
        if self._held and (low := _LOW_AT_START.search(text)):
            text = text[: low.start() + 1] + self._held + text[low.start() + 1 :]
            self._held = b""
        if high := _HIGH_AT_END.search(text):
            self._held = high.group(2)
            text = text[: high.start(2)] + text[high.end(2) :]
        value, replaced = lenient(text)
        return without_halves(value), replaced


def lenient(data: bytes) -> tuple[object, bool]:
    """Parses JSON with raw control characters, halves of characters or stray bytes in its strings.

    Gives the value with the halves still in it, None where it is no JSON at all, and whether bytes were replaced.
    """
    text = data.decode("utf-8", "replace")
    try:
        value = json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return None, False
    return value, "\ufffd" in text and b"\xef\xbf\xbd" not in data


def without_halves(value: object) -> object:
    """The value with U+FFFD in place of each half of a character."""
    if isinstance(value, str):
        return _LONE.sub("\ufffd", value)
    if isinstance(value, list):
        return [without_halves(item) for item in cast("list[object]", value)]
    if isinstance(value, dict):
        return {without_halves(key): without_halves(item) for key, item in cast("dict[str, object]", value).items()}
    return value
