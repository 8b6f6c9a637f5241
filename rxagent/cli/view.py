"""The text mode: a run's events as text, on a terminal or in a pipe."""

import time
from collections.abc import Callable

from reactivex import Observable

from rxagent.cli.once import Once
from rxagent.cli.terminal import Terminal
from rxagent.cli.wording import arguments_of, first_line, seconds
from rxagent.events import (
    AgentEnd,
    AnyEvent,
    Handoff,
    Interrupted,
    MessageEnd,
    ModelRetry,
    ToolEnd,
    ToolStart,
    ToolUpdate,
)
from rxagent.messages import AssistantMessage
from rxagent.operators import Withdrawn, text_deltas, thinking_deltas

WITHDRAWN = "[withdrawn; the answer starts again]"
_PROGRESS_PERIOD = 0.1  # seconds between two lines of one tool's progress


class TextView:
    """Shows what agents do: the answer on stdout, thoughts, tools and faults on stderr."""

    def __init__(self, events: Observable[AnyEvent], terminal: Terminal, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._terminal = terminal
        self._clock = clock
        self._once = Once(terminal.answer.write, self._restart)
        self._told: dict[str, float] = {}
        # in this order: the last piece of an answer comes before its end
        events.pipe(thinking_deltas()).subscribe(self._thought)
        events.pipe(text_deltas()).subscribe(self._text)
        events.subscribe(self._event)

    def _text(self, piece: str) -> None:
        if isinstance(piece, Withdrawn):
            self._once.withdraw()
        else:
            self._once.piece(piece)

    def _thought(self, piece: str) -> None:
        if not isinstance(piece, Withdrawn):
            self._terminal.thought(piece)

    def _restart(self, void: str) -> None:
        # what was written can't be unwritten: it is marked, where it stands
        self._terminal.answer.line(WITHDRAWN, "dim")

    def _event(self, event: AnyEvent) -> None:
        by = "  " * (len(event.origin.path) - 1) if event.origin.call_id else ""
        match event:
            case MessageEnd(message=AssistantMessage() as message) if not by:
                self._once.end(failed=message.stop_reason in ("error", "aborted"))
                self._terminal.answer.fresh()
                self._terminal.remarks.fresh()
            case ToolStart():
                self._terminal.note(f"{by}→ {event.tool_name}({arguments_of(event.args)})")
            case ToolUpdate():
                self._progress(event, by)
            case ToolEnd():
                self._tool_end(event, by)
            case ModelRetry():
                self._terminal.note(
                    f"{by}↻ {event.error}; attempt {event.attempt + 1} in {seconds(event.delay)} by {event.model}"
                )
            case Handoff():
                self._terminal.note(f"⇒ {event.source} hands over to {event.target}")
            case Interrupted() if not by:
                self._questions(event)
            case AgentEnd() if not by:
                self._end(event)
            case _:
                pass

    def _progress(self, event: ToolUpdate, by: str) -> None:
        now = self._clock()
        if now - self._told.get(event.call_id, -1.0) >= _PROGRESS_PERIOD:
            self._told[event.call_id] = now
            self._terminal.note(f"{by}  {event.tool_name}: {first_line(event.partial)}")

    def _tool_end(self, event: ToolEnd, by: str) -> None:
        self._told.pop(event.call_id, None)
        if event.interrupted:
            self._terminal.note(f"{by}? {event.tool_name} waits for an answer")
            return
        sign, style = ("✗", "red") if event.is_error else ("←", "dim")
        took = f"  ({seconds(event.duration)})" if event.duration >= 0.1 else ""
        self._terminal.note(f"{by}{sign} {event.tool_name}: {first_line(event.result.summary or event.result.text)}{took}", style)

    def _questions(self, event: Interrupted) -> None:
        for interrupt in event.interrupts:
            self._terminal.remarks.line(f"? {interrupt.id}: {interrupt.question}")

    def _end(self, event: AgentEnd) -> None:
        match event.outcome:
            case "failed" | "limit":
                self._terminal.error(f"{event.error.kind}: {event.error}" if event.error else event.outcome)
            case "aborted":
                self._terminal.error(f"aborted: {event.error}" if event.error else "aborted")
            case "completed" | "interrupted":
                pass
