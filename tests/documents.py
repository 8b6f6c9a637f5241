"""Code blocks of Markdown documents."""

import pathlib
import re

ROOT = pathlib.Path(__file__).parents[1]
_FENCE = re.compile(r"^```(?P<kind>[^\n]*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(path, kind):
    """The blocks of one kind, each with its text and the number of its first line."""
    whole = (ROOT / path).read_text(encoding="utf-8")
    found = [m for m in _FENCE.finditer(whole) if m["kind"].strip() == kind]
    return [(m["text"], whole.count("\n", 0, m.start("text")) + 1) for m in found]
