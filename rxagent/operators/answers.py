"""What a model says, heard piece by piece: answers told apart by run, withdrawals counted."""

from collections.abc import Callable
from typing import NamedTuple

from rxagent.events import agent as e
from rxagent.events.model import TextDelta, ThinkingDelta
from rxagent.messages import AssistantMessage
from rxagent.operators.kit import OnEvent, Outermost
from rxagent.operators.withdrawn import Withdrawn


class Hear(NamedTuple):
    """Who hears the text: each piece, what comes before an answer's first one, how much it was at its end."""

    emit: Callable[[str], None]
    begins: Callable[[], None]
    ends: Callable[[int], None]


def texts(kind: type[TextDelta | ThinkingDelta], withdrawn: str, hear: Hear) -> OnEvent:
    """The handler of one subscription: pieces of a kind to ``hear``, and `Withdrawn` where they are taken back."""
    emit, begins, _ = hear
    answers = _Answers(kind, withdrawn, hear)
    update = e.MessageUpdate
    # The answer that streams, and the characters shown of it; kept here, in reach, for every delta.
    current: e.Origin | None = None
    shown = 0

    def on_next(event: e.AnyEvent) -> None:
        nonlocal current, shown
        if type(event) is update:
            if event.origin is not current:
                if current is not None:
                    answers.shown[_key(current)] = shown
                count = answers.enter(event.origin)
                if count is None:
                    current = None
                    return
                current, shown = event.origin, count
            delta = event.delta
            if isinstance(delta, kind):
                text = delta.text
                if not shown:
                    begins()
                shown += len(text)
                emit(text)
            return
        if current is not None:
            answers.shown[_key(current)] = shown
            current = None
        answers.other(event)

    return on_next


class _Answers:
    """The answers that stream, by run: how many characters of each were shown."""

    __slots__ = ("_hear", "_kind", "_own", "_withdrawn", "shown")

    def __init__(self, kind: type[TextDelta | ThinkingDelta], withdrawn: str, hear: Hear) -> None:
        self._kind = kind
        self._withdrawn = withdrawn
        self._hear = hear
        self._own = Outermost()
        self.shown: dict[tuple[str, tuple[str, ...]], int | None] = {}  # None: begun, and nothing streamed yet

    def enter(self, origin: e.Origin) -> int | None:
        """What was shown of the answer that an update belongs to; None if its run isn't listened to."""
        if not self._own.takes(origin):
            return None
        count = self.shown[_key(origin)] = self.shown.get(_key(origin)) or 0
        return count

    def other(self, event: e.AnyEvent) -> None:
        """Takes in what is no update."""
        match event:
            case e.MessageStart(message=AssistantMessage()) if self._own.takes(event.origin):
                self._withdraw(event.origin)  # of an attempt that nobody ended
                self.shown[_key(event.origin)] = None
            case e.MessageEnd(message=AssistantMessage() as message) if self._own.takes(event.origin):
                self._end(message, self.shown.pop(_key(event.origin), 0))
            case e.ModelRetry() | e.AgentStart() if self._own.takes(event.origin):
                self._withdraw(event.origin)
            case _:
                pass

    def _withdraw(self, origin: e.Origin) -> None:
        count = self.shown.pop(_key(origin), None)
        if count:
            self._hear.emit(Withdrawn(self._withdrawn, count))

    def _end(self, message: AssistantMessage, count: int | None) -> None:
        if count is None:  # nothing was streamed: here is all of it
            text = message.text if self._kind is TextDelta else message.thinking
            count = len(text)
            if text:
                self._hear.begins()
                self._hear.emit(text)
        self._hear.ends(count)


def _key(origin: e.Origin) -> tuple[str, tuple[str, ...]]:
    return origin.run_id, origin.path
