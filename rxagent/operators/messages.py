"""`messages`, `transcript` and `final_text`: what is finished."""

from collections.abc import Iterable

from reactivex import abc

from rxagent.events import agent as e
from rxagent.messages import AnyMessage, AssistantMessage, Transcript
from rxagent.operators.kit import OnEvent, Operator, Outermost, fused


def messages() -> Operator[AnyMessage]:
    """Each message when it is complete: prompts, answers and tool results, as they enter the transcript.

        ─[u]─[a──────]─[r]─|     [ message_start, ] message_end
        messages()
        ───u─────────a───r─|

    A withdrawn attempt is no message. Errors and completion pass through.
    """

    def start(observer: abc.ObserverBase[AnyMessage]) -> OnEvent:
        emit = observer.on_next
        own = Outermost()

        def on_next(event: e.AnyEvent) -> None:
            if own.takes(event.origin) and isinstance(event, e.MessageEnd):
                emit(event.message)

        return on_next

    return fused(start)


def transcript(initial: Iterable[AnyMessage] = ()) -> Operator[Transcript[AnyMessage]]:
    """The messages so far, as a whole, after each change; successive transcripts share their items.

        ─S───[u]───[a──]─X──|      S  session_start with one message, X  session_reset
        transcript()
        ─(1)───(2)─────(3)(0)|

    ``initial`` is what stood before the first event, for a stream joined late. A withdrawn attempt
    never shows. Errors and completion pass through.
    """
    given = tuple(initial)

    def start(observer: abc.ObserverBase[Transcript[AnyMessage]]) -> OnEvent:
        emit = observer.on_next
        own = Outermost()
        present: Transcript[AnyMessage] = Transcript(given)

        def on_next(event: e.AnyEvent) -> None:
            nonlocal present
            match event:
                case e.MessageEnd() if own.takes(event.origin):
                    present = present.append(event.message)
                case e.SessionStart():
                    present = Transcript(event.messages)
                case e.SessionReset():
                    present = Transcript()
                case _:
                    own.takes(event.origin)
                    return
            emit(present)

        return on_next

    return fused(start)


def final_text() -> Operator[str]:
    """The answer of each run, once, when the run ends: its last answer that is not empty.

        ─A─T─h─e─R─h─e─y─t─a─|     R  model_retry, a  agent_end
        final_text()
        ───────────────────y─|     y  "hey"

    Exactly one text per run, empty if the run had none; what a failed or aborted answer had is its
    text. Errors and completion pass through.
    """

    def start(observer: abc.ObserverBase[str]) -> OnEvent:
        emit = observer.on_next
        own = Outermost()

        def on_next(event: e.AnyEvent) -> None:
            if own.takes(event.origin) and isinstance(event, e.AgentEnd):
                emit(_last_text(event.messages))

        return on_next

    return fused(start)


def _last_text(run: tuple[AnyMessage, ...]) -> str:
    return next((m.text for m in reversed(run) if isinstance(m, AssistantMessage) and m.text), "")
