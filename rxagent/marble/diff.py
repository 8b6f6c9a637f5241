"""What was wanted against what came: the first difference, drawn under a ruler."""

from dataclasses import dataclass, field
from itertools import chain

from rxagent.marble.axis import axis_of, ruler
from rxagent.marble.faults import show_duration
from rxagent.marble.meaning import Control, Happening, Legend, describe_happening
from rxagent.marble.notation import COMPLETE, CONTROL, is_symbol
from rxagent.marble.streams import Timed


@dataclass(frozen=True, slots=True)
class Difference:
    """The first instant at which the two lines differ, in nanoseconds, and what differs in a sentence."""

    at: int
    sentence: str


@dataclass(slots=True)
class Comparison:
    """One expected line beside what came; ``difference`` is None when they agree."""

    name: str
    want: list[tuple[int, tuple[str, ...]]]
    got: list[tuple[int, tuple[Happening, ...]]]
    legend: Legend
    frame: int
    difference: Difference | None = None
    extra: dict[str, str] = field(default_factory=dict[str, str])


def by_instant(events: list[Timed]) -> list[tuple[int, tuple[Happening, ...]]]:
    """The happenings of each instant together, in order."""
    instants: dict[int, list[Happening]] = {}
    for at, happening in events:
        instants.setdefault(at, []).append(happening)
    return [(at, tuple(happenings)) for at, happenings in sorted(instants.items())]


def compare(name: str, want: list[tuple[int, str]], got: list[Timed], legend: Legend) -> Comparison:
    """Compare an expected line, as symbols at their instants, with what came."""
    wanted = [(at, legend.block.expand(symbol)) for at, symbol in want]
    comparison = Comparison(name, wanted, by_instant(got), legend, legend.block.scale)
    comparison.difference = _first_difference(comparison)
    return comparison


def _first_difference(c: Comparison) -> Difference | None:
    wanted, came = dict(c.want), dict(c.got)
    for at in sorted({*wanted, *came}):
        symbols, happenings = wanted.get(at, ()), came.get(at, ())
        if _agree(c, symbols, happenings):
            continue
        return Difference(at, _sentence(c, at, symbols, happenings))
    return None


def _agree(c: Comparison, symbols: tuple[str, ...], happenings: tuple[Happening, ...]) -> bool:
    return len(symbols) == len(happenings) and all(map(c.legend.accepts, symbols, happenings))


def _sentence(c: Comparison, at: int, symbols: tuple[str, ...], happenings: tuple[Happening, ...]) -> str:
    when = show_duration(at)
    if not happenings:
        return f"at {when}: wanted {_wanted(c, symbols)}, but nothing came{_elsewhere(c, at, symbols)}"
    if not symbols:
        return f"at {when}: nothing was wanted, but there came {_came(happenings)}{_wanted_elsewhere(c, at, happenings)}"
    if len(symbols) == len(happenings) > 1 and _same_set(c, symbols, happenings):
        return f"at {when}: the right events in another order: wanted {_wanted(c, symbols)}, got {_came(happenings)}"
    return f"at {when}: wanted {_wanted(c, symbols)}, got {_came(happenings)}"


def _same_set(c: Comparison, symbols: tuple[str, ...], happenings: tuple[Happening, ...]) -> bool:
    rest = list(symbols)
    for happening in happenings:
        fitting = next((s for s in rest if c.legend.accepts(s, happening)), None)
        if fitting is None:
            return False
        rest.remove(fitting)
    return True


def _wanted(c: Comparison, symbols: tuple[str, ...]) -> str:
    return ", ".join(_name(c, symbol) for symbol in symbols)


def _name(c: Comparison, symbol: str) -> str:
    meaning = c.legend.describe(symbol)
    return f"{symbol} ({meaning})" if meaning != symbol else describe_happening(Control(symbol))


def _came(happenings: tuple[Happening, ...]) -> str:
    return ", ".join(describe_happening(h) for h in happenings)


def _elsewhere(c: Comparison, at: int, symbols: tuple[str, ...]) -> str:
    """Where what was wanted came instead, if it came."""
    wanted = dict(c.want)
    for when, happenings in c.got:
        if _agree(c, symbols, happenings) and not _agree(c, wanted.get(when, ()), happenings):
            return f" (it came at {show_duration(when)}, {_distance(when - at, c.frame)})"
    return ""


def _wanted_elsewhere(c: Comparison, at: int, happenings: tuple[Happening, ...]) -> str:
    came = dict(c.got)
    for when, symbols in c.want:
        if _agree(c, symbols, happenings) and not _agree(c, symbols, came.get(when, ())):
            return f" (it was wanted at {show_duration(when)}, so it came {_distance(at - when, c.frame)})"
    return ""


def _distance(late: int, frame: int) -> str:
    frames, rest = divmod(abs(late), frame)
    amount = show_duration(abs(late)) if rest else f"{frames} frame{'s' if frames > 1 else ''}"
    return f"{amount} {'late' if late > 0 else 'early'}"


# -- drawing -------------------------------------------------------------------------------------


def report(c: Comparison) -> list[str]:
    """The drawing of a difference: ruler, want, got, carets, sentence, and what new symbols stand for."""
    assert c.difference is not None
    first, last = _window(c, c.difference.at)
    axis = axis_of([at for at, _ in (*c.want, *c.got) if first <= at <= last], c.frame)
    labels, ticks = ruler(axis)
    want = {at: _one_symbol(c, symbols) for at, symbols in c.want if first <= at <= last}
    got = {at: _one_symbol(c, _symbols(c, at, happenings)) for at, happenings in c.got if first <= at <= last}
    caret = " " * axis.place(c.difference.at) + "^"
    width = max(len(c.name), 4) + 2
    lines = [
        " " * (width + 6) + labels,
        " " * (width + 6) + ticks,
        f"{c.name:<{width}}want  {axis.draw(want)}",
        f"{'':<{width}}got   {axis.draw(got)}",
        " " * (width + 6) + caret,
        f"{c.name} {c.difference.sentence}",
    ]
    return lines + [f"  {symbol} = {meaning}" for symbol, meaning in c.extra.items()]


def _window(c: Comparison, at: int) -> tuple[int, int]:
    """What is drawn of long lines: up to forty instants before the difference, and twenty after it."""
    instants = sorted({when for when, _ in (*c.want, *c.got)})
    n = instants.index(at)
    return instants[max(n - 40, 0)], instants[min(n + 20, len(instants) - 1)]


def _symbols(c: Comparison, at: int, happenings: tuple[Happening, ...]) -> tuple[str, ...]:
    """The symbols of what came: those that were wanted here where they fit, new ones where none does."""
    wanted = dict(c.want).get(at, ())
    if _agree(c, wanted, happenings):
        return wanted
    found: list[str] = []
    for happening in happenings:
        symbol = next((s for s in wanted if c.legend.accepts(s, happening)), None) or c.legend.symbol_for(happening)
        found.append(symbol or _new_symbol(c, describe_happening(happening)))
    return tuple(found)


def _one_symbol(c: Comparison, symbols: tuple[str, ...]) -> str:
    if len(symbols) == 1:
        return symbols[0]
    return c.legend.group_for(symbols) or _new_symbol(c, " ".join(symbols))


def _new_symbol(c: Comparison, meaning: str) -> str:
    known = next((s for s, m in c.extra.items() if m == meaning), None)
    if known is None:
        try:
            known = fresh_symbol(meaning, {*c.legend.block.legend, *c.extra})
        except LookupError:
            return "?"
        c.extra[known] = meaning
    return known


_ALIKE = frozenset("ΕΖΗΙΚΜΝΟΡΤΥΧΪΫκνορτυχВЕЗКМНОРСТУХаеорсух")  # letters that look like Latin ones, or digits


def fresh_symbol(meaning: str, taken: set[str]) -> str:
    """A symbol not yet taken, after the first letter of what it means where that is free; raises ``LookupError``."""
    quoted = meaning.partition("'")[2] or meaning.partition('"')[2] or meaning
    ranges = (range(0x393, 0x3CA), range(0x411, 0x450), range(0xC0, 0x250), range(0x10D0, 0x10F1))
    further = (c for c in map(chr, chain(*ranges)) if c not in _ALIKE)
    words = chain(quoted, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789", further)
    found = next((w for w in words if is_symbol(w) and w.isalnum() and w not in taken and w not in CONTROL), None)
    if found is None:
        raise LookupError("no symbol is left to give")
    return found


__all__ = ["COMPLETE", "Comparison", "Difference", "by_instant", "compare", "fresh_symbol", "report"]
