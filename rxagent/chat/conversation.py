"""`Conversation`: the window's half that shows what an agent does: opens sessions, plays their events, asks their questions.

- The agent runs on the app's own loop; its events come in frames, at most one per ``PERIOD``.
- Nothing of the conversation is kept here: what is shown is the fold of the session's events.
"""

from reactivex import abc

from rxagent.bridges import Frame, on_textual
from rxagent.chat.desk import Desk
from rxagent.chat.question import asked
from rxagent.chat.situation import situation
from rxagent.chat.story import Story
from rxagent.chat.welcome import WelcomeCell
from rxagent.chat.window import ChatWindow, Options
from rxagent.engine import Agent
from rxagent.errors import RxAgentError
from rxagent.events import AgentEnd, AgentStart, AnyEvent, Interrupted
from rxagent.flow import Fault

PERIOD = 1 / 20  # seconds between frames
SLOW_PERIOD = 1 / 10
CAPACITY = 1024  # events of a frame: more of them hold the run, not the keyboard


class Conversation(ChatWindow):
    """Shows one conversation at a time."""

    def __init__(self, desk: Desk, options: Options) -> None:
        super().__init__(options)
        self.desk = desk
        self.agent: Agent | None = None
        self.run_began: float | None = None
        self.outcome = ""
        self._watching: list[abc.DisposableBase] = []

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
            agent.events.pipe(on_textual(self.transcript, period=period, capacity=CAPACITY)).subscribe(self._frame),
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
            self.ask()

    async def _close(self) -> None:
        for each in self._watching:
            each.dispose()
        if self.agent is not None:
            self.transcript.clear()
            self.question.close()
            self.focus_prompt()
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
            self.ask()

    def tick(self) -> None:
        """Shows how long it takes."""
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

    def ask(self) -> None:
        """Puts the questions that wait for an answer."""
        assert self.agent is not None
        questions = [asked(interrupt, self.story.arguments_of(interrupt)) for interrupt in self.agent.state.interrupts]
        if questions:
            self.prompt.display = False
            self.question.ask(questions)

    async def stop(self) -> None:
        """Stops what runs, and listens no more."""
        for each in self._watching:
            each.dispose()
        if self.agent is not None and self.agent.is_running:
            self.agent.abort()
            await self.agent.wait_for_idle()
