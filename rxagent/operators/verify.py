"""`verify`: the grammar check that everything else is tested with, as operators and as plain functions."""

from collections.abc import Callable, Iterable

from reactivex import Observable, abc

from rxagent.errors import GrammarError
from rxagent.events import agent as e
from rxagent.operators.grammar import At, expected_at, fault
from rxagent.operators.grammar_run import RunGrammar, Session

_Key = tuple[tuple[str, ...], str]


class LogGrammar:
    """Checks the events of one session, in order; raises `GrammarError` at the first that has no place.

    ``joined``: the stream may begin between two runs, without `SessionStart`; ``single``: it is the
    events of exactly one run, numbered from anywhere or (all -1) not at all.
    """

    def __init__(self, *, joined: bool = False, single: bool = False) -> None:
        self._whole = not (joined or single)
        self._single = single
        self._session = Session(self._whole)
        self._session_id: str | None = None
        self._seq: int | None = None
        self._open: dict[_Key, RunGrammar] = {}
        self._roots: set[tuple[str, ...]] = set()

    def take(self, event: e.AnyEvent) -> None:
        """Takes one event in; raises `GrammarError` naming its seq, what it is and what was expected."""
        first = self._session_id is None
        self._number(event)
        if first and self._whole and not isinstance(event, e.SessionStart):
            raise fault(event, "a log begins with session_start")
        match event:
            case e.SessionStart():
                if not first or self._single:
                    raise fault(event, "session_start stands only at the beginning of a log")
                self._session.message_ids.update(message.id for message in event.messages)
            case e.UnknownEvent():
                pass
            case e.ConfigChanged() | e.QueueChanged():
                if self._single:
                    self._inside(event)
            case e.Custom() | e.Handoff():
                self._inside(event)
            case e.SessionReset():
                self._reset(event)
            case e.AgentStart():
                self._start(event)
            case _:
                self._step(event)

    def finish(self) -> None:
        """Says that the stream is over; raises `GrammarError` if a run is still open or nothing came."""
        if self._open:
            run = next(reversed(self._open.values()))
            raise GrammarError(f"the stream ended inside the run of {'.'.join(run.path)}; {run.expected()}")
        if self._whole and self._session_id is None:
            raise GrammarError("the log is empty: a log begins with session_start")
        if self._single and not self._roots:
            raise GrammarError(f"the stream ended {At.READY.value}: {expected_at(At.READY)}")

    def _number(self, event: e.AnyEvent) -> None:
        session = event.origin.session_id
        if self._seq is None:
            if self._whole and event.seq != 0:
                raise fault(event, "expected seq 0: a log is numbered from 0, without holes")
            if event.seq < 0 and not self._single:
                raise fault(event, "expected a seq: an event gets it when it enters the log")
            self._session_id = session
        else:
            wanted = self._seq + 1 if self._seq >= 0 else -1
            if event.seq != wanted:
                raise fault(event, f"expected seq {wanted}: a log is numbered without holes")
            if session != self._session_id:
                raise fault(event, f"it is of session {session!r}; expected {self._session_id!r}")
        self._seq = event.seq

    def _inside(self, event: e.AnyEvent) -> None:
        if not self._open:
            raise fault(event, "it may stand only inside a run; expected agent_start")

    def _reset(self, event: e.SessionReset) -> None:
        if self._open:
            raise fault(event, f"a session is reset only between runs; {next(iter(self._open.values())).expected()}")
        self._session.waiting.clear()

    def _start(self, event: e.AgentStart) -> None:
        path = event.origin.path
        if not path:
            raise fault(event, "expected a path: agent names from the root")
        if self._open:
            self._start_child(event)
        else:
            self._start_root(event)
        if self._whole and event.resumes is not None and event.resumes not in self._session.interrupted_at:
            raise fault(event, f"expected resumes to be the seq of an interrupted, which {event.resumes} is not")
        self._open[path, event.origin.run_id] = RunGrammar(event, self._session)

    def _start_root(self, event: e.AgentStart) -> None:
        path = event.origin.path
        if self._single and self._roots:
            raise fault(event, "the run is over: nothing may follow agent_end")
        below = event.origin.call_id and not self._single
        if below or any(path[: len(root)] == root != path for root in self._roots):
            raise fault(event, "a child's run stands between tool_start and tool_end of the call that made it")
        self._roots.add(path)

    def _start_child(self, event: e.AgentStart) -> None:
        path, call_id = event.origin.path, event.origin.call_id
        above = self._above(path)
        if not above:
            run = next(iter(self._open.values()))
            raise fault(event, f"another run is open, of {'.'.join(run.path)}; {run.expected()}")
        if not any(run.in_call(call_id) for run in above):
            call = f"call {call_id!r}, which is not open," if call_id else "an open call"
            raise fault(event, f"a child's run stands inside {call} of its parent; {above[0].expected()}")
        if (path, event.origin.run_id) in self._open:
            raise fault(event, "the same run is open already; expected another run_id")

    def _above(self, path: tuple[str, ...]) -> list[RunGrammar]:
        """The open runs of the nearest agent above a path."""
        for length in range(len(path) - 1, 0, -1):
            runs = [run for run in self._open.values() if run.path == path[:length]]
            if runs:
                return runs
        return []

    def _step(self, event: e.KnownEvent) -> None:
        assert not isinstance(event, e.SessionStart | e.ConfigChanged | e.SessionReset | e.QueueChanged | e.Handoff | e.Custom)
        key = (event.origin.path, event.origin.run_id)
        run = self._open.get(key)
        if run is None:
            raise fault(event, f"no run {event.origin.run_id!r} of this path is open; {expected_at(At.READY)}")
        run.take(event)
        if isinstance(event, e.ToolEnd):
            self._children_done(event, run)
        elif isinstance(event, e.AgentEnd):
            del self._open[key]

    def _children_done(self, event: e.ToolEnd, parent: RunGrammar) -> None:
        path = parent.path
        # Where a child doesn't say which call it works for, any open call of its parent will do.
        last = not any(run.in_call() for run in self._open.values() if run.path == path)
        for run in self._open.values():
            below = run.path[: len(path)] == path != run.path
            if below and (run.call_id == event.call_id or (last and not run.call_id)):
                raise fault(event, f"the run of {'.'.join(run.path)} is open inside the call; {run.expected()}")


def check(events: Iterable[e.AnyEvent], *, joined: bool = False, prefix: bool = False) -> None:
    """Checks a session's log against the grammar.

    Args:
        events: the log, from `SessionStart` on.
        joined: the events may begin between two runs, as an observer of `agent.events` sees them.
        prefix: they may stop anywhere, as after a crash.

    Raises:
        GrammarError: names the seq, the event and what was expected in its place.
    """
    _run(LogGrammar(joined=joined), events, prefix=prefix)


def check_run(events: Iterable[e.AnyEvent], *, prefix: bool = False) -> None:
    """Checks the events of exactly one run, its children included: from `AgentStart` to `AgentEnd`.

    They may be numbered from anywhere or, as values that are in no log yet, all be -1.

    Raises:
        GrammarError: names the seq, the event and what was expected in its place.
    """
    _run(LogGrammar(single=True), events, prefix=prefix)


def _run(grammar: LogGrammar, events: Iterable[e.AnyEvent], *, prefix: bool) -> None:
    for event in events:
        grammar.take(event)
    if not prefix:
        grammar.finish()


def verify(*, joined: bool = False) -> Callable[[Observable[e.AnyEvent]], Observable[e.AnyEvent]]:
    """Passes a session's events on and ends with `GrammarError` at the first that has no place.

        ─S─A─T─U─t─a─|      S session_start, A agent_start, T turn_start …
        verify()
        ─S─A─T─#            GrammarError: seq 3: message_update …: expected message_start …

    A completion inside a run is an error too; an error of the source passes through unchecked.
    ``joined``: the stream may begin between two runs, without `SessionStart`.
    """
    return _verifying(lambda: LogGrammar(joined=joined))


def verify_run() -> Callable[[Observable[e.AnyEvent]], Observable[e.AnyEvent]]:
    """Passes one run's events on and ends with `GrammarError` at the first that has no place.

        ─A─T─…─t─a─|        A agent_start … a agent_end, children included
        verify_run()
        ─A─T─…─t─a─|

    Completion and errors as in `verify`.
    """
    return _verifying(lambda: LogGrammar(single=True))


def _verifying(new_grammar: Callable[[], LogGrammar]) -> Callable[[Observable[e.AnyEvent]], Observable[e.AnyEvent]]:
    def operator(source: Observable[e.AnyEvent]) -> Observable[e.AnyEvent]:
        def subscribe(observer: abc.ObserverBase[e.AnyEvent], scheduler: abc.SchedulerBase | None = None) -> abc.DisposableBase:
            grammar = new_grammar()

            def on_next(event: e.AnyEvent) -> None:
                try:
                    grammar.take(event)
                except GrammarError as error:
                    observer.on_error(error)
                else:
                    observer.on_next(event)

            def on_completed() -> None:
                try:
                    grammar.finish()
                except GrammarError as error:
                    observer.on_error(error)
                else:
                    observer.on_completed()

            return source.subscribe(on_next, observer.on_error, on_completed, scheduler=scheduler)

        return Observable(subscribe)

    return operator
