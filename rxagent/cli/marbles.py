"""`rxagent marbles`: draws the marble blocks of a Markdown file."""

import re
import sys
from argparse import Namespace
from pathlib import Path

from rxagent.errors import UsageError


def start(arguments: Namespace) -> int:
    """Writes an SVG for each block; without --svg, lists them."""
    from rxagent.marble.draw import draw_file

    path = Path(arguments.file)
    try:
        drawings = draw_file(path.read_text(encoding="utf-8"), arguments.file)
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{arguments.file!r} can't be read: {error}") from error
    directory: str | None = arguments.svg
    if directory is None:
        sys.stdout.writelines(f"{title}\n" for title, _ in drawings)
        return 0
    target = Path(directory or f"{path.stem}-svg")
    try:
        target.mkdir(parents=True, exist_ok=True)
        for number, (title, svg) in enumerate(drawings, 1):
            name = f"{path.stem}-{number:02d}-{re.sub(r'[^a-z0-9]+', '-', title.lower()).strip('-')[:50]}.svg"
            (target / name).write_text(svg, encoding="utf-8")
            sys.stdout.write(f"{target / name}\n")
    except OSError as error:
        raise UsageError(f"{str(target)!r} can't be written to: {error.strerror}") from error
    return 0
