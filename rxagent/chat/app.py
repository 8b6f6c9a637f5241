"""`ChatApp`: the terminal app. It shows what events tell, and turns keys into calls of the agent; all else is elsewhere.

- The agent runs on the app's own loop; its events come in frames, at most ``RATE`` a second.
- Nothing of the conversation is kept here: what is shown is the fold of the session's events.
"""

import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from pydantic import JsonValue
from reactivex import abc
from rich.text import Text
from textual import events
from textual.app import App, ComposeResult
from textual.binding import Binding
from textual.containers import Vertical

from rxagent.bridges import Frame, on_textual
from rxagent.chat.bars import StatusLine, TopLine, WaitingLines
from rxagent.chat.cells import ThoughtCell
from rxagent.chat.commands import run_command
from rxagent.chat.desk import Desk
from rxagent.chat.look import DARK, LIGHT, PALETTES, Palette, textual_theme
from rxagent.chat.prompt import APP_KEYS, Prompt
from rxagent.chat.question import QuestionPanel, asked
from rxagent.chat.screens import KeysScreen, Picker, history_choices
from rxagent.chat.situation import situation
from rxagent.chat.story import Story
from rxagent.chat.tool_cell import ToolCell
from rxagent.chat.transcript import TranscriptView
from rxagent.chat.welcome import WelcomeCell
from rxagent.engine import Agent, Run
from rxagent.errors import NothingToContinue, RxAgentError
from rxagent.events import AgentEnd, AgentStart, AnyEvent, Interrupted
from rxagent.flow import Fault
from rxagent.messages import UserMessage
from rxagent.models import Model

PERIOD = 1 / 20  # seconds between frames
SLOW_PERIOD = 1 / 10
TICK = 0.1  # seconds between two looks at the clock
SLOW_TICK = 0.4
AGAIN = 2.0  # seconds in which a second ctrl+c quits


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


class ChatApp(App[int]):
    """A conversation with an agent."""

    TITLE = "rxagent"
    ENABLE_COMMAND_PALETTE = False
    CSS = """
    #body { height: 1fr; background: $background; }
    TranscriptView { height: 1fr; }
    """
    BINDINGS = [  # noqa: RUF012 - Textual's way
        Binding(key, action, show=False, priority=key in ("ctrl+c", "ctrl+q")) for key, action in APP_KEYS.items()
    ]

    def __init__(self, desk: Desk, options: Options) -> None:
        super().__init__()
        self.desk = desk
        self.options = options
        self.palette = options.palette
        for palette in PALETTES.values():
            self.register_theme(textual_theme(palette))
        self.theme = self.palette.name
        self.animation_level = "none"
        self.transcript = TranscriptView(self.palette, id="transcript")
        self.story = Story(self.transcript, clock=options.clock)
        self.prompt = Prompt(id="prompt")
        self.question = QuestionPanel(self.palette, id="question")
        self.top = TopLine(id="top")
        self.waiting = WaitingLines(id="waiting")
        self.status = StatusLine(id="status")
        self.agent: Agent | None = None
        self.run_began: float | None = None
        self.outcome = ""
        self._watching: list[abc.DisposableBase] = []
        self._leave_asked = float("-inf")

    def compose(self) -> ComposeResult:
        """From top to bottom."""
        yield self.top
        with Vertical(id="body"):
            yield self.transcript
            yield self.waiting
            yield self.question
            yield self.prompt
        yield self.status

    async def on_mount(self) -> None:
        """Opens the first conversation."""
        self.prompt.focus()
        self.prompt.cursor_blink = not self.options.slow_line
        self.set_interval(SLOW_TICK if self.options.slow_line else TICK, self._tick)
        await self.open(self.options.session)
        if self.options.prompt:
            self.send(self.options.prompt, "now")

    async def on_unmount(self) -> None:
        """Stops what runs."""
        for each in self._watching:
            each.dispose()
        if self.agent is not None and self.agent.is_running:
            self.agent.abort()
            await self.agent.wait_for_idle()

    def on_resize(self) -> None:
        """The lines around the transcript are cut to the width."""
        self.call_after_refresh(self.refresh_bars)

    # -- conversations

    async def open(self, session_id: str | None) -> None:
        """Shows a conversation, new or stored."""
        failure: RxAgentError | None = None
        try:
            agent, log = await self.desk.open(session_id)
        except RxAgentError as error:
            if self.agent is not None:
                self.fault(error)
                return
            failure = error
            agent, log = await self.desk.open()
        await self._close()
        self.agent, self.outcome, self.run_began = agent, "", None
        self.story = Story(self.transcript, clock=self.options.clock)
        period = SLOW_PERIOD if self.options.slow_line else PERIOD
        self._watching = [
            agent.events.pipe(on_textual(self.transcript, period=period)).subscribe(self._frame),
            agent.errors.subscribe(self._observer_failed),
        ]
        if log:
            self.transcript.clear()
            self.story.replay(log)
            self._look_back(log)
        else:
            self._welcome(agent)
        if failure is not None:
            self.fault(failure)
        self.refresh_bars()
        if agent.state.interrupts:
            self._ask()

    async def _close(self) -> None:
        for each in self._watching:
            each.dispose()
        if self.agent is not None:
            self.transcript.clear()
            self.question.close()
            self._focus_prompt()
            await self.desk.leave(self.agent)

    def _welcome(self, agent: Agent) -> None:
        names = tuple(tool.declaration.name for tool in agent.tools)
        self.transcript.add(WelcomeCell(agent.model.name, names, is_demo=self.options.is_demo))

    def _look_back(self, log: list[AnyEvent]) -> None:
        """How the last run of a stored conversation ended, or that it did not."""
        assert self.agent is not None
        for event in reversed(log):
            if isinstance(event, AgentEnd) and not event.origin.call_id:
                self.outcome = event.outcome
                break
        if self.agent.session.progress.run_open:
            self.outcome = "lost"
            self.story.note("!", "the program ended in the middle of this", colour="warning", hint="ctrl+r goes on with it")

    # -- events

    def _frame(self, frame: Frame[AnyEvent]) -> None:
        for event in frame.events:
            if event.origin.call_id:
                continue
            if isinstance(event, AgentStart):
                self.run_began, self.outcome = self.options.clock(), ""
            elif isinstance(event, AgentEnd):
                self.run_began, self.outcome = None, event.outcome
        self.story.play(frame.events)
        self.refresh_bars()
        if any(isinstance(event, Interrupted) and not event.origin.call_id for event in frame.events):
            self._ask()

    def _tick(self) -> None:
        if self.run_began is not None:
            self.story.tick()
            self.refresh_status()

    def refresh_bars(self) -> None:
        """Shows the present state around the transcript."""
        if self.agent is None:
            return
        state = self.agent.state
        self.top.show(self.palette, self.story.title, state.model)
        self.waiting.show(self.palette, state.steering, state.follow_ups)
        self.prompt.has_queue = bool(state.steering or state.follow_ups)
        working = self.agent.is_running
        hint = "steer it — enter now, tab for later, esc stops" if working else "Ask anything"
        if self.prompt.placeholder != hint:
            self.prompt.placeholder = hint
        self.refresh_status()

    def refresh_status(self) -> None:
        """Shows what goes on."""
        if self.agent is not None:
            self.status.show(self.palette, situation(self, self.agent))

    def _observer_failed(self, fault: Fault) -> None:
        self.fault(fault.error)

    def now(self) -> float:
        """The app's clock, in seconds."""
        return self.options.clock()

    def act(self, name: str) -> None:
        """An action by its name, as a key would do it."""
        self.call_next(self.run_action, f"app.{name}")

    def fault(self, error: BaseException) -> None:
        """Shows what went wrong outside of a run."""
        self.story.note("✗", f"{type(error).__name__}: {error}", colour="error")

    # -- the person

    def on_prompt_sent(self, message: Prompt.Sent) -> None:
        """A prompt, steering, a follow-up or a command."""
        if message.text.startswith("/"):
            run_command(self, message.text)
        else:
            self.send(message.text, message.how)

    def send(self, text: str, how: str) -> None:
        """Starts a run, or reaches the one that runs."""
        agent = self.agent
        if agent is None:
            self.prompt.put(text)
            return
        self.transcript.to_end()
        if not agent.is_running:
            self.question.close()
            self.start(lambda: agent.prompt(text))
        elif how == "later":
            agent.follow_up(text)
        else:
            agent.steer(text, interrupt=how == "cut")

    def start(self, begin: Callable[[], Run]) -> None:
        """Starts a run and looks after it."""
        try:
            run = begin()
        except RxAgentError as error:
            self.fault(error)
            return
        self.run_worker(self._look_after(run), exit_on_error=False)

    async def _look_after(self, run: Awaitable[object]) -> None:
        try:
            await run
        except Exception as error:  # the store's, for one: whatever it is, the person is told
            self.fault(error)
        self.refresh_bars()

    def on_prompt_take_back(self) -> None:
        """What is queued comes back into the prompt."""
        if self.agent is not None:
            texts = [message.text for message in self.agent.clear_queues() if isinstance(message, UserMessage)]
            self.prompt.put("\n".join(texts))

    def on_prompt_outward(self) -> None:
        """Into the transcript."""
        self.transcript.focus()

    def on_transcript_view_left(self, message: TranscriptView.Left) -> None:
        """Back from the transcript; what was typed there is written."""
        self._focus_prompt()
        if message.key and not self.question.is_open:
            self.prompt.insert(message.key)

    def on_transcript_view_moved(self) -> None:
        """The end came into view, or went."""
        self.refresh_status()

    def on_paste(self, event: events.Paste) -> None:
        """Pasted where nothing takes it: it is for the prompt."""
        if not self.question.is_open:
            self.prompt.focus()
            self.prompt.post_message(events.Paste(event.text))

    # -- questions

    def _ask(self) -> None:
        assert self.agent is not None
        questions = [
            asked(interrupt, cell.args if (cell := self.story.tool_cell(interrupt.call_id)) is not None else None)
            for interrupt in self.agent.state.interrupts
        ]
        if questions:
            self.prompt.display = False
            self.question.ask(questions)

    def on_question_panel_answered(self, message: QuestionPanel.Answered) -> None:
        """Goes on with the answers."""
        self.desk.approvals.always |= set(message.always)
        self._focus_prompt()
        self._resume(message.answers)

    def on_question_panel_put(self) -> None:
        """The questions wait."""
        self.question.close()
        self._focus_prompt()
        self.refresh_bars()

    def _resume(self, answers: dict[str, JsonValue]) -> None:
        agent = self.agent
        assert agent is not None
        self.transcript.to_end()
        self.start(lambda: agent.resume(answers))

    def _focus_prompt(self) -> None:
        if self.question.is_open:
            self.question.focus()
        else:
            self.prompt.display = True
            self.prompt.focus()

    # -- keys

    def action_stop(self) -> None:
        """Stops the run."""
        if self.agent is not None:
            self.agent.abort()

    def action_interrupt(self) -> None:
        """Copies what is selected; else stops the run, clears the prompt, or leaves when asked twice."""
        selected = self.screen.get_selected_text() or self.prompt.selected_text
        if selected:
            self.copy_to_clipboard(selected)
            self.screen.clear_selection()
            self.notify("copied", timeout=1.5)
        elif self.agent is not None and self.agent.is_running:
            self.agent.abort()
        elif self.prompt.text:
            self.prompt.text = ""
        elif self.options.clock() - self._leave_asked < AGAIN:
            self.exit(0)
        else:
            self._leave_asked = self.options.clock()
            self.notify("ctrl+c again quits", timeout=AGAIN)

    def action_leave(self) -> None:
        """Quits."""
        self.exit(0)

    def action_retry(self) -> None:
        """Asks again, goes on, or puts the open questions again."""
        agent = self.agent
        if agent is None or agent.is_running:
            return
        if agent.state.interrupts:
            self._ask()
        elif agent.session.progress.run_open:
            self._resume({})
        else:
            self.transcript.to_end()
            self.start(lambda: _again(agent))

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

    def action_models(self) -> None:
        """Chooses another model."""
        choices = [(name, Text(name, self.palette.text)) for name in self.options.models()]
        picker = Picker("Model", choices, hint="PROVIDER:NAME", free=True)
        self.push_screen(picker, lambda name: self.use_model(name or ""))

    def use_model(self, name: str) -> None:
        """Another model answers from here on."""
        if not name or self.agent is None:
            return
        try:
            self.agent.model = self.options.resolve(name)
        except RxAgentError as error:
            self.fault(error)
        self.refresh_bars()

    async def action_history(self) -> None:
        """Chooses a conversation of before."""
        if self._busy():
            return
        entries = await self.desk.history()
        here = self.agent.session_id if self.agent is not None else ""
        choices = history_choices([entry for entry in entries if entry.id != here], self.palette, time.time())
        picker = Picker("Conversations", choices, hint="search", free=False)
        self.push_screen(picker, self._chosen)

    async def _chosen(self, session_id: str | None) -> None:
        if session_id:
            await self.open(session_id)

    async def action_new(self) -> None:
        """Begins a new conversation."""
        if not self._busy():
            await self.open(None)

    def _busy(self) -> bool:
        if self.agent is not None and self.agent.is_running:
            self.notify("esc stops the run first", timeout=2)
            return True
        return False


def _again(agent: Agent) -> Run:
    try:
        return agent.retry()
    except NothingToContinue:
        return agent.continue_()


def _fold(cells: Sequence[ThoughtCell | ToolCell]) -> None:
    """Unfolds all if one is folded, else folds all."""
    unfold = any(cell.folded for cell in cells)
    for cell in cells:
        if cell.folded == unfold:
            cell.toggle()
