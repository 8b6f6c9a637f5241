"""`CellColumn`: cells as lines of a window that scrolls. What a frame costs depends on what changed, not on the length.

- A cell is drawn when it changes; a finished one never again, unless the window's width or the colours change.
- After such a change, or when much comes at once, what fills the window is drawn at once, the rest in slices.
- The reader's place is kept, whatever happens above it.
- It follows its end until the reader scrolls away from it.
"""

import sys
import time
from bisect import bisect_right
from collections.abc import Iterable

from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from rxagent.chat.cells import Cell
from rxagent.chat.look import DARK, Line, Look, Palette

SLICE = 0.008  # seconds of drawing at a time, for what nobody sees yet
PAUSE = 0.02  # seconds between two slices
_NOTHING = sys.maxsize


class CellColumn(ScrollView):
    """A column of cells."""

    DEFAULT_CSS = """
    CellColumn {
        overflow-x: hidden;
        overflow-y: scroll;
        scrollbar-size-vertical: 1;
        background: $background;
    }
    """

    class Moved(Message):
        """Whether the end is in view has changed."""

    def __init__(self, palette: Palette = DARK, *, id: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self.cells: list[Cell] = []
        self.follows = True
        self.drawn = 0  # cells drawn so far; what the figures and tests of cost are counted in
        self._look = Look(palette, 80)
        self._tops: list[int] = []  # first line of each cell, its gap included
        self._total = 0
        self._dirty: set[Cell] = set()
        self._stale: list[Cell] = []
        self._flush_due = False
        self._moved = _NOTHING  # the first cell whose place is to be worked out
        self._place_kept: tuple[Cell, int] | None = None

    # -- cells

    def add(self, cell: Cell, *, before: Cell | None = None) -> None:
        """Puts a cell at the end, or before another one."""
        self._schedule()
        at = len(self.cells) if before is None else before.index
        cell.on_change = self._changed
        self.cells.insert(at, cell)
        for index in range(at, len(self.cells)):
            self.cells[index].index = index
        self._moved = min(self._moved, at)
        self._dirty.add(cell)

    def drop(self, cells: Iterable[Cell]) -> None:
        """Takes cells away."""
        gone = {cell for cell in cells if cell.index >= 0}
        if not gone:
            return
        self._schedule()
        first = min(cell.index for cell in gone)
        kept = [cell for cell in self.cells[first:] if cell not in gone]
        for cell in gone:
            cell.index, cell.on_change = -1, None
        self._dirty -= gone
        self.cells[first:] = kept
        for index, cell in enumerate(kept, first):
            cell.index = index
        self._moved = min(self._moved, first)

    def clear(self) -> None:
        """Takes all cells away."""
        self.drop(list(self.cells))
        self._follow(follows=True)

    def use(self, palette: Palette) -> None:
        """Other colours."""
        self._new_look(Look(palette, self._look.width))

    def _changed(self, cell: Cell) -> None:
        if cell.index >= 0:
            self._schedule()
            self._dirty.add(cell)

    def _schedule(self) -> None:
        """Has everything put in its place when the present batch of changes is through."""
        if not self._flush_due and self.is_attached:
            self._flush_due = True
            self._place_kept = self._anchor()  # now: the places still fit the cells
            self.call_next(self.flush)

    # -- layout

    def flush(self) -> None:
        """Draws what changed, a window of it at most, and puts everything in its place."""
        self._flush_due = False
        dirty = sorted(self._dirty, key=lambda cell: cell.index)
        self._dirty.clear()
        later, rows = len(dirty), self.size.height + 2
        while later and rows > 0:  # the newest first: they are what is looked at
            later -= 1
            self._draw(dirty[later])
            rows -= 1 + dirty[later].height
        self._put_off(dirty[:later])
        if self._moved != _NOTHING:
            self._place(self._moved)
            self._settle(self._place_kept)
            self.refresh()
        else:
            for cell in dirty:
                self._refresh_cell(cell)

    def _draw(self, cell: Cell) -> None:
        if not cell.is_drawn(self._look):
            height = cell.height
            cell.lines(self._look)
            self.drawn += 1
            if cell.height != height:
                self._moved = min(self._moved, cell.index)

    def _put_off(self, cells: list[Cell]) -> None:
        """Has cells drawn in slices, the last first."""
        if cells and not self._stale:
            self.set_timer(PAUSE, self._draw_slice)
        self._stale += cells

    def _place(self, first: int) -> None:
        """Works out the places of all cells from one on."""
        del self._tops[first:]
        top = 0
        if first:
            last = self.cells[first - 1]
            top = self._tops[first - 1] + self._gap(last) + last.height
        for index in range(first, len(self.cells)):
            cell = self.cells[index]
            self._tops.append(top)
            top += self._gap(cell) + cell.height
        self._total = top + 1 if self.cells else 0  # a blank line before what stands below
        self._moved = _NOTHING

    def _gap(self, cell: Cell) -> int:
        """Blank lines above a cell."""
        if cell.index == 0:
            return 0
        return 0 if cell.dense and type(self.cells[cell.index - 1]) is type(cell) else 1

    def _settle(self, anchor: tuple[Cell, int] | None) -> None:
        self.virtual_size = Size(self._look.width, self._total)
        if self.follows:
            self.scroll_to(y=self.max_scroll_y, animate=False, immediate=True, force=True)
        elif anchor is not None and anchor[0].index >= 0:
            cell, offset = anchor
            self.scroll_to(y=self._tops[cell.index] + offset, animate=False, immediate=True, force=True)

    def _anchor(self) -> tuple[Cell, int] | None:
        """The cell at the top of the window and how far it has been scrolled into."""
        if self.follows or not self._tops:
            return None
        y = self.scroll_offset.y
        index = max(0, bisect_right(self._tops, y) - 1)
        return self.cells[index], y - self._tops[index]

    def _refresh_cell(self, cell: Cell) -> None:
        top = self._tops[cell.index] - self.scroll_offset.y
        height = self._gap(cell) + cell.height
        if top < self.size.height and top + height > 0:
            self.refresh(Region(0, top, self.size.width, height))

    # -- another width, other colours

    def on_resize(self) -> None:
        """The window has another size."""
        width = self.scrollable_content_region.width
        if width > 0 and width != self._look.width:
            self._new_look(Look(self._look.palette, width))
        elif self.follows:
            self._settle(None)

    def _new_look(self, look: Look) -> None:
        self._look = look
        self.styles.background = look.palette.background
        anchor = self._anchor()
        self._draw_visible(anchor)
        self._stale.clear()
        self._put_off([cell for cell in self.cells if not cell.is_drawn(look)])
        self.refresh()

    def _draw_visible(self, anchor: tuple[Cell, int] | None) -> None:
        """Draws cells from the reader's place on, or from the end back, until the window is full."""
        rows = self.size.height + 2
        start = len(self.cells) - 1 if anchor is None else anchor[0].index
        step = -1 if anchor is None else 1
        while rows > 0 and 0 <= start < len(self.cells):
            cell = self.cells[start]
            self._draw(cell)
            rows -= self._gap(cell) + cell.height
            start += step
        self._place(0)
        self._settle(anchor)

    def _draw_slice(self) -> None:
        end = time.perf_counter() + SLICE
        anchor = self._anchor()
        while self._stale and time.perf_counter() < end:
            cell = self._stale.pop()
            if cell.index >= 0:
                self._draw(cell)
        if self._moved != _NOTHING:
            self._place(self._moved)
            self._settle(anchor)
        if self._stale:
            self.set_timer(PAUSE, self._draw_slice)

    # -- lines

    def at(self, y: int) -> tuple[Cell, int] | None:
        """The cell of a line of the whole, and the line within it; negative in its gap."""
        index = bisect_right(self._tops, y) - 1
        if not 0 <= index < len(self.cells) or y >= self._total:
            return None
        cell = self.cells[index]
        return cell, y - self._tops[index] - self._gap(cell)

    def line(self, line: int) -> Strip:
        """A line of the whole."""
        found = self.at(line)
        if found is None or found[1] < 0:
            return self._strip(self._look.blank())
        cell, row = found
        if not cell.is_drawn(self._look):  # a stale one that the reader came to sooner than the slices
            self._schedule()
            self._draw(cell)
        lines = cell.lines(self._look)
        return self._strip(lines[row] if row < len(lines) else self._look.blank())

    def _strip(self, line: Line) -> Strip:
        return Strip(line, self._look.width)

    # -- the end

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """The window has moved."""
        super().watch_scroll_y(old_value, new_value)
        self._follow(follows=round(new_value) >= self.max_scroll_y)

    def _follow(self, *, follows: bool) -> None:
        if follows != self.follows:
            self.follows = follows
            self.post_message(self.Moved())

    def to_end(self) -> None:
        """Goes to the end and follows it."""
        self._follow(follows=True)
        self.scroll_to(y=self.max_scroll_y, animate=False, immediate=True, force=True)
