"""The legend brought to life: symbols to values for inputs, values to symbols for what came out."""

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field

from rxagent.marble.block import Block
from rxagent.marble.describing import describe
from rxagent.marble.faults import MarbleError, MarbleSyntaxError, Place
from rxagent.marble.legend import Anything, Entry, Expression, Group, Itself, Literal, Pattern, Term
from rxagent.marble.matching import accepts, same, text_of
from rxagent.marble.notation import COMPLETE, CONTROL, FAIL
from rxagent.marble.vocabulary import make

_CONSTANTS = {"True": True, "False": False, "None": None}


class SourceFailed(MarbleError):
    """The error that ``#`` is, unless the legend gives it a value."""


@dataclass(frozen=True, slots=True)
class Value:
    """Something that came out: an emitted value."""

    value: object


@dataclass(frozen=True, slots=True)
class Failure:
    """Something that came out: the stream failed."""

    error: BaseException


@dataclass(frozen=True, slots=True)
class Control:
    """Something that happened: ``|``, ``^``, ``!`` or ``=``."""

    symbol: str


Happening = Value | Failure | Control


@dataclass(slots=True)
class Legend:
    """What the symbols of ``block`` stand for, evaluated in ``names``; each expression once."""

    block: Block
    names: Mapping[str, object] = field(repr=False)
    _values: dict[str, object] = field(default_factory=dict[str, object])

    def evaluate(self, slot: Literal) -> object:
        """The value a word or expression stands for; bare words stand for themselves."""
        if slot.source in _CONSTANTS:
            return _CONSTANTS[slot.source]
        if all(part.isidentifier() or part.isalnum() for part in slot.source.replace("-", ".").split(".")) and not (
            slot.source[0].isdigit()
        ):
            return slot.source
        return self._eval(slot.source, slot.place)

    def _eval(self, source: str, place: Place) -> object:
        try:
            return ast.literal_eval(source)
        except (ValueError, SyntaxError):
            pass
        try:
            return eval(source, dict(self.names))  # noqa: S307 - the block is the test's own code
        except Exception as error:
            raise MarbleSyntaxError(place, f"{source} raises {type(error).__name__}: {error}") from error

    def make(self, symbol: str, place: Place) -> object:
        """The value of ``symbol`` in an input line; ``place`` is where it stands."""
        entry = self.block.legend[symbol]
        if symbol not in self._values:
            try:
                self._values[symbol] = self._make(entry)
            except (TypeError, ValueError) as error:
                raise MarbleSyntaxError(place, f"{symbol} can't stand in an input: {error}") from error
        return self._values[symbol]

    def _make(self, entry: Entry) -> object:
        meaning = entry.meaning
        if isinstance(meaning, Itself):
            return meaning.value
        if isinstance(meaning, Term):
            return make(meaning, self.evaluate)
        if isinstance(meaning, Expression):
            return self._eval(meaning.source, entry.place)
        raise ValueError("a pattern can only be expected; an input needs a value")

    def failure(self, place: Place) -> Exception:
        """The exception that ``#`` is in an input line."""
        entry = self.block.legend.get(FAIL)
        if entry is None or isinstance(entry.meaning, Anything | Pattern):  # these say what is expected, not what goes in
            return SourceFailed("the source failed (#)")
        error = self.make(FAIL, place)
        if isinstance(error, type) and issubclass(error, Exception):
            return error()
        if not isinstance(error, Exception):
            raise MarbleSyntaxError(place, f"# stands for {error!r}, which is no exception")
        return error

    def accepts(self, symbol: str, happening: Happening) -> bool:
        """Whether ``happening`` is what ``symbol`` expects."""
        if isinstance(happening, Control):
            return symbol == happening.symbol
        if isinstance(happening, Failure):
            return symbol == FAIL and self._accepts_failure(happening.error)
        return symbol not in CONTROL and symbol in self.block.legend and self._accepts_value(symbol, happening.value)

    def _accepts_failure(self, error: BaseException) -> bool:
        entry = self.block.legend.get(FAIL)
        if entry is None:  # nothing else than what an input's own # is may pass unnamed
            return isinstance(error, SourceFailed)
        if isinstance(entry.meaning, Anything):
            return True
        if isinstance(entry.meaning, Pattern):
            return entry.meaning.regex.search(f"{type(error).__name__}: {error}") is not None
        wanted = self.make(FAIL, entry.place)
        if isinstance(wanted, type):
            return isinstance(error, wanted)
        return type(error) is type(wanted) and str(error) == str(wanted)

    def _accepts_value(self, symbol: str, value: object) -> bool:
        entry = self.block.legend[symbol]
        meaning = entry.meaning
        if isinstance(meaning, Anything):
            return True
        if isinstance(meaning, Pattern):
            return meaning.regex.search(text_of(value)) is not None
        if isinstance(meaning, Itself):
            return same(meaning.value, value)
        if isinstance(meaning, Term):
            try:
                return accepts(meaning, value, self.evaluate)
            except ValueError as error:
                raise MarbleSyntaxError(entry.place, str(error)) from error
        return isinstance(meaning, Expression) and same(self.make(symbol, entry.place), value)

    def symbol_for(self, happening: Happening) -> str | None:
        """The symbol that says ``happening`` best: an exact one before a pattern, none if there is none."""
        if isinstance(happening, Control):
            return happening.symbol
        if isinstance(happening, Failure):
            return FAIL
        fitting = [s for s, e in self.block.legend.items() if s != FAIL and self.accepts(s, happening) and not _vague(e)]
        vague = [s for s, e in self.block.legend.items() if s != FAIL and _vague(e) and self.accepts(s, happening)]
        return next(iter([*fitting, *vague]), None)

    def group_for(self, symbols: tuple[str, ...]) -> str | None:
        """The group that lists exactly ``symbols``."""
        return next(
            (s for s, e in self.block.legend.items() if isinstance(e.meaning, Group) and e.meaning.symbols == symbols),
            None,
        )

    def describe(self, symbol: str) -> str:
        """What ``symbol`` stands for, as the block writes it."""
        if symbol == COMPLETE:
            return "the end"
        entry = self.block.legend.get(symbol)
        if entry is None:
            return "the failure of an input" if symbol == FAIL else symbol
        meaning = entry.meaning
        if isinstance(meaning, Group):
            return ", ".join(self.describe(s) for s in meaning.symbols)
        if isinstance(meaning, Itself):
            return repr(meaning.value)
        if isinstance(meaning, Pattern):
            return f"~ /{meaning.regex.pattern}/"
        return "anything" if isinstance(meaning, Anything) else meaning.source


def describe_happening(happening: Happening) -> str:
    """What came, in the words of a legend, at most 120 characters."""
    if isinstance(happening, Control):
        words = {COMPLETE: "the end", "^": "a subscription", "!": "a disposal", "=": "a held frame"}
        return words.get(happening.symbol, happening.symbol)
    if isinstance(happening, Failure):
        return _short(f"{type(happening.error).__name__}: {happening.error}")
    return _short(describe(happening.value))


def _short(text: str) -> str:
    text = text.replace("\n", "\\n")
    return text if len(text) <= 120 else text[:117] + "…"


def _vague(entry: Entry) -> bool:
    return isinstance(entry.meaning, Anything | Pattern)
