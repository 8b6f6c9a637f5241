"""From the text of a block to a `Block`, or to an error at file:line:column."""

import ast
import re
from dataclasses import dataclass

from rxagent.marble.block import Block, Expected, Input, StateRow, Window
from rxagent.marble.faults import MarbleSyntaxError, Place
from rxagent.marble.legend import read_arguments, read_legend
from rxagent.marble.notation import COMPLETE, DISPOSE, FAIL, HELD, SUBSCRIBE, duration, read_line

KEYWORDS = frozenset({"scale", "until", "observe", "where", "state", "left", "from", "import"})
_ROW = re.compile(r"(\S+)([ \t]*)(.*)")
_NAME = re.compile(r"[A-Za-z_]\w*(\.[1-9]\d*)?")


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the block: its first word, and the rest with its place."""

    name: str
    rest: str
    place: Place
    rest_place: Place


def read_block(text: str, place: Place, title: str, words: frozenset[str]) -> Block:
    """Read the text of a block whose first character is at ``place``.

    ``words`` are the constructors that a legend may use. Raises ``MarbleSyntaxError`` with the position.
    """
    block = Block(title, place, text)
    rows, legend_parts = _rows(text, place)
    block.legend = read_legend(legend_parts, words)
    arrows = [i for i, row in enumerate(rows) if row.name == ">"]
    if not arrows:
        raise MarbleSyntaxError(place, "no expression: one line must begin with  >")
    _read_scale(block, rows)
    if arrows != list(range(arrows[0], arrows[-1] + 1)):
        raise MarbleSyntaxError(rows[arrows[-1]].place, "a second expression; a block has one (several > lines in a row)")
    _read_expression(block, [rows[i] for i in arrows])
    for row in rows[: arrows[0]]:
        _read_above(block, row)
    for row in rows[arrows[-1] + 1 :]:
        _read_below(block, row)
    _check_numbers(block)
    return block


def _rows(text: str, place: Place) -> tuple[list[Row], list[tuple[str, Place]]]:
    rows: list[Row] = []
    legend: list[tuple[str, Place]] = []
    in_legend = False
    for offset, content in enumerate(text.splitlines()):
        here = Place(place.file, place.line + offset, place.column)
        if not content.strip() or content.startswith("#"):
            continue
        if content[0].isspace():
            if not in_legend:
                raise MarbleSyntaxError(here, "an indented line continues the legend only; expected a name")
            legend.append((content, here))
            continue
        match = _ROW.match(content)
        assert match is not None
        row = Row(match[1], match[3].rstrip(), here, here.right(match.start(3)))
        in_legend = row.name == "where"
        if in_legend:
            legend.append((row.rest, row.rest_place))
        elif row.name.startswith(">") and row.name != ">":
            rows.append(Row(">", content[1:].rstrip(), here, here.right(1)))
        else:
            rows.append(row)
    return rows, legend


def _read_scale(block: Block, rows: list[Row]) -> None:
    for name in ("scale", "until"):
        found = [row for row in rows if row.name == name]
        if len(found) > 1:
            raise MarbleSyntaxError(found[1].place, f"a second {name}; the first is at {found[0].place}")
        if found:
            value = duration(found[0].rest, found[0].rest_place)
            if value == 0:
                raise MarbleSyntaxError(found[0].rest_place, f"{name} must be more than nothing")
            setattr(block, name, value)


def _read_expression(block: Block, rows: list[Row]) -> None:
    block.expression = "\n".join(row.rest for row in rows)
    block.expression_place = rows[0].rest_place
    if not block.expression.strip():
        raise MarbleSyntaxError(rows[0].place, "an empty expression")
    try:
        ast.parse(f"(\n{block.expression}\n)", mode="eval")
    except SyntaxError as error:
        at = rows[min(max((error.lineno or 2) - 2, 0), len(rows) - 1)]
        column = max((error.offset or 1) - 1, 0)
        what = f"not a Python expression: {error.msg}"
        raise MarbleSyntaxError(at.rest_place.right(min(column, len(at.rest))), what) from None


def _read_above(block: Block, row: Row) -> None:
    if row.name in ("scale", "until"):
        return
    if row.name in ("from", "import"):
        block.imports.append((_import(row), row.place))
    elif row.name.partition(".")[0] == "observe":
        _read_window(block, row)
    elif row.name in KEYWORDS:
        raise MarbleSyntaxError(row.place, f"{row.name} belongs below the expression")
    else:
        _read_input(block, row)


def _import(row: Row) -> str:
    source = f"{row.name} {row.rest}"
    try:
        ast.parse(source)
    except SyntaxError as error:
        raise MarbleSyntaxError(row.place, f"not an import: {error.msg}: {source}") from None
    return source


def _read_window(block: Block, row: Row) -> None:
    _, _, name = row.name.partition(".")
    if name in block.windows:
        raise MarbleSyntaxError(row.place, f"{row.name} is already given")
    line = read_line(row.rest, block.scale, row.rest_place)
    at: dict[str, int] = {}
    for mark in line.marks:
        for symbol in block.expand(mark.symbol):
            if symbol not in (SUBSCRIBE, DISPOSE):
                raise MarbleSyntaxError(line.where(mark), f"{mark.symbol!r} has no meaning here; expected - ^ !")
            _once(at, symbol, mark.at, line.where(mark))
    if DISPOSE in at and SUBSCRIBE in at and at[DISPOSE] < at[SUBSCRIBE]:
        raise MarbleSyntaxError(row.rest_place, "disposed (!) before it is subscribed (^)")
    block.windows[name] = Window(at.get(SUBSCRIBE, 0), at.get(DISPOSE))


def _once(seen: dict[str, int], symbol: str, at: int, place: Place) -> None:
    if symbol in seen:
        raise MarbleSyntaxError(place, f"a second {symbol}; a line has one, further subscriptions are name.2, name.3")
    seen[symbol] = at


def _read_input(block: Block, row: Row) -> None:
    name = _line_name(row)
    if name in block.inputs:
        raise MarbleSyntaxError(row.place, f"{row.name} is already given at {block.inputs[name].line.place}")
    line = read_line(row.rest, block.scale, row.rest_place)
    seen: dict[str, int] = {}
    ended = False
    for mark in line.marks:
        where = line.where(mark)
        if ended:
            raise MarbleSyntaxError(where, f"{mark.symbol!r} stands after the end of {row.name}")
        for symbol in block.expand(mark.symbol):
            if symbol in (DISPOSE, HELD):
                raise MarbleSyntaxError(where, f"{symbol!r} is something to expect; it belongs below the expression")
            if symbol == SUBSCRIBE:
                _once(seen, symbol, mark.at, where)
            ended = ended or symbol in (COMPLETE, FAIL)
            _check_known(block, symbol, where)
    if seen and "." in name:
        raise MarbleSyntaxError(row.place, f"{row.name} is hot (^), so all its subscribers share one line")
    block.inputs[name] = Input(row.name, line, bool(seen), seen.get(SUBSCRIBE, 0))


def _line_name(row: Row) -> str:
    if not _NAME.fullmatch(row.name):
        raise MarbleSyntaxError(row.place, f"{row.name!r} is not a name; expected a word, or word.2")
    return row.name.removesuffix(".1")


def _check_known(block: Block, symbol: str, place: Place) -> None:
    if symbol not in (COMPLETE, FAIL, SUBSCRIBE, DISPOSE, HELD) and symbol not in block.legend:
        raise MarbleSyntaxError(place, f"unknown symbol {symbol!r}: the legend (where …) does not say what it stands for")


def _check_numbers(block: Block) -> None:
    for name, given in block.inputs.items():
        stem, _, number = name.partition(".")
        before = stem if number == "2" else f"{stem}.{int(number or 2) - 1}"
        if number and before not in block.inputs:
            raise MarbleSyntaxError(given.line.place, f"{name} is given without {before}")
        if number and block.inputs[before].hot:
            raise MarbleSyntaxError(given.line.place, f"{stem} is hot (^), so all its subscribers share one line")


def _read_below(block: Block, row: Row) -> None:
    if row.name == "state":
        positional, fields = read_arguments(row.rest, row.rest_place)
        if positional or not fields:
            raise MarbleSyntaxError(row.rest_place, "expected  field=value  or  field ~ /regex/")
        block.states.append(StateRow(fields, row.place))
    elif row.name == "left":
        if block.left is not None or not row.rest:
            raise MarbleSyntaxError(row.place, "expected one  left  line: nothing, anything, or what is left over")
        block.left = (" ".join(row.rest.split()), row.place)
    elif row.name in KEYWORDS or row.name.startswith("observe."):
        raise MarbleSyntaxError(row.place, f"{row.name} belongs above the expression")
    else:
        block.expected.append(_read_expected(block, row))


def _read_expected(block: Block, row: Row) -> Expected:
    name = _line_name(row)
    stem = name.partition(".")[0]
    of_input = stem in block.input_names
    if any(e.name == name for e in block.expected):
        raise MarbleSyntaxError(row.place, f"{row.name} is already expected above")
    if not of_input and name != stem:
        raise MarbleSyntaxError(row.place, f"{stem} is no input, so it has no {name}")
    line = read_line(row.rest, block.scale, row.rest_place)
    allowed = "- ^ ! =" if of_input else "a symbol of the legend, - | #"
    seen: dict[str, int] = {}
    ended: str | None = None
    for mark in line.marks:
        where = line.where(mark)
        if ended is not None:
            raise MarbleSyntaxError(where, f"{mark.symbol!r} stands after the end ({ended}) of {row.name}")
        for symbol in block.expand(mark.symbol):
            if of_input != (symbol in (SUBSCRIBE, DISPOSE, HELD)):
                raise MarbleSyntaxError(where, f"{mark.symbol!r} has no meaning in {row.name}; expected {allowed}")
            if of_input and symbol != HELD:
                _once(seen, symbol, mark.at, where)
            ended = symbol if symbol in (COMPLETE, FAIL, DISPOSE) else ended
            _check_known(block, symbol, where)
    return Expected(name, line, row.place, of_input)
