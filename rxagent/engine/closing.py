"""The end of a run: the events that end whatever is open, in the grammar's order."""

from collections.abc import Iterator

from rxagent.engine.answer import Answer
from rxagent.engine.batch import abandon
from rxagent.engine.scope import Scope
from rxagent.events import AgentEnd, AgentStart, AnyEvent, ErrorInfo, MessageEnd, MessageStart, Outcome, TurnEnd, TurnStart
from rxagent.messages import ToolResultMessage


def closing(scope: Scope, answer: Answer, outcome: Outcome, error: ErrorInfo | None) -> Iterator[AnyEvent]:
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


def _closing_turn(scope: Scope, answer: Answer, outcome: Outcome, error: ErrorInfo | None) -> Iterator[AnyEvent]:
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
