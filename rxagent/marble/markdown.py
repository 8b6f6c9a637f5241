"""Finding the blocks of a Markdown file: fenced ``marble`` blocks, named by their headings.

A fenced ``python`` block marked ``setup`` (the fence says ``python setup``) runs before the blocks below it.
"""

import re
from collections import Counter
from dataclasses import dataclass

from rxagent.marble.faults import MarbleSyntaxError, Place

_FENCE = re.compile(r"^(?P<indent> {0,3})(?P<fence>`{3,}|~{3,})[ \t]*(?P<info>[^`\n]*)$")
_HEADING = re.compile(r"^ {0,3}(#{1,6})[ \t]+(.+?)[ \t]*#*[ \t]*$")
_MARKUP = re.compile(r"[`*_]")


@dataclass(frozen=True, slots=True)
class Fenced:
    """A fenced block: its first content line's place, its text, and the heading it stands under."""

    title: str
    place: Place
    text: str


@dataclass(frozen=True, slots=True)
class Document:
    """The ``marble`` blocks and the ``python setup`` blocks of a file, in order."""

    blocks: tuple[Fenced, ...]
    setups: tuple[Fenced, ...]


def read_document(text: str, file: str) -> Document:
    """Find the blocks in ``text``. Raises ``MarbleSyntaxError`` for a marble fence that is never closed."""
    found: list[tuple[str, Fenced]] = []
    heading = ""
    lines = text.splitlines()
    at = 0
    while at < len(lines):
        opening = _FENCE.match(lines[at])
        if opening is None:
            if title := _HEADING.match(lines[at]):
                heading = _MARKUP.sub("", title[2])
            at += 1
            continue
        end = _closing(lines, at + 1, opening["fence"])
        kind = " ".join(opening["info"].split())
        if kind in ("marble", "python setup"):
            if end == len(lines):
                raise MarbleSyntaxError(Place(file, at + 1), "this block is never closed: expected a line of ```")
            indent = len(opening["indent"])
            body = [line[indent:] if not line[:indent].strip() else line for line in lines[at + 1 : end]]
            found.append((kind, Fenced(heading, Place(file, at + 2, 1 + indent), "\n".join(body))))
        at = end + 1
    blocks = _with_distinct_titles([fenced for kind, fenced in found if kind == "marble"])
    return Document(tuple(blocks), tuple(fenced for kind, fenced in found if kind == "python setup"))


def _closing(lines: list[str], at: int, fence: str) -> int:
    pattern = re.compile(rf"^ {{0,3}}{re.escape(fence[0])}{{{len(fence)},}}[ \t]*$")
    while at < len(lines) and not pattern.match(lines[at]):
        at += 1
    return at


def _with_distinct_titles(blocks: list[Fenced]) -> list[Fenced]:
    counts = Counter(block.title for block in blocks)
    seen: Counter[str] = Counter()
    named: list[Fenced] = []
    for block in blocks:
        seen[block.title] += 1
        title = block.title or f"line {block.place.line - 1}"
        if block.title and counts[block.title] > 1:
            title = f"{title} ({seen[block.title]})"
        named.append(Fenced(title, block.place, block.text))
    return named
