"""`Story`: a session's events as cells of the transcript; the same for what happens now and for what a store kept."""

import time
from collections.abc import Callable, Iterable

from rxagent.chat.answer import Answer
from rxagent.chat.cells import NoticeCell, ThoughtCell, UserCell
from rxagent.chat.text import one_line, seconds
from rxagent.chat.tool_cell import ToolCell, as_text
from rxagent.chat.transcript import TranscriptView
from rxagent.events import (
    AgentEnd,
    AgentStart,
    AnyEvent,
    ConfigChanged,
    Handoff,
    Interrupt,
    MessageEnd,
    MessageStart,
    MessageUpdate,
    ModelRetry,
    SessionReset,
    SessionStart,
    ToolEnd,
    ToolStart,
    ToolUpdate,
)
from rxagent.messages import AnyMessage, AssistantMessage, JsonObject, SystemMessage, ToolResultMessage, UserMessage

RETRY_HINT = "ctrl+r asks again; what was said so far stays"


class Story:
    """Takes events, keeps the view's cells up to date. ``clock``: seconds, for the time that tools take."""

    def __init__(self, view: TranscriptView, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._view = view
        self._clock = clock
        self._answer: Answer | None = None
        self._tools: dict[str, ToolCell] = {}
        self._running: dict[str, ToolCell] = {}
        self._model = ""
        self._retry: NoticeCell | None = None
        self.title = ""

    # -- what the app asks

    @property
    def running(self) -> tuple[str, ...]:
        """Names of the tools that run."""
        return tuple(cell.name for cell in self._running.values())

    @property
    def is_answering(self) -> bool:
        """Whether a model writes."""
        return self._answer is not None

    def arguments_of(self, interrupt: Interrupt) -> JsonObject | str | None:
        """The arguments of the call that asks; None for a call of an agent below, which has no cell."""
        cell = self._tools.get(interrupt.call_id)
        return cell.args if cell is not None and cell.name == interrupt.tool_name else None

    def thoughts(self) -> list[ThoughtCell]:
        """The cells of reasoning."""
        return [cell for cell in self._view.cells if isinstance(cell, ThoughtCell)]

    def tools(self) -> list[ToolCell]:
        """The cells of calls."""
        return [cell for cell in self._view.cells if isinstance(cell, ToolCell)]

    def tick(self) -> None:
        """Time passes for what is under way."""
        for cell in self._running.values():
            cell.tick()
        if self._answer is not None:
            self._answer.tick()

    def note(self, sign: str, text: str, *, colour: str = "muted", hint: str = "") -> NoticeCell:
        """A remark at the end."""
        cell = NoticeCell(sign, text, colour=colour, hint=hint)
        self._view.add(cell)
        return cell

    # -- events

    def play(self, events: Iterable[AnyEvent]) -> None:
        """Takes a batch of events and brings the view up to date."""
        for event in events:
            if event.origin.call_id:
                self._below(event)
            else:
                self._take(event)
        if self._answer is not None:
            self._answer.show()

    def replay(self, log: Iterable[AnyEvent]) -> None:
        """Takes a stored log; the pieces of answers are left out, their ends have it all."""
        self.play(event for event in log if not isinstance(event, MessageUpdate))

    def _take(self, event: AnyEvent) -> None:  # noqa: C901, PLR0912 - one case per event
        match event:
            case MessageUpdate():
                if self._answer is not None:
                    self._answer.take(event.delta)
            case MessageStart(message=AssistantMessage()):
                self._forget_retry()
                self._answer = Answer(self._view, clock=self._clock)
            case MessageEnd():
                self._message(event.message)
            case ModelRetry():
                self._again(event)
            case ToolStart():
                cell = self._tools.get(event.call_id) or self._new_tool(event.call_id, event.tool_name)
                cell.begin(event.args)
                self._running[event.call_id] = cell
            case ToolUpdate():
                if cell := self._tools.get(event.call_id):
                    cell.say(event.partial)
            case ToolEnd():
                self._tool_end(event)
            case Handoff():
                self.note("⇒", f"{event.source} hands over to {event.target}")
            case AgentStart():
                self._forget_retry()
            case AgentEnd():
                self._end(event)
            case SessionStart() | ConfigChanged():
                self._configured(event)
            case SessionReset():
                self._view.clear()
                self._tools.clear()
                self.title = ""
            case _:
                pass

    def _configured(self, event: SessionStart | ConfigChanged) -> None:
        if isinstance(event, SessionStart):
            for message in event.messages:
                self._message(message)
        elif event.config.model != self._model:
            self.note("⇄", f"{event.config.model} answers from here on")
        self._model = event.config.model

    def _message(self, message: AnyMessage) -> None:
        match message:
            case AssistantMessage():
                answer = self._answer or Answer(self._view, clock=self._clock)
                self._answer = None
                self._tools |= answer.end(message)
            case UserMessage():
                images = sum(part.type == "image" for part in message.content)
                self.title = self.title or one_line(message.text, 60)
                self._view.add(UserCell(message.text, f"{images} image{'s' * (images > 1)}" if images else ""))
            case SystemMessage():
                self.note("§", message.text)
            case ToolResultMessage():
                self._result(message)
            case _:
                self.note("·", f"{message.role} message")

    def _result(self, message: ToolResultMessage) -> None:
        """A call's answer for the model; its cell has it already, unless the call never ran here."""
        cell = self._tools.get(message.call_id) or self._new_tool(message.call_id, message.tool_name)
        if cell.phase not in ("done", "failed"):
            cell.result, cell.summary, cell.details = message.text, message.summary or "", message.details
            cell.end("failed" if message.is_error else "done", took=0.0)

    def _new_tool(self, call_id: str, name: str) -> ToolCell:
        cell = self._tools[call_id] = ToolCell(name, clock=self._clock)
        self._view.add(cell)
        return cell

    def _tool_end(self, event: ToolEnd) -> None:
        self._running.pop(event.call_id, None)
        cell = self._tools.get(event.call_id) or self._new_tool(event.call_id, event.tool_name)
        cell.args = event.args
        result = event.result
        images = sum(part.type == "image" for part in result.content)
        cell.result = result.text + ("\n" if result.text and images else "") + "[image]" * images
        cell.summary, cell.details = result.summary or "", result.details
        cell.end("asking" if event.interrupted else "failed" if event.is_error else "done", took=event.duration)

    def _again(self, event: ModelRetry) -> None:
        if self._answer is not None:
            self._answer.withdraw()
            self._answer = None
        self._forget_retry()
        text = f"{event.error}\nattempt {event.attempt + 1} in {seconds(event.delay)}, by {event.model}"
        self._retry = self.note("↻", text, colour="warning")

    def _forget_retry(self) -> None:
        """The attempt came through to an answer or an end: the remark has done its work."""
        if self._retry is not None:
            self._view.drop([self._retry])
            self._retry = None

    def _end(self, event: AgentEnd) -> None:
        self._forget_retry()
        if self._answer is not None:  # an end that no message end came before
            self._answer.withdraw()
            self._answer = None
        for cell in self._running.values():
            cell.end("void", took=cell.elapsed)
        self._running.clear()
        error = event.error
        match event.outcome:
            case "failed":
                kind = f"{error.kind.replace('_', ' ')}: " if error else ""
                self.note("✗", f"{kind}{error or 'the run failed'}", colour="error", hint=RETRY_HINT)
            case "limit":
                self.note("!", f"{error or 'a limit was reached'}", colour="warning", hint="ctrl+r goes on")
            case "aborted":
                reason = f": {error}" if error else ""
                self.note("■", f"stopped{reason}", colour="warning", hint=RETRY_HINT)
            case "completed" | "interrupted":
                pass

    # -- agents that run as tools

    def _below(self, event: AnyEvent) -> None:
        """An agent below did something: told in the cell of the call it works for, or of the one that is above that."""
        cell = self._tools.get(event.origin.call_id)
        if cell is None:
            return
        who = event.origin.agent
        match event:
            case ToolStart():
                self._tools.setdefault(event.call_id, cell)
                args = as_text(event.args)
                cell.add_trail(f"{who} → {event.tool_name}({one_line(args, 120)})")
            case ToolEnd():
                sign = "?" if event.interrupted else "✗" if event.is_error else "←"
                cell.add_trail(f"{who} {sign} {event.tool_name}: {one_line(event.result.summary or event.result.text, 120)}")
            case MessageEnd(message=AssistantMessage() as message) if message.text:
                cell.add_trail(f"{who}: {one_line(message.text, 400)}")
            case ModelRetry():
                cell.add_trail(f"{who} ↻ {event.error}")
            case _:
                pass
