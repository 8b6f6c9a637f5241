"""`ChatApp`: the terminal app: turns what the person types and presses into calls of the agent. `Conversation` shows the rest."""

import time
from collections.abc import Awaitable, Callable

from pydantic import JsonValue
from rich.text import Text
from textual.screen import ModalScreen

from rxagent.chat.commands import is_command, run_command
from rxagent.chat.conversation import Conversation
from rxagent.chat.desk import Desk
from rxagent.chat.prompt import Prompt
from rxagent.chat.question import QuestionPanel
from rxagent.chat.screens import Picker, history_choices
from rxagent.chat.window import Options
from rxagent.engine import Agent, Run
from rxagent.errors import NothingToContinue, RxAgentError, WrongSeq
from rxagent.messages import UserMessage

TICK = 0.1  # seconds between two looks at the clock
SLOW_TICK = 0.4
AGAIN = 2.0  # seconds in which a second ctrl+c quits


class ChatApp(Conversation):
    """A conversation with an agent."""

    def __init__(self, desk: Desk, options: Options) -> None:
        super().__init__(desk, options)
        self._leave_asked = float("-inf")

    async def on_mount(self) -> None:
        """Opens the first conversation."""
        self.prompt.focus()
        self.set_interval(SLOW_TICK if self.options.slow_line else TICK, self.tick)
        await self.open(self.options.session)
        if self.options.prompt:
            self.send(self.options.prompt, "now")

    async def on_unmount(self) -> None:
        """Stops what runs."""
        await self.stop()

    # -- the person

    def on_prompt_sent(self, message: Prompt.Sent) -> None:
        """A prompt, steering, a follow-up or a command."""
        if is_command(message.text):
            if not run_command(self, message.text):
                self.prompt.put(message.text)
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
            self.start(lambda: agent.prompt(text), text)
        elif how == "later":
            agent.follow_up(text)
        else:
            agent.steer(text, interrupt=how == "cut")

    def start(self, begin: Callable[[], Run], text: str = "") -> None:
        """Starts a run and looks after it; ``text`` is what the person said."""
        try:
            run = begin()
        except RxAgentError as error:
            self.fault(error)
            return
        self.run_worker(self._look_after(run, text), exit_on_error=False)

    async def _look_after(self, run: Awaitable[object], text: str) -> None:
        try:
            await run
        except WrongSeq:
            assert self.agent is not None
            await self.open(self.agent.session_id)
            self.story.note("!", "another program went on with this conversation, see above", colour="warning", hint="send again")
            if not self.prompt.text:
                self.prompt.put(text)
        except Exception as error:  # the store's, for one: whatever it is, the person is told
            self.fault(error)
        self.refresh_bars()

    def on_prompt_take_back(self) -> None:
        """What is queued comes back into the prompt."""
        if self.agent is not None:
            texts = [message.text for message in self.agent.clear_queues() if isinstance(message, UserMessage)]
            self.prompt.put("\n".join(texts))

    def on_cell_column_moved(self) -> None:
        """The end came into view, or went."""
        self.refresh_status()

    # -- questions

    def on_question_panel_answered(self, message: QuestionPanel.Answered) -> None:
        """Goes on with the answers."""
        self.desk.approvals.always |= set(message.always)
        self.focus_prompt()
        self._resume(message.answers)

    def on_question_panel_put(self) -> None:
        """The questions wait."""
        self.question.close()
        self.focus_prompt()
        self.refresh_bars()

    def _resume(self, answers: dict[str, JsonValue]) -> None:
        agent = self.agent
        assert agent is not None
        self.transcript.to_end()
        self.start(lambda: agent.resume(answers))

    # -- keys

    def action_stop(self) -> None:
        """Stops the run."""
        if self.agent is not None:
            self.agent.abort()

    def action_interrupt(self) -> None:
        """Copies what is selected; else stops the run, clears the prompt, or leaves when asked twice."""
        if isinstance(self.screen, ModalScreen):
            self.pop_screen()
            return
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
            self.ask()
        elif agent.session.progress.run_open:
            self._resume({})
        else:
            self.transcript.to_end()
            self.start(lambda: _again(agent))

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
        try:
            entries = await self.desk.history()
        except RxAgentError as error:
            self.fault(error)
            return
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
