"""What a model says, heard piece by piece: answers told apart by run, withdrawals counted."""

from collections.abc import Callable
from dataclasses import dataclass

from rxagent.events import agent as e
from rxagent.events.model import TextDelta, ThinkingDelta
from rxagent.messages import AssistantMessage
from rxagent.operators.kit import OnEvent, Outermost
from rxagent.operators.withdrawn import Withdrawn


def _nothing(*_: object) -> None:
    pass


@dataclass(frozen=True, slots=True)
class Hear:
    """Who hears the text: each piece, what comes before an answer's first one, how much it was at its end."""

    emit: Callable[[str], None]
    begins: Callable[[], None] = _nothing
    ends: Callable[[int], None] = _nothing


def texts(kind: type[TextDelta | ThinkingDelta], withdrawn: str, hear: Hear) -> OnEvent:
    """The handler of one subscription: pieces of a kind to ``hear``, and `Withdrawn` where they are taken back."""
    return _Answers(kind, withdrawn, hear).on_next


class _Answers:
    """The answers that stream, by run: how many characters of each were shown."""

    __slots__ = ("_begins", "_current", "_emit", "_ends", "_kind", "_own", "_shown", "_streamed", "_withdrawn")

    def __init__(self, kind: type[TextDelta | ThinkingDelta], withdrawn: str, hear: Hear) -> None:
        self._emit, self._begins, self._ends = hear.emit, hear.begins, hear.ends
        self._kind = kind
        self._withdrawn = withdrawn
        self._own = Outermost()
        self._shown: dict[tuple[str, tuple[str, ...]], int | None] = {}  # None: begun, and nothing streamed yet
        # The answer that streams, and the characters shown of it; kept here, in reach, for every delta.
        self._current: e.Origin | None = None
        self._streamed = 0

    def on_next(self, event: e.AnyEvent) -> None:
        """Takes in the next event."""
        if type(event) is e.MessageUpdate:
            if event.origin is not self._current and not self._enter(event.origin):
                return
            delta = event.delta
            if isinstance(delta, self._kind):
                text = delta.text
                if text and not self._streamed:
                    self._begins()
                self._streamed += len(text)
                self._emit(text)
            return
        self._leave()
        self._other(event)

    def _leave(self) -> None:
        if self._current is not None:
            self._shown[_key(self._current)] = self._streamed
            self._current = None

    def _enter(self, origin: e.Origin) -> bool:
        """An update belongs to another answer than the last; whether its run is listened to."""
        self._leave()
        if not self._own.takes(origin):
            return False
        self._streamed = self._shown[_key(origin)] = self._shown.get(_key(origin)) or 0
        self._current = origin
        return True

    def _other(self, event: e.AnyEvent) -> None:
        """Takes in what is no update."""
        match event:
            case e.MessageStart(message=AssistantMessage()) if self._own.takes(event.origin):
                self._withdraw(event.origin)  # of an attempt that nobody ended
                self._shown[_key(event.origin)] = None
            case e.MessageEnd(message=AssistantMessage() as message) if self._own.takes(event.origin):
                self._end(message, self._shown.pop(_key(event.origin), 0))
            case e.ModelRetry() | e.AgentStart() if self._own.takes(event.origin):
                self._withdraw(event.origin)
            case _:
                pass

    def _withdraw(self, origin: e.Origin) -> None:
        count = self._shown.pop(_key(origin), None)
        if count:
            self._emit(Withdrawn(self._withdrawn, count))

    def _end(self, message: AssistantMessage, count: int | None) -> None:
        if count is None:  # nothing was streamed: here is all of it
            text = message.text if self._kind is TextDelta else message.thinking
            count = len(text)
            if text:
                self._begins()
                self._emit(text)
        self._ends(count)


def _key(origin: e.Origin) -> tuple[str, tuple[str, ...]]:
    return origin.run_id, origin.path
