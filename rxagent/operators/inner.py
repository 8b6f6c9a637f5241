"""Operators of Observables: `tool_executions`, one inner Observable per call, and `live_messages`, one per message."""

from collections.abc import Callable
from typing import Generic, TypeVar, cast

from reactivex import Observable, abc
from reactivex.disposable import CompositeDisposable, RefCountDisposable, SingleAssignmentDisposable

from rxagent.events import agent as e
from rxagent.flow import Fault, Replay, print_fault
from rxagent.messages import AnyMessage, AssistantMessage
from rxagent.operators.kit import OnEvent, Operator, Outermost

K = TypeVar("K")
T = TypeVar("T")


def tool_executions() -> Operator[Observable[e.ToolLevel]]:
    """One Observable per tool call: its start, its updates, its end; then it completes.

        ─s1─s2─u1───e2─e1─|              s  tool_start, u  tool_update, e  tool_end
        tool_executions()
        ─┬──┬─────────────|
         │  └s2─────e2|
         └s1────u1─────e1|

    An inner Observable replays what came before its subscription, and goes on when the outer one is
    disposed. A run that ends completes what is open; so does the source, with its error if it has one.
    """

    return _grouping(_executing)


def _executing(outer: "_Outer[tuple[str, str], e.ToolLevel]") -> OnEvent:
    own = Outermost()

    def on_next(event: e.AnyEvent) -> None:
        match event:
            case e.ToolStart() if own.takes(event.origin):
                key = (event.origin.session_id, event.call_id)
                outer.open(key, event.origin)
                outer.put(key, event)
            case e.ToolUpdate() | e.ToolEnd():
                key = (event.origin.session_id, event.call_id)
                outer.put(key, event)
                if isinstance(event, e.ToolEnd):
                    outer.close(key)
            case e.AgentEnd():
                outer.close_run(event.origin)
            case _:
                own.takes(event.origin)

    return on_next


def live_messages() -> Operator[Observable[AnyMessage]]:
    """One Observable per message: the message so far, again with every piece, then the finished one.

        ─[u]─[h─e─R────[h─e─y─]─|        [ message_start, ] message_end, R  model_retry
        live_messages()
        ─┬───┬──────────────────|
         │   └h─e──────h─e─y──y|         each item is the whole message so far
         └u u|

    Items replace one another, so after a withdrawal the view starts again by itself and the answer
    shows once: a message of the transcript has one inner Observable, whatever attempts it took.
    Inner Observables replay, and go on when the outer one is disposed. A run that ends completes
    what is open; so does the source, with its error if it has one.
    """

    return _grouping(_living)


def _living(outer: "_Outer[tuple[str, tuple[str, ...]], AnyMessage]") -> OnEvent:
    own = Outermost()

    def on_next(event: e.AnyEvent) -> None:
        key = (event.origin.run_id, event.origin.path)
        match event:
            case e.MessageUpdate():
                own.takes(event.origin)
                # An update that was read by itself has no message.
                if cast("AssistantMessage | None", event.message) is not None:
                    outer.put(key, event.message)
            case e.MessageStart() if own.takes(event.origin):
                if not (key in outer.inner and isinstance(event.message, AssistantMessage)):
                    outer.open(key, event.origin)
                outer.put(key, event.message)
            case e.MessageEnd():
                outer.put(key, event.message)
                outer.close(key)
            case e.AgentStart():
                own.takes(event.origin)
                outer.close_run(event.origin)
            case e.AgentEnd():
                outer.close_run(event.origin)
            case _:
                own.takes(event.origin)

    return on_next


class _Outer(Generic[K, T]):
    """The open inner Observables of one subscription, and the count of who still needs the source."""

    __slots__ = ("_emit", "_faults", "_needed", "_of", "_putting", "inner")

    def __init__(self, observer: abc.ObserverBase[Observable[T]], needed: RefCountDisposable) -> None:
        self._emit = observer.on_next
        self._needed = needed
        self._of: dict[K, e.Origin] = {}
        self._faults: list[Fault] = []
        self._putting = False
        self.inner: dict[K, Replay[T]] = {}

    def open(self, key: K, origin: e.Origin) -> None:
        """Makes an inner Observable and hands it out."""
        self.close(key)
        replay = self.inner[key] = Replay[T](on_fault=self._fault)
        self._of[key] = origin
        needed = self._needed

        def subscribe(observer: abc.ObserverBase[T], scheduler: abc.SchedulerBase | None = None) -> abc.DisposableBase:
            return CompositeDisposable(needed.disposable, replay.subscribe(observer, scheduler=scheduler))

        self._emit(Observable(subscribe))

    def put(self, key: K, value: T) -> None:
        """Gives one its next item. What an observer of it raises is the source's to report, as in any chain."""
        replay = self.inner.get(key)
        if replay is None:
            return
        self._putting = True
        try:
            replay.on_next(value)
        finally:
            self._putting = False
        if self._faults:
            faults, self._faults = self._faults, []
            for fault in faults[1:]:
                print_fault(fault)
            raise faults[0].error

    def _fault(self, fault: Fault) -> None:
        if self._putting:
            self._faults.append(fault)
        else:
            print_fault(fault)

    def close(self, key: K) -> None:
        """Completes one, if it is open."""
        replay = self.inner.pop(key, None)
        if replay is not None:
            del self._of[key]
            replay.on_completed()

    def close_run(self, origin: e.Origin) -> None:
        """Completes those of a run that is over."""
        if self._of:
            for key in [key for key, of in self._of.items() if of == origin]:
                self.close(key)

    def close_all(self, error: Exception | None = None) -> None:
        """Ends all, as the source did."""
        self._of.clear()
        while self.inner:
            _, replay = self.inner.popitem()
            if error is None:
                replay.on_completed()
            else:
                replay.on_error(error)


def _grouping(start: Callable[[_Outer[K, T]], OnEvent]) -> Operator[Observable[T]]:
    def operator(source: Observable[e.AnyEvent]) -> Observable[Observable[T]]:
        def subscribe(
            observer: abc.ObserverBase[Observable[T]], scheduler: abc.SchedulerBase | None = None
        ) -> abc.DisposableBase:
            upstream = SingleAssignmentDisposable()
            needed = RefCountDisposable(upstream)
            outer = _Outer[K, T](observer, needed)

            def on_error(error: Exception) -> None:
                outer.close_all(error)
                observer.on_error(error)

            def on_completed() -> None:
                outer.close_all()
                observer.on_completed()

            upstream.disposable = source.subscribe(start(outer), on_error, on_completed, scheduler=scheduler)
            return needed

        return Observable(subscribe)

    return operator
