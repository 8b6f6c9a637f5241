"""`Look`: the colours of the terminal app, light and dark, and the console that lines are drawn with."""

import io
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from markdown_it import MarkdownIt
from rich.console import Console, RenderableType
from rich.segment import Segment
from rich.style import Style
from rich.theme import Theme as RichTheme
from textual.theme import Theme

Line = tuple[Segment, ...]
"""What a cell keeps of a line: a tenth of the objects that a `Strip` is, for the garbage collector to walk."""


@dataclass(frozen=True, slots=True)
class Palette:
    """Colours as hex, by what they are for. Shades are nearly grey, so that terminals of 256 colours keep them apart."""

    name: str
    dark: bool
    background: str
    surface: str  # what a person said, the prompt
    code: str  # behind code
    text: str
    muted: str
    faint: str  # rules and borders
    accent: str
    link: str
    success: str
    warning: str
    error: str
    syntax: str  # a style of Pygments


DARK = Palette(
    name="rxagent-dark",
    dark=True,
    background="#131416",
    surface="#26282d",
    code="#1d1e21",
    text="#dfe1e6",
    muted="#8b93a5",
    faint="#4a4e58",
    accent="#7aa2f7",
    link="#7dcfff",
    success="#9ece6a",
    warning="#e0af68",
    error="#f7768e",
    syntax="one-dark",
)
LIGHT = Palette(
    name="rxagent-light",
    dark=False,
    background="#ffffff",
    surface="#e7e8ec",
    code="#f0f0f2",
    text="#24262c",
    muted="#626b80",
    faint="#c8cedb",
    accent="#2e5bd0",
    link="#0b6fa4",
    success="#2f7d32",
    warning="#9a6200",
    error="#c02944",
    syntax="default",
)
PALETTES: Mapping[str, Palette] = {DARK.name: DARK, LIGHT.name: LIGHT}


def textual_theme(palette: Palette) -> Theme:
    """The palette as a theme of Textual's, for the widgets around the transcript."""
    return Theme(
        name=palette.name,
        primary=palette.accent,
        secondary=palette.link,
        accent=palette.accent,
        foreground=palette.text,
        background=palette.background,
        surface=palette.surface,
        panel=palette.surface,
        success=palette.success,
        warning=palette.warning,
        error=palette.error,
        dark=palette.dark,
        variables={
            "muted": palette.muted,
            "faint": palette.faint,
            "code": palette.code,
            "footer-key-foreground": palette.accent,
            "border": palette.faint,
            "scrollbar": palette.faint,
            "scrollbar-hover": palette.muted,
            "scrollbar-active": palette.accent,
            "scrollbar-background": palette.background,
            "scrollbar-background-hover": palette.background,
            "scrollbar-background-active": palette.background,
            "scrollbar-corner-color": palette.background,
            "input-selection-background": f"{palette.accent} 35%",
            "screen-selection-background": f"{palette.accent} 35%",
        },
    )


class Look:
    """How things are drawn at one width, in one palette. A new width or palette is a new look."""

    def __init__(self, palette: Palette, width: int) -> None:
        self.palette = palette
        self.width = max(width, 8)

    @cached_property
    def base(self) -> Style:
        """Text on the background."""
        return Style(color=self.palette.text, bgcolor=self.palette.background)

    @cached_property
    def muted(self) -> Style:
        """What matters less."""
        return self.base + Style(color=self.palette.muted)

    @cached_property
    def faint(self) -> Style:
        """Rules, borders, hints."""
        return self.base + Style(color=self.palette.faint)

    @cached_property
    def code(self) -> Style:
        """Code and data."""
        return Style(color=self.palette.text, bgcolor=self.palette.code)

    def on(self, colour: str, *, bold: bool = False, italic: bool = False) -> Style:
        """A colour on the background."""
        return self.base + Style(color=colour, bold=bold, italic=italic)

    @cached_property
    def console(self) -> Console:
        """Draws into memory; Textual brings the colours down to what the terminal has."""
        return Console(
            file=io.StringIO(),
            width=self.width,
            color_system="truecolor",
            force_terminal=True,
            legacy_windows=False,
            highlight=False,
            emoji=False,
            markup=False,
            theme=RichTheme(self._markdown_styles()),
        )

    @cached_property
    def parser(self) -> MarkdownIt:
        """Reads Markdown."""
        return MarkdownIt().enable("strikethrough").enable("table")

    def _markdown_styles(self) -> dict[str, Style | str]:
        p = self.palette
        return {
            "none": Style.null(),
            "rule.line": p.faint,
            "rule.text": p.muted,
            "repr.number": "",
            "table.header": "bold",
            "markdown.paragraph": "",
            "markdown.h1": Style(color=p.accent, bold=True, underline=True),
            "markdown.h2": Style(color=p.accent, bold=True),
            "markdown.h3": Style(color=p.text, bold=True),
            "markdown.h4": Style(color=p.text, bold=True, italic=True),
            "markdown.h5": Style(color=p.muted, bold=True),
            "markdown.h6": Style(color=p.muted, italic=True),
            "markdown.em": "italic",
            "markdown.strong": "bold",
            "markdown.s": "strike",
            "markdown.code": Style(color=p.link, bgcolor=p.code),
            "markdown.block_quote": Style(color=p.muted, italic=True),
            "markdown.item": "",
            "markdown.item.bullet": Style(color=p.accent, bold=True),
            "markdown.item.number": Style(color=p.accent),
            "markdown.hr": p.faint,
            "markdown.link": Style(color=p.link, underline=True),
            "markdown.link_url": Style(color=p.link, underline=True),
            "markdown.kbd": "bold",
            "markdown.table.border": p.faint,
            "markdown.table.header": Style(color=p.accent, bold=True),
        }

    def draw(self, renderable: RenderableType, *, width: int, base: Style | None = None) -> list[list[Segment]]:
        """The lines of something drawn by Rich, ``width`` cells wide."""
        options = self.console.options.update(width=max(1, width), height=None)
        return self.console.render_lines(renderable, options, style=base or self.base, pad=True)

    def line(self, segments: Iterable[Segment], *, fill: Style | None = None) -> Line:
        """A line of the full width."""
        return tuple(Segment.simplify(Segment.adjust_line_length(list(segments), self.width, fill or self.base)))

    def blank(self) -> Line:
        """An empty line."""
        return (Segment(" " * self.width, self.base),)
