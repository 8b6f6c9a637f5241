"""The lines around the transcript: what conversation this is, what waits in the queues, what goes on and what it cost."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text
from textual.widgets import Static

from rxagent.chat.look import Palette
from rxagent.chat.text import count, dollars, one_line, seconds
from rxagent.chat.tool_cell import SPINNER
from rxagent.messages import AnyMessage, Usage, UserMessage

QUEUE_LINES = 4


@dataclass(frozen=True, slots=True)
class Situation:
    """What goes on, for the status line. ``since``: seconds it has been going on."""

    word: str = "ready"
    kind: str = "idle"  # idle, busy, asking, failed
    since: float | None = None
    model: str = ""
    usage: Usage = field(default_factory=Usage)
    thinking: str = "off"
    away: bool = False  # the reader has scrolled away from the end


class TopLine(Static):
    """The name of the conversation and the model that answers."""

    DEFAULT_CSS = """
    TopLine { height: 1; padding: 0 2; background: $surface; color: $muted; }
    """

    def show(self, palette: Palette, title: str, model: str) -> None:
        """Shows both."""
        right = Text(one_line(model, 36), palette.muted)
        left = Text.assemble(("rxagent", f"bold {palette.accent}"), ("  ", ""), (title or "new conversation", palette.text))
        self.update(Apart(left, right))


class WaitingLines(Static):
    """The messages that wait: steering for after the present turn, follow-ups for the end of the run."""

    DEFAULT_CSS = """
    WaitingLines { height: auto; padding: 0 2; display: none; background: $background; color: $muted; }
    WaitingLines.some { display: block; }
    """

    def show(self, palette: Palette, steering: Sequence[AnyMessage], follow_ups: Sequence[AnyMessage]) -> None:
        """Shows what waits, the first few of them."""
        self.set_class(bool(steering or follow_ups), "some")
        rows = [("↳ next", message) for message in steering] + [("⋯ later", message) for message in follow_ups]
        width = max(20, self.size.width or 76)
        text = Text(no_wrap=True, overflow="ellipsis")
        for row, (sign, message) in enumerate(rows[:QUEUE_LINES]):
            said = message.text if isinstance(message, UserMessage) else message.role
            text.append("\n" if row else "")
            text.append(f"{sign:<8}", f"bold {palette.warning}")
            text.append(one_line(said, width - 8), palette.text)
        rest = len(rows) - QUEUE_LINES
        text.append(f"\n        and {rest} more" if rest > 0 else "", palette.muted)
        self.update(text)


class StatusLine(Static):
    """What goes on at the left; tokens, cost and the key to the keys at the right."""

    DEFAULT_CSS = """
    StatusLine { height: 1; padding: 0 2; background: $background; color: $muted; }
    """

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self._beat = 0

    def show(self, palette: Palette, now: Situation) -> None:
        """Shows a situation; called again and again while something goes on."""
        self._beat += 1
        colour = {"busy": palette.accent, "asking": palette.warning, "failed": palette.error}.get(now.kind, palette.success)
        sign = {"busy": SPINNER[self._beat % len(SPINNER)], "asking": "?", "failed": "✗"}.get(now.kind, "●")
        left = Text.assemble((f"{sign} ", f"bold {colour}"), (now.word, palette.text))
        if now.since is not None:
            left.append(f" {seconds(now.since)}", palette.muted)
        if now.away:
            left.append("   ↓ ctrl+end", f"bold {palette.accent}")
        parts = [f"↑{count(now.usage.input)} ↓{count(now.usage.output)}"] if now.usage.total is not None else []
        if now.usage.cost is not None:
            parts.append(dollars(now.usage.cost))
        if now.thinking != "off":
            parts.insert(0, f"thinking {now.thinking}")
        keys = Text.assemble(("?", f"bold {palette.accent}"), (" keys", palette.muted))
        texts = [Text("  ·  ".join(parts[:number]), palette.muted) for number in range(len(parts), 0, -1)]
        self.update(Apart(left, *[Text("   ").join([text, keys]) for text in texts], keys))


class Apart:
    """One text at the left, one at the right, of one line as wide as there is room; the left one gives way.

    Of several ``rights`` it is the first that leaves the left one whole, or else the last.
    """

    def __init__(self, left: Text, *rights: Text) -> None:
        self._left = left
        self._rights = rights

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width, wanted = options.max_width, self._left.cell_len + 2
        right = next((each for each in self._rights if wanted + each.cell_len <= width), self._rights[-1])
        left = self._left.copy()
        left.truncate(max(1, width - right.cell_len - 2), overflow="ellipsis")
        line = Text.assemble(left, " " * max(1, width - left.cell_len - right.cell_len), right, no_wrap=True)
        line.truncate(width)
        yield line
