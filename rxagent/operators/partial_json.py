"""`partial_json`: a typed value while its JSON is still being written."""

from collections.abc import Callable
from functools import partial
from itertools import zip_longest
from typing import TYPE_CHECKING, NamedTuple, TypeVar, cast

from pydantic import TypeAdapter
from pydantic_core import from_json
from reactivex import Observable, abc

from rxagent.errors import UsageError
from rxagent.events import agent as e
from rxagent.events.model import TextDelta, ToolCallDelta, ToolCallStart
from rxagent.flow import frames
from rxagent.messages import AssistantMessage, JsonObject, ToolCall
from rxagent.messages.fences import unfenced
from rxagent.operators.answers import Hear, texts
from rxagent.operators.kit import OnEvent, Operator, Outermost, fused
from rxagent.operators.partial_values import ABSENT, PartialType
from rxagent.operators.withdrawn import AGAIN, Withdrawn

if TYPE_CHECKING:  # typing-extensions learnt of TypeForm later than pydantic asks for it
    from typing_extensions import TypeForm

T = TypeVar("T")


class _Draft(NamedTuple):
    """JSON so far: the first ``length`` of the pieces. ``whole``: it is finished, as text or as data."""

    pieces: list[str]
    length: int
    whole: str | JsonObject | None = None


def partial_json(shape: "TypeForm[T]", *, tool: str | None = None, period: float = 1 / 60) -> Operator[T]:
    """The answer, or the arguments of a tool's calls, as values of a type while they are being written.

        ─{"na─me": "A─da", "ag─e": 36}─|
        partial_json(Person)
        ──────Person("A", age=None)─Person("Ada", age=36)─|

    An unfinished value has what has come; the rest is at its default, or None. Constraints hold for
    the finished value alone, which comes as pydantic validates it, when the answer is complete; JSON
    that doesn't fit the type has no finished value. Text is parsed at most once per ``period``
    (seconds), never per delta; nothing that is finished is passed over. JSON in a Markdown fence is read as
    well. A withdrawn attempt's values stop; the next begins again. What is kept goes before the end or an error.

    Args:
        shape: a pydantic model, dataclass, TypedDict, list of them, or any type pydantic knows.
        tool: the tool whose calls are meant; None is the answer's text.
        period: seconds between two values; needs a running event loop.

    Raises:
        UsageError: ``period`` is not above 0, or pydantic can't make the type's schema.
    """
    try:
        adapter: TypeAdapter[T] = TypeAdapter(shape)
    except Exception as error:  # pydantic raises several kinds
        raise UsageError(f"partial_json can't read {shape!r:.200}: {error}") from error
    if period <= 0:
        raise UsageError(f"partial_json: period is in seconds and must be above 0, not {period}")
    drafts, paced = fused(partial(_calls, tool=tool) if tool is not None else _answer), frames(period)
    values = PartialType(shape)

    def operator(source: Observable[e.AnyEvent]) -> Observable[T]:
        framed = paced(drafts(source))

        def subscribe(observer: abc.ObserverBase[T], scheduler: abc.SchedulerBase | None = None) -> abc.DisposableBase:
            handler = _parsing(observer, adapter, values)
            return framed.subscribe(handler, observer.on_error, observer.on_completed, scheduler=scheduler)

        return Observable(subscribe)

    return operator


def _answer(observer: abc.ObserverBase[_Draft]) -> OnEvent:
    emit = observer.on_next
    pieces: list[str] = []

    def on_text(text: str) -> None:
        nonlocal pieces
        if isinstance(text, Withdrawn):
            pieces = []
        else:
            pieces.append(text)
            emit(_Draft(pieces, len(pieces)))

    def ended(_: int) -> None:
        nonlocal pieces
        if pieces:
            emit(_Draft(pieces, len(pieces), "".join(pieces)))
            pieces = []

    return texts(TextDelta, AGAIN, Hear(on_text, ends=ended))


class _Calls:
    """A run's calls of one tool, in the answer that streams: pieces in the order of the calls, and by block."""

    __slots__ = ("by_block", "in_order")

    def __init__(self) -> None:
        self.by_block: dict[int, list[str]] = {}
        self.in_order: list[list[str]] = []

    def opened(self, block: int, *, meant: bool) -> None:
        """A call begins; ``meant``: it is one of the tool's."""
        self.by_block.pop(block, None)
        if meant:
            pieces = self.by_block[block] = []
            self.in_order.append(pieces)


def _calls(observer: abc.ObserverBase[_Draft], tool: str) -> OnEvent:
    emit = observer.on_next
    own = Outermost()
    runs: dict[tuple[str, tuple[str, ...]], _Calls] = {}

    def whole(calls: tuple[ToolCall, ...], drafts: list[list[str]]) -> None:
        meant = [call for call in calls if call.name == tool]
        for call, pieces in zip_longest(meant, drafts[: len(meant)], fillvalue=None):
            if call is not None and call.invalid is None:
                emit(_Draft(pieces or [], 0, call.arguments))

    def on_next(event: e.AnyEvent) -> None:
        key = (event.origin.run_id, event.origin.path)
        match event:
            case e.MessageUpdate(delta=ToolCallDelta() as delta):
                run = runs.get(key)
                pieces = run.by_block.get(delta.index) if run else None
                if pieces is not None:
                    pieces.append(delta.arguments)
                    emit(_Draft(pieces, len(pieces)))
            case e.MessageUpdate(delta=ToolCallStart() as delta) if own.takes(event.origin):
                runs.setdefault(key, _Calls()).opened(delta.index, meant=delta.name == tool)
            case e.MessageStart() | e.ModelRetry() | e.AgentStart() if own.takes(event.origin):
                runs.pop(key, None)
            case e.MessageEnd(message=AssistantMessage() as message) if own.takes(event.origin):
                run = runs.pop(key, None)
                whole(message.tool_calls, run.in_order if run else [])
            case _:
                pass

    return on_next


def _parsing(observer: abc.ObserverBase[T], adapter: TypeAdapter[T], values: PartialType) -> Callable[[list[_Draft]], None]:
    last: object = ABSENT

    def value(draft: _Draft) -> object:
        whole = draft.whole
        try:
            if whole is not None:
                return adapter.validate_json(unfenced(whole)) if isinstance(whole, str) else adapter.validate_python(whole)
            text = unfenced("".join(draft.pieces[: draft.length]))
            return values.read(from_json(text, allow_partial="trailing-strings"))
        except ValueError:  # not JSON, or not of the type
            return ABSENT

    def on_next(frame: list[_Draft]) -> None:
        nonlocal last
        newest: dict[int, _Draft] = {}  # of each text in the making only its newest state counts
        for draft in frame:
            newest.pop(id(draft.pieces), None)
            newest[id(draft.pieces)] = draft
        for draft in newest.values():
            try:
                made = value(draft)
            except Exception as error:  # a validator of the application's
                observer.on_error(error)
                return
            if made is not ABSENT and (draft.whole is not None or made != last):
                last = made
                observer.on_next(cast("T", made))

    return on_next
