"""`WelcomeCell`: what an empty conversation shows."""

from rich.segment import Segment
from rich.style import Style

from rxagent.chat.cells import Cell, content_width, indented
from rxagent.chat.look import Line, Look
from rxagent.chat.text import cut, one_line

DEMO_HINTS = (
    ("write a long sample", "Markdown while it grows"),
    ("add 2 and 40, and count to 20", "two tools at once; steer meanwhile"),
    ('publish "hello"', "a tool that asks before it runs"),
    ("fail please", "an error; ctrl+r tries again"),
)
_KEYS = (
    ("enter", "send; while it works: steer"),
    ("tab", "while it works: queue for afterwards"),
    ("esc", "stop"),
    ("?", "all keys"),
)


class WelcomeCell(Cell):
    """The model, the tools, and something to begin with."""

    def __init__(self, model: str, tools: tuple[str, ...], *, is_demo: bool) -> None:
        super().__init__()
        self._model = model
        self._tools = tools
        self._is_demo = is_demo

    def draw(self, look: Look) -> list[Line]:
        """See `Cell`."""
        palette = look.palette
        accent, muted, text = look.on(palette.accent, bold=True), look.muted, look.base
        lines = [look.blank(), self._line(look, [("rxagent", accent), ("  agents as reactive streams", muted)]), look.blank()]
        lines.append(self._pair(look, "model", self._model, text))
        if self._tools:
            lines.append(self._pair(look, "tools", ", ".join(self._tools), text))
        if self._is_demo:
            lines += [
                self._pair(look, "", "offline and scripted; ctrl+l or --model takes a real one", muted),
                look.blank(),
                self._line(look, [("Try", look.on(palette.text, bold=True))]),
                *(self._hint(look, words, why) for words, why in DEMO_HINTS),
            ]
        lines += [look.blank(), *(self._pair(look, key, what, muted, key_style=accent) for key, what in _KEYS)]
        return lines

    def _line(self, look: Look, pieces: list[tuple[str, Style]]) -> Line:
        return indented(look, [Segment(text, style) for text, style in pieces])

    def _pair(self, look: Look, name: str, value: str, style: Style, *, key_style: Style | None = None) -> Line:
        shown = one_line(value, content_width(look) - 8)
        return indented(look, [Segment(f"{name:<8}", key_style or look.muted), Segment(shown, style)])

    def _hint(self, look: Look, words: str, why: str) -> Line:
        line = [Segment("  › ", look.on(look.palette.accent)), Segment(f"{words:<32}", look.base)]
        return indented(look, [*line, Segment(cut(why, content_width(look) - 38), look.muted)])
