"""`TranscriptView`: the conversation, to be read: selecting by mouse, folding by clicks and keys, a marker."""

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.message import Message
from textual.selection import Selection
from textual.strip import Strip

from rxagent.chat.cells import Cell
from rxagent.chat.column import CellColumn
from rxagent.chat.look import DARK, Palette


class TranscriptView(CellColumn, can_focus=True):
    """A column of cells with a reader."""

    FOCUS_ON_CLICK = False  # who clicks goes on writing

    class Left(Message):
        """The reader goes back to the prompt; ``key`` is what was typed, if anything."""

        def __init__(self, key: str) -> None:
            super().__init__()
            self.key = key

    def __init__(self, palette: Palette = DARK, *, id: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(palette, id=id)
        self.current: Cell | None = None  # where the reader's marker is, while this has the focus

    def render_line(self, y: int) -> Strip:
        """A line of the window, as Textual asks for it."""
        line = self.scroll_offset.y + y
        strip = self.line(line)
        selection = self.text_selection
        if selection is not None and (span := selection.get_span(line)) is not None:
            strip = self._selected(strip, *span)
        return strip.crop_extend(0, self.size.width, self._look.base).apply_offsets(0, line)

    def line(self, line: int) -> Strip:
        """A line of the whole, the marker included."""
        strip = super().line(line)
        if self.has_focus and self.current is not None and self.at(line) == (self.current, 0):
            marker = Segment("❯", self._look.on(self._look.palette.accent, bold=True))
            return Strip.join([Strip([marker]), strip.crop(1)])
        return strip

    def _selected(self, strip: Strip, start: int, end: int) -> Strip:
        width = strip.cell_length
        end = width if end == -1 else min(end, width)
        style = Style(bgcolor=self.screen.get_component_rich_style("screen--selection").bgcolor)
        before, inside, after = strip.crop(0, start), strip.crop(start, end), strip.crop(end)
        return Strip.join([before, Strip(Segment.apply_style(inside, post_style=style)), after])

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """The selected text, without the blanks that fill lines."""
        first = selection.start.y if selection.start is not None else 0
        last = selection.end.y if selection.end is not None else self._total - 1
        texts: list[str] = []
        for line in range(first, min(last, self._total - 1) + 1):
            span = selection.get_span(line)
            if span is not None:
                start, end = span
                texts.append(self.line(line).text[start : None if end == -1 else end].rstrip())
        return "\n".join(texts), "\n"

    def selection_updated(self, selection: Selection | None) -> None:
        """Another piece is selected."""
        self.refresh()

    # -- the reader

    def on_click(self, event: events.Click) -> None:
        """Folds or unfolds what is clicked on."""
        if self.text_selection is not None and self.text_selection.start != self.text_selection.end:
            return
        found = self.at(self.scroll_offset.y + event.y)
        if found is not None and found[0].folds and found[1] >= 0:
            self.current = found[0]
            found[0].toggle()

    def on_focus(self) -> None:
        """The marker appears at the last thing that folds."""
        folding = [cell for cell in self.cells if cell.folds]
        if self.current is None or self.current.index < 0:
            self.current = folding[-1] if folding else None
        self.refresh()

    def on_blur(self) -> None:
        """The marker goes."""
        self.refresh()

    def on_key(self, event: events.Key) -> None:
        """Moves the marker, folds, or goes back to the prompt."""
        match event.key:
            case "up" | "k" | "shift+tab":
                self._step(-1)
            case "down" | "j":
                self._step(1)
            case "enter" | "space" | "left" | "right":
                if self.current is not None and self.current.index >= 0:
                    self.current.toggle()
                    self._show(self.current)
            case "escape" | "tab":
                self.post_message(self.Left(""))
            case _ if event.is_printable and event.character:
                self.post_message(self.Left(event.character))
            case _:
                return
        event.stop()
        event.prevent_default()

    def _step(self, by: int) -> None:
        folding = [cell for cell in self.cells if cell.folds]
        if not folding:
            self.scroll_relative(y=by, animate=False)
            return
        at = folding.index(self.current) if self.current in folding else len(folding) - (by > 0)
        self.current = folding[max(0, min(len(folding) - 1, at + by))]
        self._show(self.current)
        self.refresh()

    def _show(self, cell: Cell) -> None:
        top = self._tops[cell.index]
        if not self.scroll_offset.y <= top < self.scroll_offset.y + self.size.height - 1:
            self.scroll_to(y=max(0, top - self.size.height // 3), animate=False, immediate=True, force=True)
