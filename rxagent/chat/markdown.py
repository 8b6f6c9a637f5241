"""Markdown blocks as lines: Rich's renderer with quieter headings, framed code, rules and tables."""

from collections.abc import Mapping
from typing import ClassVar

from rich import box
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import CodeBlock, Heading, HorizontalRule, ImageItem, Markdown, MarkdownElement, TableElement
from rich.rule import Rule
from rich.segment import Segment
from rich.style import Style
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from rxagent.chat.look import Look
from rxagent.chat.text import clean, words

HIGHLIGHT_UP_TO = 60_000  # characters of one code block; longer ones stay plain rather than stall the keyboard


class _Heading(Heading):
    LEVEL_ALIGN: ClassVar = dict.fromkeys(("h1", "h2", "h3", "h4", "h5", "h6"), "left")


class _Code(CodeBlock):
    """Code on a shade of its own, one cell of margin."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        code = str(self.text).rstrip("\n")
        if len(code) > HIGHLIGHT_UP_TO:
            yield from Text(code).wrap(console, options.max_width)
            return
        syntax = Syntax(
            code, self.lexer_name, theme=self.theme, word_wrap=True, padding=(0, 1), background_color=_background(console)
        )
        yield syntax


class _Rule(HorizontalRule):
    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Rule(style=console.get_style("markdown.hr"), characters="─")


class _Table(TableElement):
    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        table = Table(box=box.ROUNDED, border_style="markdown.table.border", header_style="markdown.table.header")
        header = self.header.row.cells if self.header is not None and self.header.row is not None else []
        for cell in header:
            table.add_column(cell.content.copy(), justify=cell.content.justify or "default")
        for row in self.body.rows if self.body is not None else []:
            table.add_row(*(cell.content for cell in row.cells))
        yield table


class _Image(ImageItem):
    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        title = self.text or Text(self.destination.strip("/").rsplit("/", 1)[-1])
        yield Text.assemble("[image: ", title, "]", style=Style(link=self.link or self.destination or None), end="")


class _Markdown(Markdown):
    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **Markdown.elements,
        "heading_open": _Heading,
        "fence": _Code,
        "code_block": _Code,
        "hr": _Rule,
        "table_open": _Table,
        "image": _Image,
    }

    def __init__(self, source: str, look: Look) -> None:
        """As Rich's, but for the parser, which takes longer to make than a block to parse."""
        self.markup = source
        self.parsed = look.parser.parse(source)
        self.code_theme = self.inline_code_theme = look.palette.syntax
        self.justify = self.inline_code_lexer = None
        self.style = "none"
        self.hyperlinks = True


def _background(console: Console) -> str | None:
    colour = console.get_style("markdown.code").bgcolor
    return colour.name if colour is not None else None


def draw_markdown(source: str, look: Look, width: int) -> list[list[Segment]]:
    """The lines of Markdown text, without blank lines around it; plain text where it can't be drawn."""
    try:
        lines = look.draw(_Markdown(clean(source), look), width=width)
    except Exception:  # whatever a model writes, it is shown
        return draw_plain(source, look, width, look.base)
    return _trimmed(lines)


def draw_plain(source: str, look: Look, width: int, style: Style) -> list[list[Segment]]:
    """The lines of text as it is."""
    return [[Segment(piece, style)] for line in clean(source).split("\n") for piece in words(line, width)]


def _trimmed(lines: list[list[Segment]]) -> list[list[Segment]]:
    first, last = 0, len(lines)
    while first < last and _is_blank(lines[first]):
        first += 1
    while last > first and _is_blank(lines[last - 1]):
        last -= 1
    return lines[first:last]


def _is_blank(line: list[Segment]) -> bool:
    return not any(segment.text.strip() for segment in line)


def fence_of(block: str) -> str | None:
    """The language of a block that is an unclosed code fence ("" for none given), None for any other."""
    head, _, _ = block.lstrip("\n").partition("\n")
    body = head.strip()
    for mark in ("```", "~~~"):
        if body.startswith(mark):
            return body.strip(mark[0]).strip()
    return None


_NAMES: Mapping[str, str] = {"py": "python", "js": "javascript", "ts": "typescript", "sh": "bash", "": "code"}


def language_name(name: str) -> str:
    """How a fence's language is shown."""
    return _NAMES.get(name, name)
