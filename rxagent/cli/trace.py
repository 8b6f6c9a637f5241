"""`rxagent trace`: draws a recorded run as swimlanes."""

import asyncio
import sys
from argparse import Namespace
from pathlib import Path

from rxagent.cli.places import recorded
from rxagent.errors import UsageError


def start(arguments: Namespace) -> int:
    """Writes SVG, or an HTML page where the output's name ends so."""
    from rxagent.marble.trace import trace_html, trace_svg

    events = asyncio.run(recorded(arguments.run, arguments.store))
    title = Path(arguments.run).stem
    output: str | None = arguments.output
    is_page = arguments.html or (output or "").endswith((".html", ".htm"))
    drawing = trace_html(events, title) if is_page else trace_svg(events, title)
    if output is None or output == "-":
        sys.stdout.write(drawing)
        return 0
    try:
        Path(output).write_text(drawing, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{output!r} can't be written: {error.strerror}") from error
    sys.stderr.write(f"{output}: {len(events)} events\n")
    return 0
