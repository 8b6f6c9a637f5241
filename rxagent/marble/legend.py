"""The legend of a block as written: which symbol stands for what, not yet evaluated."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import zip_longest

from rxagent.marble.faults import MarbleSyntaxError, Place
from rxagent.marble.notation import COMPLETE, CONTROL, FAIL, is_symbol

_ENTRY = re.compile(r"(\S+)[ \t]+=(?=[ \t]|$)[ \t]*")
_FIELD = re.compile(r"([A-Za-z_][\w.\[\]-]*)(?:[ \t]*(~)[ \t]*(?=/)|=(?![=\s]))")
_WORD = re.compile(r"[A-Za-z_][\w.-]*")
_CLOSERS = {"(": ")", "[": "]", "{": "}"}


@dataclass(frozen=True, slots=True)
class Literal:
    """A value as Python or as a bare word writes it; ``source`` is evaluated when the block is played."""

    source: str
    place: Place


@dataclass(frozen=True, slots=True)
class Pattern:
    """Any value whose text contains a match of ``regex``."""

    regex: re.Pattern[str]


@dataclass(frozen=True, slots=True)
class Anything:
    """Any value at all."""


Slot = Literal | Pattern | Anything


@dataclass(frozen=True, slots=True)
class Term:
    """A constructor with its arguments: ``tool_end 4 is_error=False text ~ /4/``."""

    word: str
    positional: tuple[Slot, ...]
    fields: tuple[tuple[str, Slot], ...]
    source: str


@dataclass(frozen=True, slots=True)
class Group:
    """Several symbols at one instant, in order."""

    symbols: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Itself:
    """The symbol's own character, or its digit's value."""

    value: str | int


@dataclass(frozen=True, slots=True)
class Expression:
    """A Python expression."""

    source: str


Meaning = Term | Group | Itself | Expression | Pattern | Anything


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the legend. ``place`` is that of the symbol."""

    symbol: str
    meaning: Meaning
    place: Place


def read_legend(parts: list[tuple[str, Place]], words: frozenset[str]) -> dict[str, Entry]:
    """Read the text behind ``where``, a part for each line; ``words`` are the known constructors.

    Raises ``MarbleSyntaxError`` at the place that can't be read.
    """
    pieces = [piece for text, place in parts for piece in _split(text, place)]
    defined = {symbol for left, _, _, _ in pieces for symbol in left}
    entries: dict[str, Entry] = {}
    for left, place, source, source_place in pieces:
        for offset, symbol in enumerate(left):
            here = place.right(offset)
            if symbol in entries:
                raise MarbleSyntaxError(here, f"{symbol!r} already stands for something, at {entries[symbol].place}")
            meaning = _meaning(symbol, source, source_place, words=words, defined=defined)
            entries[symbol] = Entry(symbol, meaning, here)
    _check_groups(entries)
    return entries


def _split(text: str, place: Place) -> Iterator[tuple[str, Place, str, Place]]:
    """The entries of one line: what stands left of ``=`` and where, what stands right of it and where."""
    starts = [m for m in _ENTRY.finditer(text) if _starts_entry(text, m)]
    if text.strip() and (not starts or text[: starts[0].start()].strip()):
        raise MarbleSyntaxError(
            place.right(len(text) - len(text.lstrip())),
            "expected  symbol = value  (entries of one line are two blanks or more apart)",
        )
    for match, following in zip_longest(starts, starts[1:]):
        here = place.right(match.start(1))
        for offset, symbol in enumerate(match[1]):
            if not is_symbol(symbol) and symbol != FAIL:
                raise MarbleSyntaxError(here.right(offset), f"{symbol!r} can't be given a meaning")
        source = text[match.end() : following.start() if following else len(text)].strip()
        yield match[1], here, source, place.right(match.end())


def _starts_entry(text: str, match: re.Match[str]) -> bool:
    before = text[: match.start()]
    if before.strip() and not before.endswith(("  ", "\t")):
        return False
    return _is_outside_brackets(before)


def _is_outside_brackets(text: str) -> bool:
    try:
        return _skip(text, 0, stop_at_blank=False) == len(text)
    except IndexError:
        return False


def _skip(text: str, at: int, *, stop_at_blank: bool) -> int:
    """The end of the value at ``at``; raises ``IndexError`` where a bracket, string or pattern stays open."""
    open_brackets: list[str] = []
    while at < len(text):
        char = text[at]
        if open_brackets and char == open_brackets[-1]:
            open_brackets.pop()
        elif char in _CLOSERS:
            open_brackets.append(_CLOSERS[char])
        elif char in "\"'" and (open_brackets or not at or not text[at - 1].isalpha() or text[at - 1] in "rbfu"):
            at = _end_of_quote(text, at)
            continue
        elif char == "/" and text[:at].rstrip().endswith("~"):
            at = _end_of_pattern(text, at)
            continue
        elif char.isspace() and stop_at_blank and not open_brackets:
            return at
        at += 1
    if open_brackets:
        raise IndexError(open_brackets[-1])
    return at


def _end_of_quote(text: str, at: int) -> int:
    quote = text[at]
    at += 1
    while text[at] != quote:
        at += 2 if text[at] == "\\" else 1
    return at + 1


def _end_of_pattern(text: str, at: int) -> int:
    at += 1
    while text[at] != "/":
        at += 2 if text[at] == "\\" else 1
    return at + 1


def _meaning(  # noqa: PLR0911 - one return for each kind of meaning
    symbol: str, source: str, place: Place, *, words: frozenset[str], defined: set[str]
) -> Meaning:
    if not source:
        raise MarbleSyntaxError(place, f"nothing stands behind {symbol} =")
    tokens = source.split()
    if (len(tokens) > 1 or not tokens[0].isdigit()) and all(t in defined or t in CONTROL for t in tokens):
        return Group(tuple(tokens))
    if source == "symbol":
        return Itself(symbol)
    if source == "number":
        if not symbol.isdigit():
            raise MarbleSyntaxError(place, f"{symbol!r} is no digit, so it can't stand for its number")
        return Itself(int(symbol))
    if source == "*":
        return Anything()
    if source.startswith("~"):
        return read_pattern(source, place)
    word = _WORD.match(source)
    try:
        if word and word[0] in words and (word.end() == len(source) or source[word.end()].isspace()):
            return read_term(source, place)
        return Expression(check_expression(source, place))
    except MarbleSyntaxError as error:
        if len(tokens) > 1 and defined.intersection(tokens) and all(len(t) == 1 for t in tokens):
            unknown = next(t for t in tokens if t not in defined and t not in CONTROL)
            raise MarbleSyntaxError(place, f"unknown symbol {unknown!r}: the legend does not say what it stands for") from None
        near = get_close_matches(word[0], sorted(words), 1, 0.75) if word else []
        hint = f"; did you mean the word {near[0]}?" if near else ""
        if _ENTRY.search(source):
            hint = "; entries of one line are two blanks or more apart"
        raise MarbleSyntaxError(error.place, error.what + hint) from None


def _check_groups(entries: dict[str, Entry]) -> None:
    for entry in entries.values():
        if not isinstance(entry.meaning, Group):
            continue
        for member in entry.meaning.symbols:
            if member in entries and isinstance(entries[member].meaning, Group):
                raise MarbleSyntaxError(entry.place, f"{member!r} is itself a group; list its members here")
        if any(m in (COMPLETE, FAIL) for m in entry.meaning.symbols[:-1]):
            raise MarbleSyntaxError(entry.place, f"in {entry.symbol} = … an event stands after the end")


def check_expression(source: str, place: Place) -> str:
    """``source`` if it is a Python expression; else ``MarbleSyntaxError`` where Python stops understanding it."""
    try:
        ast.parse(source.strip(), mode="eval")
    except SyntaxError as error:
        column = max((error.offset or 1) - 1, 0) if error.lineno == 1 else 0
        raise MarbleSyntaxError(place.right(column), f"not a Python expression: {error.msg}: {source}") from None
    return source.strip()


def read_pattern(text: str, place: Place) -> Pattern:
    """Read ``~ /regex/``."""
    match = re.fullmatch(r"~?\s*/((?:[^/\\]|\\.)*)/", text)
    if match is None:
        raise MarbleSyntaxError(place, f"expected a pattern  ~ /regex/  and found {text!r}")
    try:
        return Pattern(re.compile(match[1].replace("\\/", "/"), re.DOTALL))
    except re.error as error:
        raise MarbleSyntaxError(place, f"not a regular expression: {error}") from None


def read_term(source: str, place: Place) -> Term:
    """Read a constructor with its arguments."""
    word = _WORD.match(source)
    if word is None:
        raise MarbleSyntaxError(place, f"expected a word and found {source!r}")
    positional, fields = read_arguments(source[word.end() :], place.right(word.end()))
    return Term(word[0], positional, fields, source)


def read_arguments(text: str, place: Place) -> tuple[tuple[Slot, ...], tuple[tuple[str, Slot], ...]]:
    """Read ``value value name=value name ~ /regex/ name=*``."""
    positional: list[Slot] = []
    fields: list[tuple[str, Slot]] = []
    at = 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        name, start = None, at
        if field := _FIELD.match(text, at):
            name, at = field[1], field.end()
            start = at if field[2] is None else field.end(2) - 1
        elif text[at] == "~":
            at = _after_blanks(text, at + 1)
        end = _end_of_value(text, at, place)
        slot = _slot(text[start:end], place.right(start))
        if name is None:
            positional.append(slot)
        else:
            fields.append((name, slot))
        at = end
    return tuple(positional), tuple(fields)


def _after_blanks(text: str, at: int) -> int:
    while at < len(text) and text[at].isspace():
        at += 1
    return at


def _end_of_value(text: str, at: int, place: Place) -> int:
    try:
        return _skip(text, at, stop_at_blank=True)
    except IndexError:
        raise MarbleSyntaxError(place.right(at), f"a bracket, string or pattern is not closed: {text[at:]}") from None


def _slot(text: str, place: Place) -> Slot:
    if text == "*":
        return Anything()
    if text.startswith("~"):
        return read_pattern(text, place)
    if not text:
        raise MarbleSyntaxError(place, "expected a value")
    return Literal(check_expression(text, place) if not _WORD.fullmatch(text) else text, place)
