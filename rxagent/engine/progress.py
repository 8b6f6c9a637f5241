"""`Progress`: what a run has begun and not ended, as a fold of its events.

The loop closes what this says is open, whatever happened; a resumed run takes up what this says is
unfinished, from a stored log by the same fold. Only events of the agent's own path count.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from pydantic import JsonValue

from rxagent.events import agent as e
from rxagent.messages import AnyMessage, AssistantMessage, JsonObject, ToolCall, ToolResult, ToolResultMessage, Usage


@dataclass(slots=True)
class CallProgress:
    """One call of the present turn. Neither ``started`` nor ``result``: not begun."""

    call: ToolCall
    started: bool = False
    interrupted: bool = False
    args: JsonObject | str = field(default_factory=dict[str, JsonValue])
    result: ToolResult | None = None
    answered: ToolResultMessage | None = None

    @property
    def unknown(self) -> bool:
        """Started, and nobody can tell how it ended."""
        return self.started and self.result is None and not self.interrupted


@dataclass(slots=True)
class Progress:
    """The open ends of one agent's latest run."""

    path: tuple[str, ...]
    run_id: str = ""
    run_open: bool = False
    turn: int = -1
    turn_open: bool = False
    streaming: bool = False
    message: AssistantMessage | None = None
    calls: dict[str, CallProgress] = field(default_factory=dict[str, CallProgress])
    inputs: list[AnyMessage] = field(default_factory=list[AnyMessage])
    appended: list[AnyMessage] = field(default_factory=list[AnyMessage])
    usage: Usage = field(default_factory=Usage)
    resumed: bool = False
    answers: dict[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    cancelled: set[str] = field(default_factory=set[str])
    interrupts: tuple[e.Interrupt, ...] = ()
    interrupted_at: int | None = None
    outcome: e.Outcome | None = None

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
                self.turn, self.turn_open = event.turn, True
                if not (self.resumed and event.turn == 0):
                    self.message, self.calls = None, {}
            case e.MessageStart():
                self.streaming = isinstance(event.message, AssistantMessage)
            case e.ModelRetry():
                self.streaming = False
            case e.MessageEnd():
                self._message(event.message)
            case e.ToolStart():
                if (call := self.calls.get(event.call_id)) is not None:
                    call.started, call.interrupted, call.args = True, False, event.args
            case e.ToolEnd():
                if (call := self.calls.get(event.call_id)) is not None:
                    call.interrupted, call.args = event.interrupted, event.args
                    call.result = None if event.interrupted else event.result
            case e.TurnEnd():
                self.turn_open = False
            case e.Interrupted():
                self.interrupts, self.interrupted_at = event.interrupts, event.seq
            case e.AgentEnd():
                self.run_open, self.turn_open, self.streaming = False, False, False
                self.outcome = event.outcome
            case e.SessionReset():
                self._forget()
            case _:
                pass

    @property
    def unanswered(self) -> list[CallProgress]:
        """The calls of the latest answer whose result is not in the transcript."""
        return [call for call in self.calls.values() if call.answered is None]

    @property
    def results(self) -> tuple[ToolResultMessage, ...]:
        """The result messages of the present turn, in call order."""
        return tuple(call.answered for call in self.calls.values() if call.answered is not None)

    def _begin(self, event: e.AgentStart) -> None:
        self.run_id, self.run_open, self.turn, self.outcome = event.origin.run_id, True, -1, None
        self.inputs, self.appended, self.usage = list(event.input), [], Usage()
        self.resumed = event.resumes is not None
        if not self.resumed:
            self._forget()
        self.answers.update(event.answers)
        self.cancelled.update(event.cancelled)
        self.interrupts = tuple(i for i in self.interrupts if i.id not in self.answers and i.id not in self.cancelled)

    def _forget(self) -> None:
        self.message, self.calls, self.interrupts, self.interrupted_at = None, {}, (), None
        self.answers, self.cancelled = {}, set()

    def _message(self, message: AnyMessage) -> None:
        self.appended.append(message)
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


def progress_of(events: Iterable[e.AnyEvent], path: tuple[str, ...]) -> Progress:
    """The progress after a log, or any prefix of one."""
    progress = Progress(path)
    for event in events:
        progress.apply(event)
    return progress
