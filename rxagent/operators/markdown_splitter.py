"""Where Markdown blocks end, told line by line (CommonMark 0.31, and tables).

1. Cuts only where both sides, drawn by themselves, look as they do together; in doubt it waits.
2. Nothing is looked at twice: a piece costs its own length.
"""

import re
from enum import Enum

_FENCE = re.compile(r"(`{3,})[^`]*$|(~{3,})")
_HEADING = re.compile(r"#{1,6}(?:\s|$)")
_RULE = re.compile(r"(?:(?:-[ \t]*){3,}|(?:\*[ \t]*){3,}|(?:_[ \t]*){3,})$")
_ITEM = re.compile(r"(?:[-+*]|\d{1,9}[.)])(?:\s|$)")
_RAW_HTML = tuple(
    (re.compile(start, re.IGNORECASE), re.compile(end, re.IGNORECASE))
    for start, end in (
        (r"<(?:script|pre|style|textarea)(?:\s|>|$)", r"</(?:script|pre|style|textarea)>"),
        (r"<!--", r"-->"),
        (r"<\?", r"\?>"),
        (r"<!\[CDATA\[", r"\]\]>"),
        (r"<![a-z]", r">"),
    )
)


_BLOCK_TAG = re.compile(
    r"</?(?:address|article|aside|base|basefont|blockquote|body|caption|center|col|colgroup|dd|details|dialog|dir|div|dl|dt|fieldset"
    r"|figcaption|figure|footer|form|frame|frameset|h[1-6]|head|header|hr|html|iframe|legend|li|link|main|menu|menuitem|nav|noframes"
    r"|ol|optgroup|option|p|param|search|section|summary|table|tbody|td|tfoot|th|thead|title|tr|track|ul)(?:\s|/?>|$)",
    re.IGNORECASE,
)
_LONE_TAG = re.compile(
    r"(?:<[a-z][a-z0-9-]*(?:\s+[a-z_:][\w:.-]*(?:\s*=\s*(?:[^\s\"'=<>`]+|'[^']*'|\"[^\"]*\"))?)*\s*/?>|</[a-z][a-z0-9-]*\s*>)\s*$",
    re.IGNORECASE,
)


class _In(Enum):
    """What the open block is."""

    NOTHING = 0
    TEXT = 1  # a paragraph, quote or table: a blank line ends it
    LIST = 2  # something else after a blank line ends it
    CODE = 3  # indented code; likewise
    HTML = 4  # a blank line ends it, and nothing begins inside it
    DOUBT = 5  # a list whose nesting can't be told for sure: the end of the text ends it


class Splitter:
    """Takes Markdown in pieces of any size and gives the blocks that are finished."""

    __slots__ = ("_blank", "_content", "_fence", "_finished", "_html", "_in", "_line_at", "_tag", "pieces")

    def __init__(self) -> None:
        self.pieces: list[str] = []  # of the open block: only grows, until another list replaces it
        self._line_at = 0  # where among them the unfinished line begins
        self._finished: list[str] = []
        self._in = _In.NOTHING
        self._fence = ""
        self._html: re.Pattern[str] | None = None
        self._blank = False
        self._tag = False  # a tag stands alone on a line of the paragraph: HTML or not, that can't be told
        self._content = 0  # the column where the innermost item's content begins; 0: can't be told

    def feed(self, text: str) -> list[str]:
        """The blocks that are finished with this piece."""
        *whole, rest = text.split("\n")
        for end in whole:
            self.pieces.append(end + "\n")
            self._take("".join(self.pieces[self._line_at :]))
            self._line_at = len(self.pieces)
        if rest:
            self.pieces.append(rest)
        finished, self._finished = self._finished, []
        return finished

    def rest(self) -> str:
        """The open block."""
        return "".join(self.pieces)

    def end(self) -> list[str]:
        """The blocks that are finished because the text is."""
        if self._line_at < len(self.pieces):
            self._take("".join(self.pieces[self._line_at :]))
        if self.pieces:
            self._finish(len(self.pieces))
        self._line_at = 0
        finished, self._finished = self._finished, []
        self._fence, self._html = "", None
        return finished

    def _take(self, line: str) -> None:
        """A line is whole; it is the end of ``pieces``."""
        body = line.lstrip(" \t")
        indent = len(line[: len(line) - len(body)].expandtabs(4))
        body = body.rstrip()
        if self._html is not None:
            if self._html.search(body):
                self._html = None
        elif self._fence:
            self._in_fence(body, indent)
        elif not body:
            self._blank = True
            if self._in in (_In.TEXT, _In.HTML):
                self._finish(len(self.pieces))
        else:
            if self._begins_new(body, indent):
                self._finish(self._line_at)
            self._blank = False
            self._open(body, indent)

    def _begins_new(self, body: str, indent: int) -> bool:
        """Whether this line begins a block that the open one does not reach into."""
        match self._in:
            case _In.NOTHING | _In.HTML | _In.DOUBT:
                return False
            case _In.TEXT:
                begins = indent < 4 and bool(_HEADING.match(body) or _FENCE.match(body))
                if begins and self._tag:
                    self._in = _In.DOUBT
                return begins and not self._tag
            case _In.LIST:
                if indent >= 2:  # no item's content begins further left
                    return False
                # A line of dashes may underline a paragraph that has left the list unseen.
                rule = _RULE.match(body) and body.strip("-")
                ends = bool(_HEADING.match(body) or _FENCE.match(body) or rule)
                return ends or (self._blank and not _ITEM.match(body))
            case _In.CODE:
                return indent < 4

    def _open(self, body: str, indent: int) -> None:
        """Works out what the open block is, now that this line belongs to it."""
        if self._in in (_In.HTML, _In.DOUBT):
            return
        if indent >= 4 and self._in is not _In.LIST:
            if self._in is _In.NOTHING:
                self._in = _In.CODE
            return
        if self._in is not _In.LIST and (_HEADING.match(body) or _RULE.match(body)):
            if self._tag:
                self._in = _In.DOUBT
            else:
                self._finish(len(self.pieces))
            return
        fresh = self._in in (_In.NOTHING, _In.LIST)
        if _ITEM.match(body) and not _RULE.match(body):
            body, indent = self._item(body, indent)
        elif self._in is _In.NOTHING:
            self._in = _In.TEXT
        elif self._in is _In.LIST and indent < self._content:
            self._content = 0
        if fence := _FENCE.match(body):
            self._open_fence(fence[1] or fence[2], indent)
        else:
            self._open_html(body, alone=fresh)

    def _item(self, body: str, indent: int) -> tuple[str, int]:
        """Goes into an item of a list, and the items on its line; gives what stands in it, and in which column."""
        doubt = self._in is _In.LIST and (not self._content or indent >= self._content + 4)
        self._in = _In.LIST
        while (item := _ITEM.match(body)) and not _RULE.match(body):
            rest = body[item.end() :].lstrip(" \t")
            space = len((item[0] + body[item.end() : len(body) - len(rest)]).expandtabs(4)) - len(item[0].rstrip())
            indent += len(item[0].rstrip()) + (space if rest and space <= 4 else 1)
            doubt = doubt or "\t" in item[0] or space > 4
            body = rest
        self._content = 0 if doubt else indent
        return body, indent

    def _open_fence(self, fence: str, indent: int) -> None:
        if self._in is not _In.LIST or (self._content and self._content <= indent < self._content + 4):
            self._fence = fence
        else:
            self._in = _In.DOUBT

    def _open_html(self, body: str, *, alone: bool) -> None:
        for start, end in _RAW_HTML:
            if found := start.match(body):
                if self._in is _In.LIST:
                    self._in = _In.DOUBT
                elif not end.search(body, found.end()):
                    self._html = end
                return
        if _BLOCK_TAG.match(body) or (alone and _LONE_TAG.match(body)):
            self._in = _In.DOUBT if self._in is _In.LIST else _In.HTML
        elif _LONE_TAG.match(body):
            self._tag = True

    def _in_fence(self, body: str, indent: int) -> None:
        """A line of fenced code, where blank lines mean nothing."""
        nested = self._in is _In.LIST
        if nested and body and indent < self._content:
            self._fence = ""
            self._in = _In.DOUBT
            return
        column = indent - self._content if nested else indent
        if body.startswith(self._fence) and not body.strip(self._fence[0]) and column < 4:
            self._fence = ""
            self._blank = False
            if not nested:
                self._finish(len(self.pieces))

    def _finish(self, count: int) -> None:
        """The open block is finished: the first pieces, so many."""
        self._finished.append("".join(self.pieces[:count]))
        self.pieces = self.pieces[count:]
        self._in = _In.NOTHING
        self._blank = self._tag = False
