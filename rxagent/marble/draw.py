"""Marble blocks drawn as SVG: inputs above the expression, what is expected below, the legend underneath.

Lines keep the alignment of the block (leading dots and blanks). What is wider than a page wraps, all lines together.
"""

from dataclasses import dataclass

from rxagent.marble.axis import Axis, Column, axis_of
from rxagent.marble.block import Block
from rxagent.marble.faults import MarbleSyntaxError, show_duration
from rxagent.marble.legend import Anything, Entry, Group, Itself, Pattern
from rxagent.marble.markdown import read_document
from rxagent.marble.notation import ALIGN, COMPLETE, DISPOSE, FAIL, HELD, SUBSCRIBE, Line
from rxagent.marble.reading import read_block
from rxagent.marble.svg import INK, PALETTE, QUIET_INK, Svg, clipped, width_of, wrapped
from rxagent.marble.vocabulary import WORDS

_STEP = 24.0  # pixels a frame
_FOLD = 76.0
_LANE = 40.0
_MARGIN = 16.0
_PAGE = 960.0  # pixels of marbles before they wrap
_RADIUS = 10.5


@dataclass(frozen=True, slots=True)
class _Lane:
    name: str
    marks: tuple[tuple[int, str], ...]
    below: bool
    begins: int
    ends: int | None = None


@dataclass(frozen=True, slots=True)
class _System:
    """The columns of one row of the page, and where each begins."""

    columns: tuple[Column, ...]
    xs: tuple[float, ...]
    width: float


def draw_file(text: str, file: str) -> list[tuple[str, str]]:
    """Every block of a Markdown file as (title, SVG). Raises ``MarbleSyntaxError`` for a malformed block."""
    blocks = read_document(text, file).blocks
    return [(b.title, draw_block(read_block(b.text, b.place, b.title, WORDS))) for b in blocks]


def draw_block(block: Block) -> str:
    """A block as an SVG document."""
    lanes = _lanes(block)
    axis = axis_of([at for lane in lanes for at, _ in lane.marks], block.scale)
    label = max((width_of(lane.name) for lane in lanes), default=0) + 2 * _MARGIN
    systems = _systems(axis)
    colours = {s: PALETTE[n % len(PALETTE)] for n, s in enumerate(block.legend)}
    width = label + max((s.width for s in systems), default=0) + 2 * _MARGIN
    width = max(width, 560, width_of(block.title, 15) + 2 * _MARGIN)
    svg = Svg()
    y = _MARGIN + 14
    svg.text((_MARGIN, y), block.title, size=15)
    y += 14
    for n, system in enumerate(systems):
        y = _ruler(svg, system, axis, (label, y))
        for below in (False, True):
            for lane in (lane for lane in lanes if lane.below is below and (n == 0 or _goes_on(lane, system))):
                _draw_lane(svg, lane, system, (label, y), colours)
                y += _LANE
            if not below and n == 0:
                y = _expression(svg, block.expression, (label, y), width)
        y += 8
    y = _notes(svg, block, y, width)
    y = _legend(svg, block, colours, (y, width))
    return svg.document(width, y + _MARGIN)


def _lanes(block: Block) -> list[_Lane]:
    lanes: list[_Lane] = []
    for given in block.inputs.values():
        shift = _indent(given.line) * block.scale - given.zero
        marks = tuple((m.at + shift, m.symbol) for m in given.line.marks)
        lanes.append(_Lane(given.name, marks, below=False, begins=shift, ends=_end(block, marks)))
    for name, window in block.windows.items():
        marks = ((window.subscribe, SUBSCRIBE), *([(window.dispose, DISPOSE)] if window.dispose is not None else []))
        lanes.append(_Lane(f"observe.{name}" if name else "observe", marks, below=False, begins=0))
    for expected in block.expected:
        marks = tuple((m.at, m.symbol) for m in expected.line.marks)
        lanes.append(_Lane(expected.name, marks, below=True, begins=0, ends=_end(block, marks)))
    return lanes


def _end(block: Block, marks: tuple[tuple[int, str], ...]) -> int | None:
    ending = {COMPLETE, FAIL, DISPOSE}
    return next((at for at, symbol in marks if ending & {*block.expand(symbol)}), None)


def _indent(line: Line) -> int:
    return len(line.text) - len(line.text.lstrip("".join(ALIGN)))


def _systems(axis: Axis) -> list[_System]:
    systems: list[_System] = []
    columns: list[Column] = []
    xs: list[float] = []
    x = 0.0
    for column in axis.columns:
        wide = _FOLD if column.fold else _STEP
        if columns and x + wide > _PAGE:
            systems.append(_System(tuple(columns), tuple(xs), x))
            columns, xs, x = [], [], 0.0
        columns.append(column)
        xs.append(x)
        x += wide
    systems.append(_System(tuple(columns), tuple(xs), x))
    return systems


def _ruler(svg: Svg, system: _System, axis: Axis, at: tuple[float, float]) -> float:
    left, y = at
    free = left
    for column, x in zip(system.columns, system.xs, strict=True):
        words = show_duration(column.at)
        here = left + x + _STEP / 2
        first = x == 0.0 or axis.labelled(axis.columns.index(column))
        if not column.fold and first and here >= free:
            svg.text((here, y + 10), words, size=10, ink=QUIET_INK)
            svg.line((here, y + 14), (here, y + 18), QUIET_INK, 1)
            free = here + width_of(words, 10) + 12
    return y + 22


def _goes_on(lane: _Lane, system: _System) -> bool:
    """Whether there is something of ``lane`` in a further row of the page."""
    return lane.begins <= system.columns[-1].at and (lane.ends is None or lane.ends >= system.columns[0].at)


def _draw_lane(svg: Svg, lane: _Lane, system: _System, at: tuple[float, float], colours: dict[str, str]) -> None:
    left, top = at
    y = top + _LANE / 2
    svg.text((left - _MARGIN, y + 4), lane.name, anchor="end")
    marks = dict(lane.marks)
    columns = list(zip(system.columns, system.xs, strict=True))
    end = left + system.width
    begin = next((left + x for c, x in columns if c.at >= lane.begins), end)
    stop = next((left + x + _STEP / 2 for c, x in columns if lane.ends is not None and c.at >= lane.ends), None)
    if begin < (end if stop is None else stop):
        svg.line((begin, y), (end + 4 if stop is None else stop, y), INK)
        if stop is None:
            svg.path(f"M {end + 4:.1f} {y - 4:.1f} l 8 4 l -8 4 z", INK)
    for column, x in columns:
        if column.fold:
            if left + x >= begin and (stop is None or left + x < stop):
                svg.rect((left + x + 6, y - 8), (_FOLD - 12, 16), "#ffffff")
                words = f"⋯ {show_duration(column.fold)} ⋯"
                svg.text((left + x + _FOLD / 2, y + 4), words, size=9, ink=QUIET_INK, anchor="middle")
        elif column.at in marks:
            _mark(svg, marks[column.at], (left + x + _STEP / 2, y), colours)


def _mark(svg: Svg, symbol: str, at: tuple[float, float], colours: dict[str, str]) -> None:
    x, y = at
    if symbol == COMPLETE:
        svg.line((x, y - 12), (x, y + 12), INK, 2.5)
    elif symbol == FAIL:
        svg.line((x - 8, y - 8), (x + 8, y + 8), "#c0392b", 2.5)
        svg.line((x - 8, y + 8), (x + 8, y - 8), "#c0392b", 2.5)
    elif symbol == SUBSCRIBE:
        svg.path(f"M {x:.1f} {y - 9:.1f} l 7 14 h -14 z", "#2f9e6e")
    elif symbol == DISPOSE:
        svg.rect((x - 6, y - 6), (12, 12), "#c0392b")
    elif symbol == HELD:
        svg.rect((x - _STEP / 2, y - 5), (_STEP, 10), "#e3b341")
    else:
        svg.circle(at, _RADIUS, colours.get(symbol, "#999999"))
        svg.text((x, y + 4.5), symbol, size=13, ink="#ffffff", anchor="middle")


def _expression(svg: Svg, expression: str, at: tuple[float, float], width: float) -> float:
    left, y = at
    room = width - left - _MARGIN
    lines = wrapped(expression, max(int((room - 20) / width_of("m", 12)), 20))
    height = 16 * len(lines) + 12
    svg.rect((left, y + 2), (room, height), "#eef3f8", "#b8c6d4")
    for n, line in enumerate(lines):
        svg.text((left + 10, y + 18 + 16 * n), line)
    return y + height + 8


def _notes(svg: Svg, block: Block, y: float, width: float) -> float:
    rows = block.text.splitlines()
    notes = [rows[row.place.line - block.place.line] for row in block.states]
    notes += [f"left     {block.left[0]}"] if block.left else []
    for note in notes:
        svg.text((_MARGIN, y + 12), clipped(note, width - 2 * _MARGIN), ink=INK)
        y += 18
    return y + (6 if notes else 0)


def _legend(svg: Svg, block: Block, colours: dict[str, str], at: tuple[float, float]) -> float:
    """The legend in as many columns as fit; entries never overlap, long ones are cut."""
    y, width = at
    entries = [(s, _words(e)) for s, e in block.legend.items()]
    if not entries:
        return y
    room = width - 2 * _MARGIN
    longest = max(width_of(words, 11) for _, words in entries) + 40
    columns = max(int(room / longest), 1)
    cell = room / columns
    for n, (symbol, words) in enumerate(entries):
        x, row = _MARGIN + (n % columns) * cell, y + 20 * (n // columns)
        if symbol == FAIL:
            _mark(svg, symbol, (x + 9, row + 8), colours)
        else:
            svg.circle((x + 9, row + 8), 8, colours[symbol])
            svg.text((x + 9, row + 12), symbol, size=11, ink="#ffffff", anchor="middle")
        svg.text((x + 24, row + 12), clipped(words, cell - 34, 11), size=11)
    return y + 20 * -(-len(entries) // columns)


def _words(entry: Entry) -> str:
    meaning = entry.meaning
    if isinstance(meaning, Group):
        return "together: " + " ".join(meaning.symbols)
    if isinstance(meaning, Itself):
        return repr(meaning.value)
    if isinstance(meaning, Pattern):
        return f"~ /{meaning.regex.pattern}/"
    return "anything" if isinstance(meaning, Anything) else meaning.source


__all__ = ["MarbleSyntaxError", "draw_block", "draw_file"]
