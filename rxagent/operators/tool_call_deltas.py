"""`tool_call_deltas`: the calls a model writes, as it writes them."""

from collections.abc import Callable
from typing import NamedTuple

from pydantic_core import to_json
from reactivex import abc

from rxagent.events import agent as e
from rxagent.events.model import ModelEvent, ToolCallDelta, ToolCallEnd, ToolCallStart
from rxagent.messages import AssistantMessage, ToolCall
from rxagent.operators.kit import OnEvent, Operator, Outermost, fused


class CallDelta(NamedTuple):
    """More of a call in the making.

    ``call_id`` is the provider's and may be empty; the call that runs has its own (`ToolStart`).
    ``arguments`` is a piece of JSON text, empty in a call's first delta. ``block`` tells apart the calls
    of one answer. ``withdrawn``: the call is void.
    """

    call_id: str
    tool_name: str
    arguments: str = ""
    block: int = 0
    withdrawn: bool = False


def tool_call_deltas() -> Operator[CallDelta]:
    """The model's tool calls in the pieces in which they come: one piece when a call opens, then its arguments.

        ─c─{─}─R──c─{"a":1}──|       R  model_retry
        tool_call_deltas()
        ─c─{─}─w──c─{"a":1}──|       w  the first call again, with withdrawn=True

    An unstreamed call comes as two pieces, its name and all of its arguments. Errors and completion pass through.
    """
    return fused(_calls)


class _Answer:
    """The calls of an answer that streams. ``open``: by block; ``filled``: blocks that have had arguments."""

    __slots__ = ("_emit", "calls", "filled", "open")

    def __init__(self, emit: Callable[[CallDelta], None]) -> None:
        self._emit = emit
        self.calls: list[CallDelta] = []
        self.open: dict[int, CallDelta] = {}
        self.filled: set[int] = set()

    def take(self, delta: ModelEvent) -> None:
        """One more piece of the model's stream."""
        if isinstance(delta, ToolCallDelta):
            call = self.open.get(delta.index) or self._opened(ToolCallStart("", "", delta.index))
            self.filled.add(delta.index)
            self._emit(CallDelta(call.call_id, call.tool_name, delta.arguments, delta.index))
        elif isinstance(delta, ToolCallStart):
            self._opened(delta)
        elif isinstance(delta, ToolCallEnd):
            call = self.open.pop(delta.index, None)
            if call is not None and delta.arguments is not None and delta.index not in self.filled:
                self._emit(call._replace(arguments=_text(delta.arguments)))

    def _opened(self, start: ToolCallStart) -> CallDelta:
        call = self.open[start.index] = CallDelta(start.id, start.name, block=start.index)
        self.calls.append(call)
        self.filled.discard(start.index)
        self._emit(call)
        return call


def _calls(observer: abc.ObserverBase[CallDelta]) -> OnEvent:
    emit = observer.on_next
    own = Outermost()
    answers: dict[tuple[str, tuple[str, ...]], _Answer | None] = {}  # None: begun, and nothing streamed yet

    def whole(calls: tuple[ToolCall, ...]) -> None:
        for block, call in enumerate(calls):
            emit(CallDelta(call.id, call.name, block=block))
            emit(CallDelta(call.id, call.name, _text(call.invalid or call.arguments), block))

    def on_next(event: e.AnyEvent) -> None:
        match event:
            case e.MessageUpdate() if own.takes(event.origin):
                key = (event.origin.run_id, event.origin.path)
                answer = answers.get(key)
                if answer is None:
                    answer = answers[key] = _Answer(emit)
                answer.take(event.delta)
            case e.MessageStart(message=AssistantMessage()) if own.takes(event.origin):
                answers[event.origin.run_id, event.origin.path] = None
            case e.MessageEnd(message=AssistantMessage() as message) if own.takes(event.origin):
                key = (event.origin.run_id, event.origin.path)
                if key in answers and answers.pop(key) is None:
                    whole(message.tool_calls)
            case e.ModelRetry() | e.AgentStart() if own.takes(event.origin):
                answer = answers.pop((event.origin.run_id, event.origin.path), None)
                for call in answer.calls if answer else ():
                    emit(call._replace(withdrawn=True))
            case _:
                pass

    return on_next


def _text(arguments: object) -> str:
    return arguments if isinstance(arguments, str) else to_json(arguments).decode()
