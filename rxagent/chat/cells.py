"""What a transcript is made of, from top to bottom: each cell draws its own lines and keeps them until it changes."""

from collections.abc import Callable, Iterator

from rich.segment import Segment
from rich.style import Style

from rxagent.chat.look import Line, Look
from rxagent.chat.markdown import draw_markdown, draw_plain, fence_of
from rxagent.chat.text import clean, cut, one_line, words, wrapped

MARGIN = 2  # cells left and right
WIDEST = 116  # cells of prose, beyond which lines are hard to read
LONG_PROMPT = 16  # lines of a person's text that are shown of it while it is folded
PLAIN_FROM = 6_000  # characters of an open block, from which on it is shown as plain text until it is finished


def content_width(look: Look) -> int:
    """The width of what stands between the margins."""
    return max(6, min(look.width - 2 * MARGIN, WIDEST))


class Cell:
    """A piece of the transcript. Subclasses draw; whoever changes one calls ``changed``.

    ``dense``: there is no blank line between two of this kind; ``folds``: it can be folded.
    """

    dense = False
    folds = False

    def __init__(self) -> None:
        self.index = -1  # its place in the transcript, -1 outside of one
        self.on_change: Callable[[Cell], None] | None = None
        self._look: Look | None = None
        self._lines: list[Line] | None = None

    def changed(self) -> None:
        """It has to be drawn again."""
        self._look = None
        if self.on_change is not None:
            self.on_change(self)

    def is_drawn(self, look: Look) -> bool:
        """Whether its lines are those of this look."""
        return self._look is look

    def lines(self, look: Look) -> list[Line]:
        """Its lines, drawn when they must be."""
        if self._lines is None or self._look is not look:
            self._lines = self.draw(look)
            self._look = look
        return self._lines

    @property
    def height(self) -> int:
        """How many lines it had when it was drawn last; a guess before that."""
        return self.guess if self._lines is None else len(self._lines)

    @property
    def guess(self) -> int:
        """How many lines it may have, before it is drawn."""
        return 1

    def draw(self, look: Look) -> list[Line]:
        """Its lines, each of the look's full width."""
        raise NotImplementedError

    def toggle(self) -> None:
        """Folds or unfolds it, where it does."""

    def tick(self) -> bool:
        """Called some times a second; whether it shows the time passing."""
        return False


def indented(look: Look, segments: list[Segment], *, fill: Style | None = None) -> Line:
    """A line behind the margin."""
    return look.line([Segment(" " * MARGIN, look.base), *segments], fill=fill)


class UserCell(Cell):
    """What a person said, on a shade of its own; long texts fold. ``note``: what there is beside the text."""

    folds = True

    def __init__(self, text: str, note: str = "") -> None:
        super().__init__()
        self.text = text
        self.note = note
        self.folded = True

    def toggle(self) -> None:
        """Folds or unfolds it."""
        self.folded = not self.folded
        self.changed()

    def draw(self, look: Look) -> list[Line]:
        """See `Cell`."""
        palette = look.palette
        shade = Style(color=palette.text, bgcolor=palette.surface)
        bar = Segment("▌", Style(color=palette.accent, bgcolor=palette.surface))
        pad = Segment(" ", shade)
        body = draw_plain(self.text.strip("\n"), look, content_width(look) - 2, shade)
        note = Style(color=palette.muted, bgcolor=palette.surface, italic=True)
        if self.folded and len(body) > LONG_PROMPT:
            rest = len(body) - LONG_PROMPT + 1
            body = [*body[: LONG_PROMPT - 1], [Segment(f"… {rest} more lines ▸", note)]]
        lines = [look.line([bar, pad, *line], fill=shade) for line in body]
        if self.note:
            lines.append(look.line([bar, pad, Segment(self.note, note)], fill=shade))
        return lines


class BlockCell(Cell):
    """A finished block of Markdown."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.source = source

    @property
    def guess(self) -> int:
        """See `Cell`."""
        return max(1, self.source.strip("\n").count("\n") + len(self.source) // 100)

    def draw(self, look: Look) -> list[Line]:
        """See `Cell`."""
        return [indented(look, line) for line in draw_markdown(self.source, look, content_width(look))]


class TailCell(Cell):
    """The open block of an answer that is being written: drawn again at every frame, finished lines of code once."""

    def __init__(self) -> None:
        super().__init__()
        self.source = ""
        self._code, self._prose = _PlainLines(wrapped), _PlainLines(words)

    def show(self, source: str) -> None:
        """What the open block is now."""
        if not source.startswith(self.source[:64]) or len(source) < len(self.source):
            self._code, self._prose = _PlainLines(wrapped), _PlainLines(words)
        self.source = source
        self.changed()

    def draw(self, look: Look) -> list[Line]:
        """See `Cell`."""
        if fence_of(self.source) is not None:
            head, _, code = self.source.lstrip("\n").partition("\n")
            return self._code.draw(code, look, look.code, Segment(" ", look.code)) if head else []
        if len(self.source) > PLAIN_FROM:
            return self._prose.draw(self.source, look, look.base, Segment("", look.base))
        return [indented(look, line) for line in draw_markdown(self.source, look, content_width(look))]


class _PlainLines:
    """Lines of growing text; a whole line is drawn once."""

    def __init__(self, split: Callable[[str, int], Iterator[str]]) -> None:
        self._split = split  # a line that is too wide
        self._look: Look | None = None
        self._done = 0  # characters of whole lines
        self._lines: list[Line] = []
        self._count = 0  # lines that are whole

    def draw(self, text: str, look: Look, style: Style, lead: Segment) -> list[Line]:
        """The lines of the text, which only grows while the look is the same; ``lead`` begins each."""
        if self._look is not look:
            self._look, self._done, self._lines, self._count = look, 0, [], 0
        del self._lines[self._count :]
        end = text.rfind("\n") + 1
        if end > self._done:
            self._add(text[self._done : end - 1], look, style, lead)
            self._done, self._count = end, len(self._lines)
        if text[end:].strip():
            self._add(text[end:], look, style, lead)
        return list(self._lines)

    def _add(self, lines: str, look: Look, style: Style, lead: Segment) -> None:
        width = content_width(look) - 2 * len(lead.text)
        tail = " " * len(lead.text)
        for line in clean(lines).split("\n"):
            for piece in self._split(line, width):
                body = Segment.adjust_line_length([Segment(piece, style)], width, style)
                self._lines.append(indented(look, [lead, *body, Segment(tail, style)]))


class ThoughtCell(Cell):
    """A model's reasoning: one line while folded."""

    folds = True

    def __init__(self) -> None:
        super().__init__()
        self.folded = True
        self.running = True
        self._pieces: list[str] = []
        self._plain = _PlainLines(words)

    @property
    def text(self) -> str:
        """All of it."""
        if len(self._pieces) > 1:
            self._pieces = ["".join(self._pieces)]
        return self._pieces[0] if self._pieces else ""

    def add(self, text: str) -> None:
        """More of it."""
        self._pieces.append(text)
        self.changed()

    def finish(self) -> None:
        """It is complete."""
        if self.running:
            self.running = False
            self.changed()

    def toggle(self) -> None:
        """Folds or unfolds it."""
        self.folded = not self.folded
        self.changed()

    def draw(self, look: Look) -> list[Line]:
        """See `Cell`."""
        sign = "▸" if self.folded else "▾"
        word = "Thinking" if self.running else "Thought"
        style = look.on(look.palette.muted, italic=True)
        head = [Segment(f"{sign} ", look.muted), Segment(word, look.on(look.palette.muted, bold=True))]
        if not self.folded:
            body = self._plain.draw(self.text, look, style, Segment("│ ", look.faint))
            return [indented(look, head), *body]
        room = content_width(look) - len(word) - 4
        if self.running:
            recent = "".join(self._pieces[-room:])
            preview = one_line(recent[-room:].partition(" ")[2] or recent, room)
        else:
            preview = one_line(self.text, room)
        return [indented(look, [*head, Segment(f"  {preview}", style)])]


class NoticeCell(Cell):
    """A remark of the app: a fault, a retry, a handoff. ``hint``: what to do about it."""

    def __init__(self, sign: str, text: str, *, colour: str, hint: str = "") -> None:
        super().__init__()
        self.sign = sign
        self.text = text
        self.colour = colour
        self.hint = hint

    def draw(self, look: Look) -> list[Line]:
        """See `Cell`."""
        palette = look.palette
        colour: str = getattr(palette, self.colour)
        quiet = self.colour == "muted"
        shade = look.base if quiet else Style(color=palette.text, bgcolor=palette.surface)
        mark = shade + Style(color=colour, bold=True)
        body = draw_plain(self.text.strip(), look, content_width(look) - 4, look.muted if quiet else shade)
        if self.hint:
            body.append([Segment(cut(self.hint, content_width(look) - 4), shade + Style(color=palette.muted))])
        bar = Segment(" " * MARGIN if quiet else "▌ ", mark)
        signs = [self.sign, *" " * len(body)]
        return [look.line([bar, Segment(f"{sign} ", mark), *line], fill=shade) for sign, line in zip(signs, body, strict=False)]
