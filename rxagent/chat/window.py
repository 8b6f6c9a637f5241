"""`ChatWindow`: what is on the screen and how it is read, whoever the conversation is with."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from textual import events
from textual.app import App, ComposeResult
from textual.binding import Binding
from textual.containers import Vertical

from rxagent.chat.bars import StatusLine, TopLine, WaitingLines
from rxagent.chat.cells import ThoughtCell
from rxagent.chat.look import DARK, LIGHT, PALETTES, Palette, textual_theme
from rxagent.chat.prompt import APP_KEYS, Prompt
from rxagent.chat.question import QuestionPanel
from rxagent.chat.screens import KeysScreen
from rxagent.chat.story import Story
from rxagent.chat.tool_cell import ToolCell
from rxagent.chat.transcript import TranscriptView
from rxagent.errors import told
from rxagent.models import Model


@dataclass(frozen=True, slots=True)
class Options:
    """How the app begins.

    ``resolve``: a model by the name a person gives; ``models``: names to offer; ``slow_line``: fewer frames, as over ssh.
    """

    resolve: Callable[[str], Model]
    models: Callable[[], list[str]] = list
    palette: Palette = DARK
    prompt: str = ""
    session: str | None = None
    is_demo: bool = False
    slow_line: bool = False
    clock: Callable[[], float] = field(default=time.monotonic)


class ChatWindow(App[int]):
    """The widgets, the colours, and the keys that only change what is seen."""

    TITLE = "rxagent"
    ENABLE_COMMAND_PALETTE = False
    VERTICAL_BREAKPOINTS = [(0, "-low"), (16, "-high")]  # noqa: RUF012 - Textual's way
    CSS = """
    #body { height: 1fr; background: $background; }
    TranscriptView { height: 1fr; }
    .-low QuestionPanel { max-height: 100%; }
    .-low QuestionPanel VerticalScroll { max-height: 2; }
    .-low QuestionPanel #keys { margin-top: 0; }
    """
    BINDINGS = [  # noqa: RUF012 - Textual's way
        Binding(key, action, show=False, priority=key in ("ctrl+c", "ctrl+q")) for key, action in APP_KEYS.items()
    ]

    def __init__(self, options: Options) -> None:
        super().__init__()
        self.options = options
        self.palette = options.palette
        for palette in PALETTES.values():
            self.register_theme(textual_theme(palette))
        self.theme = self.palette.name
        self.animation_level = "none"
        self.transcript = TranscriptView(self.palette, id="transcript")
        self.story = Story(self.transcript, clock=options.clock)
        self.prompt = Prompt(id="prompt")
        self.prompt.cursor_blink = not options.slow_line
        self.question = QuestionPanel(self.palette, id="question")
        self.top = TopLine(id="top")
        self.waiting = WaitingLines(id="waiting")
        self.status = StatusLine(id="status")

    def compose(self) -> ComposeResult:
        """From top to bottom."""
        yield self.top
        with Vertical(id="body"):
            yield self.transcript
            yield self.waiting
            yield self.question
            yield self.prompt
        yield self.status

    def on_resize(self) -> None:
        """The lines around the transcript are cut to the width."""
        self.call_after_refresh(self.refresh_bars)

    def refresh_bars(self) -> None:
        """Shows the present state around the transcript."""

    def now(self) -> float:
        """The app's clock, in seconds."""
        return self.options.clock()

    def act(self, name: str) -> None:
        """An action by its name, as a key would do it."""
        self.call_next(self.run_action, f"app.{name}")

    def fault(self, error: BaseException) -> None:
        """Shows what went wrong outside of a run."""
        self.story.note("✗", told(error), colour="error")

    # -- where keys and pastes go

    def focus_prompt(self) -> None:
        """The keyboard is the prompt's, or the open question's."""
        if self.question.is_open:
            self.question.focus()
        else:
            self.prompt.display = True
            self.prompt.focus()

    def on_prompt_outward(self) -> None:
        """Into the transcript."""
        self.transcript.focus()

    def on_transcript_view_left(self, message: TranscriptView.Left) -> None:
        """Back from the transcript; what was typed there is written."""
        self.focus_prompt()
        if message.key and not self.question.is_open:
            self.prompt.insert(message.key)

    def on_paste(self, event: events.Paste) -> None:
        """Pasted where nothing takes it: it is for the prompt."""
        if not self.question.is_open:
            self.prompt.focus()
            self.prompt.post_message(events.Paste(event.text))

    # -- reading

    def action_page(self, by: int) -> None:
        """Scrolls by a window."""
        self.transcript.scroll_relative(y=by * max(1, self.transcript.size.height - 2), animate=False)

    def action_line(self, by: int) -> None:
        """Scrolls by a line."""
        self.transcript.scroll_relative(y=by, animate=False)

    def action_edge(self, by: int) -> None:
        """Scrolls to the beginning or the end."""
        if by < 0:
            self.transcript.scroll_to(y=0, animate=False)
        else:
            self.transcript.to_end()

    def action_thoughts(self) -> None:
        """Folds or unfolds all thoughts."""
        _fold(self.story.thoughts())

    def action_results(self) -> None:
        """Folds or unfolds all results."""
        _fold(self.story.tools())

    def action_theme(self) -> None:
        """Light or dark."""
        self.palette = LIGHT if self.palette.dark else DARK
        self.theme = self.palette.name
        self.question.palette = self.palette
        self.transcript.use(self.palette)
        self.refresh_bars()

    def action_keys(self) -> None:
        """Shows the keys."""
        self.push_screen(KeysScreen(self.palette))


def _fold(cells: Sequence[ThoughtCell | ToolCell]) -> None:
    """Unfolds all if one is folded, else folds all."""
    unfold = any(cell.folded for cell in cells)
    for cell in cells:
        if cell.folded == unfold:
            cell.toggle()
