"""Rewriting the expected lines of a block with what really came (``--marble-update``).

Only what differs is rewritten. Values that the legend has no symbol for get one, after their first letter.
"""

import re
from dataclasses import dataclass, field

from rxagent.marble.block import OUT, Block
from rxagent.marble.describing import describe
from rxagent.marble.diff import by_instant, fresh_symbol
from rxagent.marble.faults import MarbleError, MarbleSyntaxError, Place, show_duration
from rxagent.marble.legend import Literal, Pattern
from rxagent.marble.markdown import Fenced
from rxagent.marble.matching import fits, look_up, text_of
from rxagent.marble.meaning import Control, Failure, Happening, Legend, Value
from rxagent.marble.notation import ALIGN, CONTROL, FAIL, write_line
from rxagent.marble.reading import read_block
from rxagent.marble.streams import Timed
from rxagent.marble.verdict import NOTHING, Verdict, came, final_state, misaligned
from rxagent.marble.vocabulary import WORDS

_FAILURE = re.compile(r"((?:^where|^|\s)\s+)# = .*?(?=\s{2,}\S+ = |$)")
_ADDRESS = re.compile(r"0x[0-9a-fA-F]{6,}")


class CannotUpdate(MarbleError):
    """What came can't be written as a line of marbles; says why."""


@dataclass(slots=True)
class _Writer:
    """Gives every happening a symbol and remembers the new ones."""

    legend: Legend
    new: dict[str, str] = field(default_factory=dict[str, str])

    def line(self, name: str, events: list[Timed], old: list[tuple[int, str]]) -> str:
        """The line that says ``events``; symbols of the ``old`` line are kept where they fit."""
        wanted = {at: self.legend.block.expand(symbol) for at, symbol in old}
        hints = [s for symbols in wanted.values() for s in symbols]
        symbols = [
            (at, self._one(tuple(self._symbol(h, [*wanted.get(at, ()), *hints]) for h in happenings)))
            for at, happenings in by_instant(events)
        ]
        try:
            return write_line(symbols, self.legend.block.scale)
        except ValueError:
            raise CannotUpdate(
                f"{self.legend.block.place}: {name} has two instants within one column of "
                f"{show_duration(self.legend.block.scale)}; choose a smaller scale"
            ) from None

    def _symbol(self, happening: Happening, hints: list[str]) -> str:
        if isinstance(happening, Control):
            return happening.symbol
        if isinstance(happening, Failure):
            if not self.legend.accepts(FAIL, happening):
                self.new[FAIL] = f"~ /{_escaped(f'{type(happening.error).__name__}: {happening.error}')}/"
            return FAIL
        hint = next((s for s in hints if self.legend.accepts(s, happening)), None)
        return hint or self.legend.symbol_for(happening) or self._define(_written(happening.value, self.legend))

    def _define(self, meaning: str) -> str:
        known = next((s for s, m in self.new.items() if m == meaning), None)
        if known is None:
            known = self._fresh(meaning)
            self.new[known] = meaning
        return known

    def _one(self, symbols: tuple[str, ...]) -> str:
        if len(symbols) == 1:
            return symbols[0]
        known = self.legend.group_for(symbols)
        meaning = " ".join(symbols)
        known = known or next((s for s, m in self.new.items() if m == meaning), None)
        if known is None:
            known = self._fresh("G")
            self.new[known] = meaning
        return known

    def _fresh(self, meaning: str) -> str:
        try:
            return fresh_symbol(meaning, {*self.legend.block.legend, *self.new, *CONTROL})
        except LookupError:
            raise CannotUpdate(f"{self.legend.block.place}: there are more distinct values than symbols for them") from None


def _written(value: object, legend: Legend) -> str:
    """``value`` as a legend can say it so that it is recognised again."""
    for candidate in (describe(value), f"~ /^{_escaped(text_of(value))}$/", "*"):
        if "\n" in candidate:
            continue
        try:
            trial = read_block(f"> x\nout x\nwhere x = {candidate}", Place("", 1), "", WORDS)
            if Legend(trial, legend.names).accepts("x", Value(value)):
                return candidate
        except MarbleSyntaxError:
            continue
    return "*"


def _escaped(text: str) -> str:
    escaped = "".join(f"\\{c}" if c in r"\/.^$*+?{}[]|()" else c for c in text).replace("\n", r"\n")
    return _ADDRESS.sub(r"0x\\w+", escaped)  # where an object lies is another each time


def updated_block(verdict: Verdict) -> str:
    """The text of the block with expected lines that hold."""
    block, played = verdict.block, verdict.played
    if played.raised is not None or played.legend is None or played.cut:
        why = verdict.problems[-1] if played.cut else verdict.headline
        raise CannotUpdate(f"{block.place}: not updated: {why.removeprefix(f'{block.place}: ')}")
    writer = _Writer(played.legend)
    rows: dict[int, str] = {}
    for expected in block.expected:
        old = [(mark.at, mark.symbol) for mark in expected.line.marks]
        comparison = next(c for c in verdict.comparisons if c.name == expected.name)
        if comparison.difference is not None:
            text = writer.line(expected.name, came(expected, block, played), old)
            rows[expected.place.line] = _head(block, expected.place.line, expected.line.place.column) + text
    for given, begins in misaligned(block, played):
        place = given.line.place
        dots = "." * (begins // block.scale)
        rows[place.line] = _head(block, place.line, place.column) + dots + given.line.text.lstrip("".join(ALIGN))
    lines = block.text.splitlines()
    _update_states(verdict, rows, lines)
    added: list[str] = []
    if not (block.expected or block.states or block.left):
        shown = {name: events for name, events in played.outputs.items() if not name.startswith("_")}
        width = max([8, *map(len, shown), *(i.line.place.column - block.place.column - 1 for i in block.inputs.values())])
        added = [f"{name:<{width}} {writer.line(name, events, [])}" for name, events in shown.items()] or [f"{OUT:<{width}} "]
    _update_left(verdict, rows, added)
    lines = [rows.get(block.place.line + n, line) for n, line in enumerate(lines)]
    return "\n".join(_with_legend(_insert(lines, added), writer.new))


def _head(block: Block, line: int, column: int) -> str:
    """What stands before the marbles of ``line``: the name and the blanks behind it."""
    head = block.text.splitlines()[line - block.place.line][: column - block.place.column]
    return head if head[-1:].isspace() else f"{head:<8} "


def _update_states(verdict: Verdict, rows: dict[int, str], lines: list[str]) -> None:
    legend = verdict.played.legend
    assert legend is not None
    for row in verdict.block.states:
        state = final_state(verdict.played)
        parts: list[str] = []
        for path, slot in row.fields:
            value = look_up(state, path)
            if not fits(slot, value, legend.evaluate):
                parts.append(f"{path}={value!r}")
            elif isinstance(slot, Literal):
                parts.append(f"{path}={slot.source}")
            else:
                parts.append(f"{path} ~ /{slot.regex.pattern}/" if isinstance(slot, Pattern) else f"{path}=*")
        text = lines[row.place.line - verdict.block.place.line]
        rest = text[len("state") :]
        rows[row.place.line] = "state" + rest[: len(rest) - len(rest.lstrip())] + "  ".join(parts)


def _update_left(verdict: Verdict, rows: dict[int, str], added: list[str]) -> None:
    left = ", ".join(verdict.played.left) or NOTHING
    wanted = verdict.block.left
    if wanted is not None and wanted[0] not in ("anything", left):
        rows[wanted[1].line] = f"left     {left}"
    elif wanted is None and left != NOTHING:
        added.append(f"left     {left}")


def _insert(lines: list[str], added: list[str]) -> list[str]:
    """Put ``added`` before the legend, or at the end."""
    at = next((n for n, line in enumerate(lines) if line.split(maxsplit=1)[:1] == ["where"]), len(lines))
    return [*lines[:at], *added, *lines[at:]]


def _with_legend(lines: list[str], new: dict[str, str]) -> list[str]:
    if not new:
        return lines
    if FAIL in new:
        replaced = [_FAILURE.sub(lambda m: f"{m[1]}# = {new[FAIL]}", line) for line in lines]
        if replaced != lines:
            return _with_legend(replaced, {symbol: meaning for symbol, meaning in new.items() if symbol != FAIL})
    entries = _packed([f"{symbol} = {meaning}" for symbol, meaning in new.items()])
    starts = [n for n, line in enumerate(lines) if line.split(maxsplit=1)[:1] == ["where"]]
    if not starts:
        return [*lines, "where    " + entries[0], *(f"         {entry}" for entry in entries[1:])]
    at = starts[-1] + 1
    while at < len(lines) and lines[at][:1].isspace():
        at += 1
    return [*lines[:at], *(f"         {entry}" for entry in entries), *lines[at:]]


def _packed(entries: list[str]) -> list[str]:
    """Entries side by side, as many as a line of 110 characters holds."""
    lines = entries[:1]
    for entry in entries[1:]:
        if len(lines[-1]) + 3 + len(entry) <= 101:
            lines[-1] += "   " + entry
        else:
            lines.append(entry)
    return lines


def updated_text(text: str, changes: list[tuple[Fenced, str]]) -> str:
    """The text of a Markdown file with new texts for the given blocks; all else stays as it is."""
    lines = text.splitlines(keepends=True)
    end = "\r\n" if lines and lines[0].endswith("\r\n") else "\n"
    for fenced, block in sorted(changes, key=lambda change: -change[0].place.line):
        start = fenced.place.line - 1
        count = len(fenced.text.splitlines()) if fenced.text else 0
        indent = " " * (fenced.place.column - 1)
        new = [f"{indent}{line}{end}" for line in block.splitlines()]
        lines[start : start + count] = new
    return "".join(lines)
