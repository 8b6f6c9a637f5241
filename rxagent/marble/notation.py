"""One line of marbles: which symbol stands at which instant.

Every character is one frame, except: ``.`` and blanks align and take no time; ``250ms`` is a gap of that length.
``-`` is a quiet frame, ``|`` completes, ``#`` fails, ``^`` subscribes, ``!`` disposes, ``=`` is a frame held.
"""

import re
from dataclasses import dataclass

from rxagent.marble.faults import MarbleSyntaxError, Place, show_duration

COMPLETE, FAIL, SUBSCRIBE, DISPOSE, HELD = "|", "#", "^", "!", "="
CONTROL = frozenset((COMPLETE, FAIL, SUBSCRIBE, DISPOSE, HELD))
QUIET = "-"
ALIGN = frozenset(". \t")

_UNITS = {"us": 1_000, "ms": 1_000_000, "s": 1_000_000_000, "m": 60_000_000_000, "h": 3_600_000_000_000}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(us|ms|s|m|h)(?![0-9A-Za-z])")
_NEVER_A_SYMBOL = frozenset("()[]{}<>,\"'`\\")


@dataclass(frozen=True, slots=True)
class Mark:
    """A symbol at ``at`` nanoseconds after the line's start; ``column`` counts from 0 in the line's text."""

    at: int
    symbol: str
    column: int


@dataclass(frozen=True, slots=True)
class Line:
    """What a line of marbles says. ``length`` is in nanoseconds; ``place`` is that of its first character."""

    text: str
    place: Place
    marks: tuple[Mark, ...]
    length: int

    def where(self, mark: Mark) -> Place:
        """The place of ``mark`` in the file."""
        return self.place.right(mark.column)


def duration(text: str, place: Place) -> int:
    """Read ``250ms``, ``1.5s``, ``10m`` as nanoseconds."""
    match = _DURATION.fullmatch(text)
    if match is None:
        raise MarbleSyntaxError(place, f"{text!r} is not a duration; expected for example 10ms, 1.5s, 2m or 1h")
    return _nanoseconds(match)


def _nanoseconds(match: re.Match[str]) -> int:
    whole, _, part = match[1].partition(".")
    unit = _UNITS[match[2]]
    return int(whole) * unit + (int(part) * unit // 10 ** len(part) if part else 0)


def read_line(text: str, frame: int, place: Place) -> Line:
    """Read a line of marbles in which one column lasts ``frame`` nanoseconds.

    Raises ``MarbleSyntaxError`` at the character that can't be read.
    """
    marks: list[Mark] = []
    at = column = 0
    while column < len(text):
        char = text[column]
        gap = _gap_at(text, column)
        if gap is not None:
            at += _nanoseconds(gap)
            column = gap.end()
            continue
        if char not in ALIGN:
            if char != QUIET:
                _check_symbol(char, place.right(column))
                marks.append(Mark(at, char, column))
            at += frame
        column += 1
    return Line(text, place, tuple(marks), at)


def _gap_at(text: str, column: int) -> re.Match[str] | None:
    if not text[column].isdigit() or (column and (text[column - 1].isalnum())):
        return None
    return _DURATION.match(text, column)


def _check_symbol(char: str, place: Place) -> None:
    if char in "()":
        raise MarbleSyntaxError(
            place,
            f"a stray parenthesis {char!r}: one column is one frame, so several events at one instant "
            "are one symbol of the legend, as in  G = a b |",
        )
    if char in _NEVER_A_SYMBOL or not char.isprintable():
        raise MarbleSyntaxError(place, f"{char!r} can't stand for an event; expected a letter, a digit, or one of - | # ^ ! = .")


def is_symbol(text: str) -> bool:
    """Whether ``text`` can be given a meaning by a legend."""
    return (
        len(text) == 1
        and text.isprintable()
        and text not in ALIGN
        and text not in CONTROL
        and text != QUIET
        and text not in _NEVER_A_SYMBOL
    )


def write_line(events: list[tuple[int, str]], frame: int, end: int | None = None) -> str:
    """The shortest line that puts each symbol at its instant (nanoseconds); the inverse of ``read_line``.

    Quiet stretches of more than 24 frames, and those that are no whole number of frames, become gaps.
    ``end`` adds quiet frames up to there.
    """
    parts: list[str] = []
    at = 0
    for when, symbol in events:
        parts += [_quiet(when - at, frame), symbol]
        at = when + frame
    if end is not None and end > at:
        parts.append(_quiet(end - at, frame))
    return re.sub(" +", " ", "".join(parts)).strip(" ")


def _quiet(length: int, frame: int) -> str:
    frames, rest = divmod(length, frame)
    if length < 0:
        raise ValueError("two symbols in one frame")
    if rest == 0 and frames <= 24:
        return QUIET * frames
    return f" {show_duration(length)} "
