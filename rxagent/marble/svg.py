"""A few lines of SVG: shapes and texts collected, then written as one document."""

from dataclasses import dataclass, field
from html import escape

CHAR = 0.62  # width of a monospace character, in font sizes; a little more than fonts really take
INK, QUIET_INK, PAPER = "#1f2933", "#8a97a6", "#ffffff"
PALETTE = ("#3b82c4", "#2f9e6e", "#d9822b", "#8e5bb5", "#c9486b", "#2a9aa8", "#8c7a3a", "#5b6b8c", "#b0563b", "#6a8f2f")

_HEAD = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="{w}" height="{h}" viewBox="0 0 {w} {h}" '
    'font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, DejaVu Sans Mono, monospace">\n'
)


@dataclass(slots=True)
class Svg:
    """A drawing in pixels, the origin at the top left."""

    parts: list[str] = field(default_factory=list[str])

    def line(self, start: tuple[float, float], end: tuple[float, float], ink: str = INK, width: float = 1.5) -> None:
        """A straight line."""
        (x1, y1), (x2, y2) = start, end
        self.parts.append(
            f'<line x1="{_n(x1)}" y1="{_n(y1)}" x2="{_n(x2)}" y2="{_n(y2)}" stroke="{ink}" stroke-width="{_n(width)}"/>'
        )

    def dashed(self, start: tuple[float, float], end: tuple[float, float], ink: str = QUIET_INK) -> None:
        """A dashed line."""
        self.line(start, end, ink)
        self.parts[-1] = self.parts[-1].replace("/>", ' stroke-dasharray="2 4"/>')

    def rect(self, corner: tuple[float, float], size: tuple[float, float], fill: str, stroke: str = "none") -> None:
        """A rectangle with slightly rounded corners."""
        (x, y), (w, h) = corner, size
        self.parts.append(
            f'<rect x="{_n(x)}" y="{_n(y)}" width="{_n(w)}" height="{_n(h)}" rx="3" fill="{fill}" stroke="{stroke}"/>'
        )

    def circle(self, center: tuple[float, float], radius: float, fill: str) -> None:
        """A filled circle with an outline."""
        x, y = center
        self.parts.append(f'<circle cx="{_n(x)}" cy="{_n(y)}" r="{_n(radius)}" fill="{fill}" stroke="{INK}"/>')

    def path(self, d: str, fill: str) -> None:
        """A filled shape."""
        self.parts.append(f'<path d="{d}" fill="{fill}"/>')

    def text(self, at: tuple[float, float], words: str, *, size: float = 12, ink: str = INK, anchor: str = "start") -> None:
        """Words on a baseline; ``anchor`` is start, middle or end."""
        x, y = at
        self.parts.append(
            f'<text x="{_n(x)}" y="{_n(y)}" font-size="{_n(size)}" fill="{ink}" text-anchor="{anchor}" '
            f'xml:space="preserve">{escape(_printable(words))}</text>'
        )

    def title(self, words: str) -> None:
        """Give the shape added last a tooltip."""
        last = self.parts[-1]
        tag = last[1 : last.index(" ")]
        tip = f"<title>{escape(_printable(words))}</title>"
        if last.endswith("/>"):
            self.parts[-1] = f"{last[:-2]}>{tip}</{tag}>"

    def document(self, width: float, height: float) -> str:
        """The whole as an SVG document."""
        head = _HEAD.format(w=_n(width), h=_n(height))
        paper = f'<rect width="{_n(width)}" height="{_n(height)}" fill="{PAPER}"/>'
        return head + "\n".join([paper, *self.parts]) + "\n</svg>\n"


def width_of(words: str, size: float = 12) -> float:
    """The room that ``words`` take, in pixels; wide (CJK, emoji) characters count double."""
    return sum(2 if ord(c) > 0x2E7F else 1 for c in words) * size * CHAR


def clipped(words: str, room: float, size: float = 12) -> str:
    """``words`` cut to ``room`` pixels, with an ellipsis if something is missing."""
    words = " ".join(words.split())
    if width_of(words, size) <= room:
        return words
    while words and width_of(words + "…", size) > room:
        words = words[:-1]
    return words + "…" if words else ""


def wrapped(words: str, columns: int) -> list[str]:
    """``words`` in lines of at most ``columns`` characters, broken at blanks where there are any."""
    lines: list[str] = []
    for paragraph in words.splitlines() or [""]:
        rest = paragraph
        while len(rest) > columns:
            cut = rest.rfind(" ", columns // 2, columns + 1)
            cut = cut if cut > 0 else columns
            lines.append(rest[:cut].rstrip())
            rest = "    " + rest[cut:].lstrip()
        lines.append(rest)
    return lines


def _printable(words: str) -> str:
    return "".join(c if c.isprintable() else "�" for c in words)


def _n(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")
