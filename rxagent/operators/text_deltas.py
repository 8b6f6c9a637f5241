"""`text_deltas` and `thinking_deltas`: what the model says, as it says it."""

from collections.abc import Callable

from reactivex import abc

from rxagent.events.model import TextDelta, ThinkingDelta
from rxagent.operators.answers import Hear, texts
from rxagent.operators.kit import OnEvent, Operator, fused
from rxagent.operators.withdrawn import AGAIN


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
    return _operator(TextDelta, withdrawn, between)


def thinking_deltas(*, withdrawn: str = AGAIN, between: str = "") -> Operator[str]:
    """The model's reasoning in the pieces in which it comes; withdrawals and ends as in `text_deltas`.

    ─t─t─x─x─t─|     t  thinking_delta, x  text_delta
    thinking_deltas()
    ─t─t─────t─|
    """
    return _operator(ThinkingDelta, withdrawn, between)


def _operator(kind: type[TextDelta | ThinkingDelta], withdrawn: str, between: str) -> Operator[str]:
    def start(observer: abc.ObserverBase[str]) -> OnEvent:
        return texts(kind, withdrawn, _apart(observer.on_next, between) if between else Hear(observer.on_next))

    return fused(start)


def _apart(emit: Callable[[str], None], between: str) -> Hear:
    apart = False  # an answer that was shown is complete

    def begins() -> None:
        nonlocal apart
        if apart:
            apart = False
            emit(between)

    def ends(shown: int) -> None:
        nonlocal apart
        apart = apart or shown > 0

    return Hear(emit, begins, ends)
