"""Finding the blocks of a Markdown file: fenced ``marble`` blocks, named by their headings.

A fenced ``python`` block marked ``setup`` (the fence says ``python setup``) runs before the blocks below it.
"""

import re
from collections import Counter
from dataclasses import dataclass, replace

from rxagent.marble.faults import MarbleSyntaxError, Place

_FENCE = re.compile(r"^(?P<indent> {0,3})(?P<fence>`{3,}|~{3,})[ \t]*(?P<info>[^`\n]*)$")
_HEADING = re.compile(r"^ {0,3}(#{1,6})[ \t]+(.+?)[ \t]*#*[ \t]*$")
_UNDERLINE = re.compile(r"^ {0,3}(=+|-+)[ \t]*$")
_PARAGRAPH = re.compile(r"^ {0,3}[^\s>|*+-]")
_MARKUP = re.compile(r"[`*]")


@dataclass(frozen=True, slots=True)
class Fenced:
    """A fenced block: its first content line's place, its text, and the headings it stands under, inner and outer."""

    title: str
    place: Place
    text: str
    section: str = ""


@dataclass(frozen=True, slots=True)
class Document:
    """The ``marble`` blocks and the ``python setup`` blocks of a file, in order."""

    blocks: tuple[Fenced, ...]
    setups: tuple[Fenced, ...]


def read_document(text: str, file: str) -> Document:
    """Find the blocks in ``text``. Raises ``MarbleSyntaxError`` for a marble fence that is never closed."""
    found: list[tuple[str, Fenced]] = []
    headings: list[str] = []
    lines = text.splitlines()
    at = 0
    while at < len(lines):
        opening = _FENCE.match(lines[at])
        if opening is None:
            depth, heading = _heading(lines, at)
            if heading:
                headings[depth:] = [""] * (depth - len(headings)) + [_MARKUP.sub("", heading).replace("::", ":")]
            at += 1
            continue
        end = _closing(lines, at + 1, opening["fence"])
        words = opening["info"].split()
        kind = "marble" if words[:1] == ["marble"] else " ".join(words[:2])  # what renderers read may stand behind it
        if kind in ("marble", "python setup"):
            if end == len(lines):
                raise MarbleSyntaxError(Place(file, at + 1), "this block is never closed: expected a line of ```")
            indent = len(opening["indent"])
            section, title = ["", *(h for h in headings if h)][-2:] if any(headings) else ("", "")
            body = [line[indent:] if not line[:indent].strip() else line for line in lines[at + 1 : end]]
            found.append((kind, Fenced(title, Place(file, at + 2, 1 + indent), "\n".join(body), section)))
        at = end + 1
    blocks = _with_distinct_titles([fenced for kind, fenced in found if kind == "marble"])
    return Document(tuple(blocks), tuple(fenced for kind, fenced in found if kind == "python setup"))


def _heading(lines: list[str], at: int) -> tuple[int, str]:
    """How deep the heading at ``at`` is, from 0, and its text; an underlined one counts, too."""
    if match := _HEADING.match(lines[at]):
        return len(match[1]) - 1, match[2]
    under = _UNDERLINE.match(lines[at + 1]) if at + 1 < len(lines) else None
    if under and _PARAGRAPH.match(lines[at]) and not (at and lines[at - 1].strip()):
        return "=-".index(under[1][0]), lines[at].strip()
    return 0, ""


def _closing(lines: list[str], at: int, fence: str) -> int:
    pattern = re.compile(rf"^ {{0,3}}{re.escape(fence[0])}{{{len(fence)},}}[ \t]*$")
    while at < len(lines) and not pattern.match(lines[at]):
        at += 1
    return at


def _with_distinct_titles(blocks: list[Fenced]) -> list[Fenced]:
    """Put the outer heading before titles that would be the same, and a number behind those that still are."""
    counts = Counter(block.title for block in blocks)
    titles = [f"{b.section}: {b.title}" if counts[b.title] > 1 and b.section else b.title for b in blocks]
    counts = Counter(titles)
    seen: Counter[str] = Counter()
    named: list[Fenced] = []
    for block, title in zip(blocks, titles, strict=True):
        seen[title] += 1
        unique = f"{title} ({seen[title]})" if counts[title] > 1 else title
        named.append(replace(block, title=unique if title else f"line {block.place.line - 1}"))
    return named
