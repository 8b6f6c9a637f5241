"""The end of a run: the events that end whatever is open, in the grammar's order."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Protocol

from rxagent.engine.batch import abandon
from rxagent.engine.inbox import Inbox
from rxagent.engine.profile import Profile
from rxagent.engine.scope import Scope
from rxagent.engine.session import Session, new_id, wall_clock
from rxagent.events import AgentEnd, AgentStart, AnyEvent, ErrorInfo, MessageEnd, MessageStart, Outcome, TurnEnd, TurnStart
from rxagent.messages import AssistantMessage, StopReason, ToolResultMessage
from rxagent.signals import Signal


class Unfinished(Protocol):
    """An answer that may be in flight."""

    def close(self, stop_reason: StopReason, reason: str) -> list[MessageStart | MessageEnd]:
        """The events that end it; none if there is none."""
        ...


class LeftAnswer:
    """The answer that a process which died may have left open; what came of it is kept, marked."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    def close(self, stop_reason: StopReason, reason: str) -> list[MessageStart | MessageEnd]:
        """The events that end it; none if there is none."""
        scope, progress = self._scope, self._scope.session.progress
        if progress.message is not None or not (progress.streaming or progress.attempts):
            return []
        partial = scope.session.state.streaming_message
        if partial is None:
            partial = AssistantMessage(id=new_id(), timestamp=wall_clock()(), model=scope.setup.models[0].name)
        message = AssistantMessage(
            partial.content,
            stop_reason=stop_reason,
            error_message=reason,
            model=partial.model,
            id=partial.id,
            timestamp=partial.timestamp,
        )
        end = MessageEnd(message, origin=scope.origin)
        start = MessageStart(replace(message, content=(), stop_reason=None, error_message=None), origin=scope.origin)
        return [end] if progress.streaming else [start, end]


def left(scope: Scope) -> Iterator[AnyEvent]:
    """The events that end the run a dead process left open: as aborted, or as interrupted if it had asked already."""
    stopped = scope.session.progress.stopped
    error = None if stopped else ErrorInfo("the process ended before the run did", "process")
    yield from closing(scope, LeftAnswer(scope), "interrupted" if stopped else "aborted", error)


def end_left_run(session: Session, acting: Callable[[], Profile], inbox: Inbox) -> None:
    """Ends the run a dead process left open in a session, and those of its children; without one it does nothing.

    ``acting`` tells the agent that has the conversation.
    """
    deepest_first = sorted(session.branches.values(), key=lambda branch: -len(branch.state.path))
    for each in (*deepest_first, session):
        progress = each.progress
        if progress.run_open:
            profile = acting()
            origin = each.origin(progress.run_id, progress.speaker)
            for event in left(Scope(each, profile.setup, profile.config, inbox, Signal(), origin)):
                each.publish(event)
    if session.progress.outcome != "interrupted":
        session.branches.clear()


def publish_left(scope: Scope) -> None:
    """Ends a run that is still open though nobody drives it any more."""
    if scope.session.progress.run_open:
        for event in left(scope):
            scope.session.publish(event)


def closing(scope: Scope, answer: Unfinished, outcome: Outcome, error: ErrorInfo | None) -> Iterator[AnyEvent]:
    """The events that end a run; each is made when the last one is out."""
    progress = scope.session.progress
    if not progress.run_open:
        yield AgentStart(origin=scope.origin)
    if progress.turn < 0:
        yield TurnStart(0, origin=scope.origin)
    if progress.turn_open:
        yield from _closing_turn(scope, answer, outcome, error)
    # the run began under this origin, whoever has it now
    yield AgentEnd(tuple(progress.appended), outcome, error, progress.usage, origin=scope.began)


def _closing_turn(scope: Scope, answer: Unfinished, outcome: Outcome, error: ErrorInfo | None) -> Iterator[AnyEvent]:
    progress, origin = scope.session.progress, scope.origin
    reason = error.message if error is not None else scope.signal.reason or outcome
    if progress.opened is not None and not isinstance(progress.opened, ToolResultMessage):
        opened = progress.opened
        yield MessageEnd(opened, origin=origin)
        scope.inbox.delivered(opened.id)
    if progress.message is None and not progress.streaming:
        queued = {m.id for m in (*scope.inbox.steering, *scope.inbox.follow_ups)}
        for message in [m for m in progress.inputs if m.id not in queued]:  # the prompt is not lost with its run
            yield MessageStart(message, origin=origin)
            yield MessageEnd(message, origin=origin)
    yield from answer.close("aborted" if outcome == "aborted" else "error", reason)
    message = progress.message
    if message is not None and message.stop_reason not in ("error", "aborted"):
        yield from abandon(scope, reason)
    yield TurnEnd(message, progress.results, origin=origin)
