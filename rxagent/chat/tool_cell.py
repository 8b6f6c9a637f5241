"""`ToolCell`: a tool call with its arguments, what it does right now, how long it takes, and a result that folds."""

import time
from collections import deque
from collections.abc import Callable
from typing import Literal

from pydantic import JsonValue
from pydantic_core import to_json
from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style

from rxagent.chat.cells import Cell, content_width, indented
from rxagent.chat.look import Line, Look
from rxagent.chat.markdown import draw_plain
from rxagent.chat.text import count, cut, one_line, seconds
from rxagent.messages import JsonObject

Phase = Literal["writing", "waiting", "running", "asking", "done", "failed", "void"]
SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
LONGEST = 400  # lines of a result that unfolds


class ToolCell(Cell):
    """One call. ``clock``: seconds, for the time that passes while it runs."""

    dense = True
    folds = True

    def __init__(self, name: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self.name = name
        self.args: JsonObject | str = {}
        self.phase: Phase = "writing"
        self.written = 0  # characters of arguments that have come so far
        self.progress = ""
        self.result = ""
        self.summary = ""
        self.details: JsonValue = None
        self.trail: deque[str] = deque(maxlen=LONGEST)  # what agents below it did
        self.folded = True
        self._clock = clock
        self._since = clock()
        self._took = 0.0
        self._beat = 0

    # -- what happens to it

    def begin(self, args: JsonObject | str) -> None:
        """It runs."""
        self.args, self.phase, self._since = args, "running", self._clock()
        self.progress = ""
        self.changed()

    def say(self, progress: JsonValue) -> None:
        """What it reports while it runs."""
        self.progress = as_text(progress)
        self.changed()

    def add_trail(self, line: str) -> None:
        """An agent below it did something."""
        self.trail.append(line)
        self.changed()

    def end(self, phase: Phase, *, took: float) -> None:
        """It is over, or waits for an answer."""
        self.phase, self._took, self.progress = phase, took, ""
        self.changed()

    def toggle(self) -> None:
        """Folds or unfolds arguments and result."""
        self.folded = not self.folded
        self.changed()

    def tick(self) -> bool:
        """See `Cell`."""
        if self.phase not in ("running", "writing"):
            return False
        self._beat += 1
        self.changed()
        return True

    @property
    def elapsed(self) -> float:
        """Seconds it runs, or ran."""
        return self._clock() - self._since if self.phase in ("running", "writing") else self._took

    # -- how it looks

    def draw(self, look: Look) -> list[Line]:
        """See `Cell`."""
        lines = [self._head(look)]
        if self.folded:
            line, style = self._last_word(look)
            if line:
                room = content_width(look) - 4
                lines.append(indented(look, [Segment("  └ ", look.faint), Segment(one_line(line, room), style)]))
            return lines
        for title, text, style in self._parts(look):
            lines.append(indented(look, [Segment("  │ ", look.faint), Segment(title, look.on(look.palette.muted, bold=True))]))
            body = draw_plain(text, look, content_width(look) - 6, style)
            lines += [indented(look, [Segment("  │   ", look.faint), *line]) for line in body[:LONGEST]]
            if len(body) > LONGEST:
                lines.append(indented(look, [Segment(f"  │   … {len(body) - LONGEST} more lines", look.muted)]))
        return lines

    def _head(self, look: Look) -> Line:
        palette, width = look.palette, content_width(look)
        sign, colour = self._sign(look)
        right = f" {self._time()} {'▸' if self.folded else '▾'}"
        name = one_line(self.name, max(8, width // 2))
        room = width - 2 - cell_len(name) - cell_len(right) - 2
        args = cut(self._arguments(room), room)
        gap = width - 2 - cell_len(name) - 2 - cell_len(args) - cell_len(right)
        return indented(
            look,
            [
                Segment(f"{sign} ", look.on(colour, bold=True)),
                Segment(name, look.on(palette.text, bold=True)),
                Segment("  ", look.base),
                Segment(args, look.muted),
                Segment(" " * max(0, gap), look.base),
                Segment(right, look.muted),
            ],
        )

    def _sign(self, look: Look) -> tuple[str, str]:
        palette = look.palette
        match self.phase:
            case "running" | "writing":
                return SPINNER[self._beat % len(SPINNER)], palette.accent
            case "waiting":
                return "·", palette.muted
            case "asking":
                return "?", palette.warning
            case "done":
                return "✓", palette.success
            case "failed":
                return "✗", palette.error
            case "void":
                return "–", palette.muted

    def _time(self) -> str:
        match self.phase:
            case "waiting" | "void":
                return ""
            case "asking":
                return "waits for you"
            case _:
                return seconds(self.elapsed)

    def _arguments(self, room: int) -> str:
        if self.phase == "writing":
            return f"writing arguments, {count(self.written)} characters" if self.written else "…"
        if isinstance(self.args, str):
            return one_line(self.args, room)
        return ", ".join(f"{name}={one_line(to_json(value).decode(), room)}" for name, value in self.args.items())

    def _last_word(self, look: Look) -> tuple[str, Style]:
        match self.phase:
            case "failed":
                return self.summary or self.result or "failed", look.on(look.palette.error)
            case "done":
                return self.summary or self.result or "(nothing)", look.muted
            case "running":
                return self.progress or (self.trail[-1] if self.trail else ""), look.muted
            case _:
                return "", look.muted

    def _parts(self, look: Look) -> list[tuple[str, str, Style]]:
        plain = look.base
        parts = [("arguments", pretty(self.args), plain)]
        if self.trail:
            parts.append(("what it did", "\n".join(self.trail), look.muted))
        if self.progress:
            parts.append(("so far", self.progress, plain))
        if self.phase in ("done", "failed"):
            style = look.on(look.palette.error) if self.phase == "failed" else plain
            parts.append(("result", self.result or "(nothing)", style))
        if self.details is not None:
            parts.append(("details", pretty(self.details), plain))
        return parts


def as_text(value: JsonValue) -> str:
    """A value as people read it in one line."""
    return value if isinstance(value, str) else to_json(value).decode()


def pretty(value: JsonValue) -> str:
    """A value as people read it when there is room."""
    if value in ({}, ""):
        return "(none)"
    return value if isinstance(value, str) else to_json(value, indent=2).decode()
