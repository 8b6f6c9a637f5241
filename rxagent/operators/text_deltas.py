"""`text_deltas` and `thinking_deltas`: what the model says, as it says it."""

from collections.abc import Callable

from reactivex import abc

from rxagent.events import agent as e
from rxagent.events.model import TextDelta, ThinkingDelta
from rxagent.messages import AssistantMessage
from rxagent.operators.kit import OnEvent, Operator, Outermost, fused
from rxagent.operators.withdrawn import AGAIN, Withdrawn


def text_deltas(*, withdrawn: str = AGAIN, between: str = "") -> Operator[str]:
    """The answer's text in the pieces in which it comes; of an unstreamed answer, all of it in one piece.

        ─h─e───R──────────h─e─y──|     R  model_retry: "he" is withdrawn
        text_deltas()
        ─h─e───W──────────h─e─y──|     W  Withdrawn("…", characters=2), a str

    After a withdrawal the answer starts again, so text would stand there twice; what separates the
    two is one `Withdrawn`, a remark as text, that says how many characters are void. It comes only
    if text of the attempt was shown. Errors and completion pass through.

    Args:
        withdrawn: the remark's text.
        between: text to put between the answers of two turns.
    """
    return fused(lambda observer: _texts(observer, TextDelta, withdrawn, between))


def thinking_deltas(*, withdrawn: str = AGAIN, between: str = "") -> Operator[str]:
    """The model's reasoning in the pieces in which it comes; withdrawals and ends as in `text_deltas`.

    ─t─t─x─x─t─|     t  thinking_delta, x  text_delta
    thinking_deltas()
    ─t─t─────t─|
    """
    return fused(lambda observer: _texts(observer, ThinkingDelta, withdrawn, between))


def _texts(observer: abc.ObserverBase[str], kind: type[TextDelta | ThinkingDelta], withdrawn: str, between: str) -> OnEvent:
    emit = observer.on_next
    answers = _Answers(emit, kind, withdrawn, between)
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
                    answers.separate()
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

    __slots__ = ("_apart", "_between", "_emit", "_kind", "_own", "_withdrawn", "shown")

    def __init__(self, emit: Callable[[str], None], kind: type[TextDelta | ThinkingDelta], withdrawn: str, between: str) -> None:
        self._emit = emit
        self._kind = kind
        self._withdrawn = withdrawn
        self._between = between
        self._own = Outermost()
        self._apart = False  # an answer that was shown is complete
        self.shown: dict[tuple[str, tuple[str, ...]], int | None] = {}  # None: begun, and nothing streamed yet

    def enter(self, origin: e.Origin) -> int | None:
        """What was shown of the answer that an update belongs to; None if its run isn't listened to."""
        if not self._own.takes(origin):
            return None
        count = self.shown[_key(origin)] = self.shown.get(_key(origin)) or 0
        return count

    def separate(self) -> None:
        """Puts the separator before the first text of another answer."""
        if self._apart:
            self._apart = False
            self._emit(self._between)

    def other(self, event: e.AnyEvent) -> None:
        """Takes in what is no update."""
        match event:
            case e.MessageStart(message=AssistantMessage()) if self._own.takes(event.origin):
                self.shown[_key(event.origin)] = None
            case e.MessageEnd(message=AssistantMessage() as message) if self._own.takes(event.origin):
                self._end(message, self.shown.pop(_key(event.origin), 0))
            case e.ModelRetry() | e.AgentStart() if self._own.takes(event.origin):
                count = self.shown.pop(_key(event.origin), None)
                if count:
                    self._emit(Withdrawn(self._withdrawn, count))
            case _:
                pass

    def _end(self, message: AssistantMessage, count: int | None) -> None:
        if count is None:  # nothing was streamed: here is all of it
            text = message.text if self._kind is TextDelta else message.thinking
            count = len(text)
            if text:
                self.separate()
                self._emit(text)
        if count and self._between:
            self._apart = True


def _key(origin: e.Origin) -> tuple[str, tuple[str, ...]]:
    return origin.run_id, origin.path
