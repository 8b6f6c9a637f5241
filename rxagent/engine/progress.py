"""`Progress`: what a run has begun and not ended, as a fold of its events.

1. The loop closes what this says is open, whatever happened.
2. A resumed run, and one whose process died, takes up what this says is unfinished: from a stored log by the same fold.
3. Only events of the agent's own path count, but for what its children used.
"""

from dataclasses import dataclass, field
from typing import Literal

from pydantic import JsonValue

from rxagent.engine.asking import asked_in
from rxagent.events import agent as e
from rxagent.messages import AnyMessage, AssistantMessage, JsonObject, ToolCall, ToolResult, ToolResultMessage, Usage

Queue = Literal["steering", "follow_ups"]


@dataclass(slots=True)
class CallProgress:
    """One call of the present turn. Neither ``started`` nor ``result``: not begun.

    ``lost``: it was begun by a process that died, and has been ended as such. ``started_at``: seq of its latest start.
    ``asked``: the questions it has asked.
    """

    call: ToolCall
    started: bool = False
    started_at: int = -1
    interrupted: bool = False
    lost: bool = False
    asked: tuple[e.Interrupt, ...] = ()
    args: JsonObject | str = field(default_factory=dict[str, JsonValue])
    result: ToolResult | None = None
    answered: ToolResultMessage | None = None

    @property
    def open(self) -> bool:
        """Started and not ended."""
        return self.started and self.result is None and not self.interrupted


@dataclass(slots=True)
class Progress:
    """The open ends of one agent's latest run.

    ``opened``: a message other than an answer that has begun. ``taken``: queued messages taken in by the present
    turn, by queue. ``went_on``: the last turn's results ask for another one. ``stopped``: the run has asked its
    questions and only its end is to come. ``speaker`` and ``successor``: names of the agent that has the run, and
    of the one that takes over after this turn.
    """

    path: tuple[str, ...]
    speaker: str = ""
    successor: str | None = None
    began_at: int = -1
    run_id: str = ""
    run_open: bool = False
    turn: int = -1
    turn_open: bool = False
    streaming: bool = False
    attempts: int = 0
    opened: AnyMessage | None = None
    taken: list[Queue] = field(default_factory=list[Queue])
    queued: dict[str, Queue] = field(default_factory=dict[str, Queue])
    message: AssistantMessage | None = None
    calls: dict[str, CallProgress] = field(default_factory=dict[str, CallProgress])
    inputs: list[AnyMessage] = field(default_factory=list[AnyMessage])
    appended: list[AnyMessage] = field(default_factory=list[AnyMessage])
    usage: Usage = field(default_factory=Usage)
    resumed: bool = False
    answers: dict[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    cancelled: set[str] = field(default_factory=set[str])
    interrupts: tuple[e.Interrupt, ...] = ()
    settled: tuple[tuple[e.Interrupt, JsonValue], ...] = ()
    interrupted_at: int | None = None
    stopped: bool = False
    went_on: bool = True
    outcome: e.Outcome | None = None
    error: e.ErrorInfo | None = None

    def apply(self, event: e.AnyEvent) -> None:  # noqa: C901, PLR0912 - one case per event that opens or closes something
        """Takes one more event in. Updates of messages and tools change nothing."""
        if event.origin.path != self.path:
            if isinstance(event, e.MessageEnd) and event.origin.path[: len(self.path)] == self.path:
                self._count(event.message)
            return
        match event:
            case e.AgentStart():
                self._begin(event)
            case e.TurnStart():
                self.turn, self.turn_open, self.attempts, self.taken = event.turn, True, 0, []
                self.speaker = event.origin.agent
                if self.successor == self.speaker:
                    self.successor = None
                if not (self.resumed and event.turn == 0):
                    self.message, self.calls = None, {}
            case e.MessageStart():
                self.streaming = isinstance(event.message, AssistantMessage)
                self.opened = None if self.streaming else event.message
            case e.ModelRetry():
                self.streaming, self.attempts = False, event.attempt
            case e.MessageEnd():
                self._message(event.message)
            case e.ToolStart():
                if (call := self.calls.get(event.call_id)) is not None:
                    call.started, call.started_at, call.args = True, event.seq, event.args
                    call.interrupted, call.lost, call.asked = False, False, ()
            case e.ToolEnd():
                if (call := self.calls.get(event.call_id)) is not None:
                    call.interrupted, call.args = event.interrupted, event.args
                    call.lost = event.interrupted and event.is_error
                    call.asked = asked_in(event.result) if event.interrupted else ()
                    call.result = None if event.interrupted else event.result
            case e.TurnEnd():
                self.turn_open, self.went_on = False, self._goes_on(event)
            case e.Interrupted():
                self.interrupts, self.interrupted_at, self.stopped = event.interrupts, event.seq, True
            case e.Handoff():
                self.successor = event.target
            case e.QueueChanged():
                self.queued = dict.fromkeys((m.id for m in event.steering), "steering")
                self.queued.update(dict.fromkeys((m.id for m in event.follow_ups), "follow_ups"))
            case e.AgentEnd():
                self.run_open, self.turn_open, self.streaming = False, False, False
                self.outcome, self.error, self.opened = event.outcome, event.error, None
            case e.SessionReset():
                self._forget()
                self.inputs, self.appended, self.queued, self.outcome = [], [], {}, None
            case _:
                pass

    @property
    def next_speaker(self) -> str:
        """Name of the agent that acts next; empty before the first run."""
        waiting = self.turn_open or bool(self.unanswered)
        return self.speaker if waiting or self.successor is None else self.successor

    @property
    def unanswered(self) -> list[CallProgress]:
        """The calls of the latest answer whose result is not in the transcript."""
        return [call for call in self.calls.values() if call.answered is None]

    @property
    def results(self) -> tuple[ToolResultMessage, ...]:
        """The result messages of the present turn, in call order."""
        return tuple(call.answered for call in self.calls.values() if call.answered is not None)

    def _begin(self, event: e.AgentStart) -> None:
        self.run_id, self.run_open, self.turn, self.outcome, self.error = event.origin.run_id, True, -1, None, None
        self.began_at = event.seq
        self.stopped, self.opened, self.speaker, self.went_on = False, None, event.origin.agent, True
        self.inputs, self.appended, self.usage = list(event.input), [], Usage()
        self.resumed = event.resumes is not None
        if not self.resumed:
            self._forget()
        self.answers.update(event.answers)
        self.cancelled.update(event.cancelled)
        answered = tuple((i, event.answers[i.id]) for i in self.interrupts if i.id in event.answers)
        self.settled = (*self.settled, *answered)
        self.interrupts = tuple(i for i in self.interrupts if i.id not in self.answers and i.id not in self.cancelled)

    def _goes_on(self, turn: e.TurnEnd) -> bool:
        """Whether the results of a turn are to be answered."""
        if turn.message is None:
            return True
        ends = [call.result is not None and call.result.terminate for call in self.calls.values()]
        exits = any(call.result is not None and call.result.action for call in self.calls.values())
        return bool(turn.tool_results) and not all(ends) and not exits and turn.message.stop_reason != "content_filter"

    def _forget(self) -> None:
        self.message, self.calls, self.interrupts, self.interrupted_at = None, {}, (), None
        self.answers, self.cancelled, self.settled = {}, set(), ()

    def _message(self, message: AnyMessage) -> None:
        self.appended.append(message)
        self.opened = None
        if (queue := self.queued.pop(message.id, None)) is not None:
            self.taken.append(queue)
        if self.inputs:
            self.inputs = [waiting for waiting in self.inputs if waiting.id != message.id]
        if isinstance(message, AssistantMessage):
            self.streaming, self.message = False, message
            self.calls = {call.id: CallProgress(call) for call in message.tool_calls}
            self._count(message)
        elif isinstance(message, ToolResultMessage) and (call := self.calls.get(message.call_id)) is not None:
            call.answered = message

    def _count(self, message: AnyMessage) -> None:
        if isinstance(message, AssistantMessage) and message.usage is not None:
            self.usage = self.usage + message.usage
