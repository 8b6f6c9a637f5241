"""Text from outside made fit for a terminal: control characters are shown, not obeyed; durations and counts in few letters."""

import re
from collections.abc import Iterator

from rich.cells import cell_len, chop_cells, set_cell_size

_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_TOKEN = re.compile(r"\s*\S+\s*|\s+")
_BREAKS = re.compile("\r\n|[\r\u2028\u2029\x85]")


def clean(text: str) -> str:
    """The text with control characters, direction marks and lone surrogates made visible; tabs become spaces."""
    return _CONTROL.sub(_shown, _BREAKS.sub("\n", text)).expandtabs(4)


def _shown(match: re.Match[str]) -> str:
    code = ord(match[0])
    return chr(0x2400 + code) if code < 0x20 else "\u2421" if code == 0x7F else "\ufffd"


def one_line(text: str, width: int) -> str:
    """The text on one line, cut to ``width`` cells."""
    line = " ".join(clean(text[: width * 8 + 64]).split())
    return cut(line, width)


def cut(line: str, width: int) -> str:
    """A line cut to ``width`` cells, with an ellipsis where something is missing."""
    if width <= 0:
        return ""
    return line if cell_len(line) <= width else f"{set_cell_size(line, width - 1).rstrip()}…"


def wrapped(line: str, width: int) -> Iterator[str]:
    """The pieces of a line that is too wide, each at most ``width`` cells; at least one."""
    if len(line) <= width and line.isascii():
        yield line
    else:
        yield from chop_cells(line, max(2, width)) or [""]


def words(line: str, width: int) -> Iterator[str]:
    """The pieces of a line that is too wide, broken between words where that is possible; at least one."""
    if cell_len(line) <= width:
        yield line
        return
    piece = ""
    for token in _TOKEN.findall(line):
        if piece and cell_len(piece) + cell_len(token.rstrip()) > width:
            yield piece.rstrip()
            piece = ""
        *whole, piece = wrapped(piece + token, width) if cell_len(piece + token.rstrip()) > width else (piece + token,)
        yield from whole
    if piece.strip():
        yield piece.rstrip()


def seconds(duration: float) -> str:
    """A duration: ``0.4s``, ``12s``, ``3m05s``."""
    if duration < 10:
        return f"{max(duration, 0):.1f}s"
    if duration < 60:
        return f"{duration:.0f}s"
    return f"{duration // 60:.0f}m{duration % 60:02.0f}s"


def count(number: int | None) -> str:
    """A count: ``812``, ``12.4k``, ``1.2M``; ``?`` where it is unknown."""
    if number is None:
        return "?"
    if number < 1000:
        return str(number)
    return f"{number / 1000:.1f}k" if number < 1_000_000 else f"{number / 1_000_000:.1f}M"


def dollars(cost: float) -> str:
    """A cost in US dollars; fractions of a cent are shown as such."""
    return f"${cost:.2f}" if cost >= 1 or not cost else f"${cost:.4f}"
