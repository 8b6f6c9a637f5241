"""From a stored log back to a session: one pass, the same folds as live."""

from collections.abc import Iterable

from rxagent.engine.session import Branch, Session
from rxagent.events import (
    AgentStart,
    AnyEvent,
    MessageEnd,
    MessageUpdate,
    QueueChanged,
    SessionReset,
    SessionStart,
    ToolEnd,
    ToolStart,
)
from rxagent.messages import AnyMessage
from rxagent.state import AgentState, reduce


class Restoring:
    """Folds a log into a session, event by event; unfinished children become its ``branches``."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._owners: dict[str, Session] = {}

    def take_all(self, events: Iterable[AnyEvent]) -> None:
        """Takes the next events of the log."""
        for event in events:
            self.take(event)

    def take(self, event: AnyEvent) -> None:
        """Takes the next event of the log."""
        session, call_id = self._session, event.origin.call_id
        session.next_seq = event.seq + 1
        session.state = session.published = reduce(session.state, event)
        speaker = session
        if not isinstance(event, MessageUpdate):
            session.progress.apply(event)
            session.adopt(_messages_of(event))
        if call_id:
            speaker = session.branches.get(call_id) or self._branch(event, call_id)
            speaker.fold(event)
        elif isinstance(event, SessionReset) or (isinstance(event, AgentStart) and event.resumes is None):
            session.branches.clear()  # what was asked before is asked no more
        if isinstance(event, ToolStart):
            self._owners[event.call_id] = speaker
        elif isinstance(event, ToolEnd) and not event.interrupted:
            self._owners.pop(event.call_id, None)
            session.branches.pop(event.call_id, None)

    def _branch(self, event: AnyEvent, call_id: str) -> Branch:
        parent = self._owners.get(call_id, self._session)
        branch = Branch(parent, call_id, AgentState(event.origin.path))
        if isinstance(event, AgentStart):
            self._session.branches[call_id] = branch
        return branch


def _messages_of(event: AnyEvent) -> tuple[AnyMessage, ...]:
    match event:
        case MessageEnd():
            return (event.message,)
        case SessionStart():
            return event.messages
        case AgentStart():
            return event.input
        case QueueChanged():
            return (*event.steering, *event.follow_ups)
        case _:
            return ()
