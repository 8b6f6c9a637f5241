"""The screens over the transcript: the keys, the models, the conversations of before."""

import time
from collections.abc import Sequence

from rich.table import Table
from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from rxagent.chat.desk import Entry
from rxagent.chat.look import Palette
from rxagent.chat.text import one_line

_CSS = """
{name} {{ align: center middle; background: $background 60%; }}
{name} > Vertical {{
    width: 90%; max-width: {width}; height: auto; max-height: 90%; padding: 0 1;
    background: $surface; border: round $accent; border-title-color: $accent; border-title-style: bold;
    border-subtitle-color: $muted;
}}
{name} Input {{ height: 1; border: none; padding: 0; background: $surface; margin-bottom: 1; }}
{name} Input:focus {{ border: none; background-tint: transparent; }}
{name} OptionList {{ height: auto; max-height: 14; border: none; background: $surface; scrollbar-size-vertical: 1; padding: 0; }}
{name} OptionList:focus {{ border: none; }}
{name} VerticalScroll {{ height: auto; max-height: 100%; scrollbar-size-vertical: 1; }}
{name} Static {{ height: auto; }}
"""

KEYS: Sequence[tuple[str, Sequence[tuple[str, str]]]] = (
    (
        "Writing",
        (
            ("enter", "send; while it works: steer, taken in after the present turn"),
            ("tab", "while it works: queue for when it is done"),
            ("ctrl+x", "while it works: stop its tools and take this in at once"),
            ("ctrl+j", "new line"),
            ("↑ ↓", "prompts sent before; ↑ in an empty box takes back what is queued"),
        ),
    ),
    (
        "Running",
        (
            ("esc", "stop"),
            ("ctrl+r", "try again after an error or a stop; put open questions again"),
            ("y a n r e", "approve: once, always here, no, no with a reason, edit first"),
        ),
    ),
    (
        "Reading",
        (
            ("pgup pgdn", "scroll; ctrl+home and ctrl+end go to the ends, the wheel works"),
            ("ctrl+t", "unfold or fold thoughts"),
            ("ctrl+o", "unfold or fold results of tools"),
            ("tab", "in an empty box: into the transcript; ↑ ↓ choose, enter unfolds, esc back"),
            ("mouse", "click unfolds, drag selects, ctrl+c copies"),
        ),
    ),
    (
        "App",
        (
            ("ctrl+n", "new conversation"),
            ("ctrl+p", "conversations of before"),
            ("ctrl+l", "another model"),
            ("ctrl+g", "light or dark"),
            ("ctrl+c", "stop; twice at rest: quit"),
            ("ctrl+q", "quit"),
        ),
    ),
    (
        "Commands",
        (
            ("/model NAME", "another model"),
            ("/thinking LEVEL", "off, minimal, low, medium, high, xhigh"),
            ("/new /history", "conversations"),
            ("/theme /keys /quit", ""),
        ),
    ),
)


class KeysScreen(ModalScreen[None]):
    """All keys."""

    DEFAULT_CSS = _CSS.format(name="KeysScreen", width=92)

    def __init__(self, palette: Palette) -> None:
        super().__init__()
        self._palette = palette

    def compose(self) -> ComposeResult:
        """A table of keys."""
        grid = Table.grid(padding=(0, 2))
        for number, (title, rows) in enumerate(KEYS):
            grid.add_row(Text("\n" * (number > 0) + title, f"bold {self._palette.text}"))
            for key, what in rows:
                grid.add_row(Text(f" {key}", f"bold {self._palette.accent}", no_wrap=True), Text(what, self._palette.muted))
        box = Vertical(VerticalScroll(Static(grid), can_focus=False))
        box.border_title, box.border_subtitle = "Keys", "↑ ↓ scroll · any other key closes"
        yield box

    def on_key(self, event: events.Key) -> None:
        """Scrolls or closes."""
        event.stop()
        scroll = self.query_one(VerticalScroll)
        match event.key:
            case "up":
                scroll.scroll_up(animate=False)
            case "down":
                scroll.scroll_down(animate=False)
            case "pageup":
                scroll.scroll_page_up(animate=False)
            case "pagedown" | "space":
                scroll.scroll_page_down(animate=False)
            case _:
                self.dismiss()


class Picker(ModalScreen[str]):
    """A list to choose from, narrowed by what is typed. Its result is a choice, or what was typed, or empty."""

    DEFAULT_CSS = _CSS.format(name="Picker", width=84)

    def __init__(self, title: str, choices: Sequence[tuple[str, Text]], *, hint: str, free: bool) -> None:
        super().__init__()
        self._title = title
        self._choices = choices
        self._hint = hint
        self._free = free

    def compose(self) -> ComposeResult:
        """The line to type in, and the list."""
        box = Vertical(Input(placeholder=self._hint), OptionList())
        keys = "↑ ↓ choose · enter takes · esc closes"
        box.border_title, box.border_subtitle = self._title, keys
        yield box

    def on_mount(self) -> None:
        """All are shown."""
        self.query_one(OptionList).can_focus = False
        self._narrow("")

    def _narrow(self, typed: str) -> None:
        words = typed.lower().split()
        shown = self.query_one(OptionList)
        shown.clear_options()
        for name, label in self._choices:
            if all(word in f"{name} {label.plain}".lower() for word in words):
                shown.add_option(Option(label, id=name))
        if shown.option_count:
            shown.highlighted = 0

    def on_input_changed(self, event: Input.Changed) -> None:
        """Narrows the list."""
        self._narrow(event.value)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Takes the highlighted one, or what was typed."""
        event.stop()
        self._choose(event.value.strip())

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Takes the one that was clicked on."""
        event.stop()
        self.dismiss(event.option.id or "")

    def _choose(self, typed: str) -> None:
        shown = self.query_one(OptionList)
        if shown.highlighted is not None:
            self.dismiss(shown.get_option_at_index(shown.highlighted).id or "")
        elif self._free and typed:
            self.dismiss(typed)

    def on_key(self, event: events.Key) -> None:
        """Moves in the list, or closes."""
        shown = self.query_one(OptionList)
        match event.key:
            case "escape" | "ctrl+c":
                self.dismiss("")
            case "up":
                shown.action_cursor_up()
            case "down":
                shown.action_cursor_down()
            case "pageup":
                shown.action_page_up()
            case "pagedown":
                shown.action_page_down()
            case _:
                return
        event.stop()
        event.prevent_default()


def history_choices(entries: Sequence[Entry], palette: Palette, now: float) -> list[tuple[str, Text]]:
    """The conversations as lines of a `Picker`."""
    choices: list[tuple[str, Text]] = []
    for entry in entries:
        label = Text(no_wrap=True, overflow="ellipsis")
        label.append(f"{ago(entry.time, now):>9}  ", palette.muted)
        label.append(one_line(entry.title, 120), palette.text)
        choices.append((entry.id, label))
    return choices


def ago(moment: float | None, now: float) -> str:
    """How long ago something was, or the day, where that says more."""
    if moment is None:
        return ""
    past = max(0.0, now - moment)
    if past < 60:
        return "just now"
    if past < 3600:
        return f"{past // 60:.0f} min"
    if past < 86_400:
        return f"{past // 3600:.0f} h"
    return time.strftime("%Y-%m-%d", time.localtime(moment))[2:]
