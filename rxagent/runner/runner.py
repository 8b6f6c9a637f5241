"""`Runner`: runs of one agent over many sessions, each the fold of its log."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from weakref import WeakValueDictionary

from reactivex import Observable

from rxagent.engine.agent import Agent
from rxagent.engine.cold import running_loop
from rxagent.engine.launch import Launch, checked, with_answers, with_input
from rxagent.engine.profile import UnknownCalls
from rxagent.engine.run import Run
from rxagent.engine.session import Session, new_id
from rxagent.errors import AgentBusy, NothingToContinue, UnknownSession, UsageError, told
from rxagent.events import AgentStart, AnyEvent, ErrorInfo, Origin
from rxagent.flow import from_aiter
from rxagent.log import EventStore, SessionInfo
from rxagent.messages import AnyMessage, as_messages
from rxagent.runner.forking import moved
from rxagent.runner.journal import StoreJournal
from rxagent.runner.logs import KeptLogs, StoredLogs
from rxagent.runner.pace import Replayed
from rxagent.state import AgentState, reduce

POLICIES = ("ask", "rerun", "fail")


@dataclass(frozen=True, slots=True)
class _Plan:
    """What a run is to do with its session once that is loaded. ``afresh``: what a dead process left open ends first."""

    what: str
    launch: Callable[[Agent], Launch]
    must_exist: bool
    named: bool
    afresh: bool = False


class Runner:
    """Runs an agent (or a team) over sessions; many at once, one run per session.

    Each run works on a twin of the agent, so the agent's own transcript stays as it is.

    Args:
        agent: the agent; its name is the first step of every path, so a session is resumed by an agent of that name.
        store: where sessions are kept. Without one they live with their runs; named ones, and those that wait for
            answers, as long as the runner.
        unknown_calls: what becomes of a tool call that a dead process had begun: ``ask`` (as an interrupt),
            ``rerun``, or ``fail`` (an error result that says so).

    Raises:
        UsageError: the policy is none of these, the agent no agent, or the store no store.
    """

    def __init__(self, agent: Agent, store: EventStore | None = None, unknown_calls: UnknownCalls = "ask") -> None:
        if unknown_calls not in POLICIES:
            raise UsageError(f"unknown_calls is one of {', '.join(POLICIES)}, not {unknown_calls!r}")
        if not isinstance(agent, Agent):  # pyright: ignore[reportUnnecessaryIsInstance] callers aren't all typed
            raise UsageError(f"Runner takes an Agent or a team, not {agent!r:.80}")
        if store is not None and not callable(getattr(store, "load", None)):
            raise UsageError(f"a store is an EventStore, such as SqliteStore(path), not {store!r:.80}")
        self.agent = agent
        self.store = store
        self.unknown_calls: UnknownCalls = unknown_calls
        self._logs = KeptLogs() if store is None else StoredLogs(store)
        self._live: dict[str, tuple[Run, asyncio.Task[None]]] = {}
        self._loading: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._opened: WeakValueDictionary[str, Agent] = WeakValueDictionary()

    def __repr__(self) -> str:
        return f"<Runner of {self.agent.name!r} over {self.store!r}: {len(self._live)} runs>"

    # -- runs

    def query(self, text: str, session: str | None = None) -> Run:
        """Starts a run with a text; see ``run``."""
        return self.run(text, session)

    def run(self, messages: str | AnyMessage | Sequence[str | AnyMessage], session: str | None = None) -> Run:
        """Starts a run with messages, in a new session or in the named one, and returns it at once.

        The `Run` is awaitable, an Observable and an async iterator. What the session's last run asked is
        cancelled by it; the rest of a run that a dead process left open is ended as aborted (``resume`` goes on with
        it instead).

        Raises:
            InvalidMessage: the input is neither text nor messages.
            AgentBusy: a run of this session is going.
            NoRunningLoop: there is no running asyncio loop.
            StoreError: by ``await``: the session can't be read, or its events can't be stored (then the log counts, which
                ends with what was stored, not what the run had shown by then; ``resume`` goes on from there).
        """
        given = as_messages(messages)
        if not given:
            raise NothingToContinue("an empty prompt: pass text or a message")

        def launch(agent: Agent) -> Launch:
            return with_input(agent.session, given)

        plan = _Plan("run", launch, must_exist=False, named=session is not None, afresh=True)
        return self._start(new_id() if session is None else session, plan)

    def resume(self, session: str, answers: Mapping[str, object] | None = None) -> Run:
        """Goes on with an interrupted run, in a new run, or with one that a dead process left open, in the same run.

        Args:
            session: its id.
            answers: an answer (a JSON value) or `Cancel` per interrupt id. What isn't answered is asked again,
                under the same id. A question about a lost call takes ``"rerun"``, ``"fail"`` or ``{"result": …}``.

        Raises:
            AgentBusy: a run of this session is going.
            UsageError, Unserialisable, InterruptError: the answers are no mapping, or one can't be an answer.
            InterruptError: by ``await``: nothing waits under an id, it was settled before, or its schema wants another answer.
            NothingToContinue: by ``await``: the session waits for nothing.
            UnknownSession, StoreError: by ``await``.
        """
        if answers is not None and not isinstance(answers, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance] callers aren't all typed
            raise UsageError(f"resume takes the answers by interrupt id, as {{id: answer}}, not {answers!r:.80}")
        given = dict(answers or {})
        checked(given)

        def launch(agent: Agent) -> Launch:
            return with_answers(agent.session, given, self.unknown_calls)

        return self._start(session, _Plan("resume", launch, must_exist=True, named=True))

    # -- sessions

    async def open(self, session: str | None = None) -> Agent:
        """The agent over a session, new or stored: prompt it, steer it, watch it; all of it is kept.

        The same object while somebody refers to it, and the one that runs of this session work on.

        Raises:
            StoreError: the session can't be read.
        """
        return await self._agent(new_id() if session is None else session, must_exist=False, named=session is not None)

    async def sessions(self) -> list[SessionInfo]:
        """The sessions there are, in the order in which they were begun."""
        return await self._logs.sessions()

    async def events(self, session: str) -> list[AnyEvent]:
        """A session's log; raises `UnknownSession`."""
        return list(await self._logs.load(session))

    async def state(self, session: str, seq: int | None = None) -> AgentState:
        """The state of a session, or what it was right after event ``seq``.

        Raises:
            UnknownSession: there is no such session.
            UsageError: it has no such event.
        """
        log = await self._logs.load(session)
        state = AgentState(log[0].origin.path)
        for event in log[: _until(log, seq)]:
            state = reduce(state, event)
        return state

    async def fork(self, session: str, seq: int | None = None) -> str:
        """Makes a new session of the events up to and with ``seq`` (None: all), and returns its id.

        The original is untouched. A fork from within a run is like the log of a process that died there:
        ``resume`` goes on, ``run`` begins anew.

        Raises:
            UnknownSession: there is no such session.
            UsageError: it has no such event.
        """
        log = await self._logs.load(session)
        fork = new_id()
        await self._logs.put(fork, moved(log[: _until(log, seq)], fork))
        return fork

    def replay(self, session: str, speed: float | None = None) -> Observable[AnyEvent]:
        """The stored events of a session as a cold Observable; waits for its consumers.

        Args:
            session: its id.
            speed: 1.0 in the time it took (as far as the log tells, see `times`), 2.0 in half of it; None: at once.

        Raises:
            UsageError: the speed is not more than 0.
            UnknownSession, StoreError: to the subscriber.
        """
        if speed is not None and not speed > 0:
            raise UsageError(f"replay: speed is more than 0, or None for at once; not {speed}")
        return from_aiter(Replayed(lambda: self._logs.load(session), speed))

    # -- inside

    def _start(self, session_id: str, plan: _Plan) -> Run:
        loop = running_loop(f"runner.{plan.what}")
        before = self._live.get(session_id)
        if before is not None and not before[0].finished:
            raise AgentBusy(f"{plan.what}: a run of session {session_id!r} is going; await it first, or use another session")
        agent = self.agent
        run = agent.new_run(Origin(session_id, new_id(), agent.name, (agent.name,)))
        earlier = None if before is None else before[1]
        task = loop.create_task(self._drive(run, session_id, plan, earlier), name=f"rxagent runner {session_id}")
        self._live[session_id] = (run, task)
        return run

    async def _drive(self, run: Run, session_id: str, plan: _Plan, earlier: asyncio.Task[None] | None) -> None:
        try:
            if earlier is not None:
                await asyncio.wait((earlier,))
            await self._begin(run, session_id, plan)
        except BaseException as error:
            if not run.finished:
                run.finish(error)
            if not isinstance(error, Exception):
                raise
        else:
            with suppress(Exception):  # it is the run's, and told to whoever awaits that
                await run.ended()
        finally:
            self._logs.settle(session_id, run, named=plan.named)
            if self._live.get(session_id, (None,))[0] is run:
                del self._live[session_id]

    async def _begin(self, run: Run, session_id: str, plan: _Plan) -> None:
        agent = await self._agent(session_id, must_exist=plan.must_exist, named=plan.named)
        if plan.afresh and not agent.is_running:
            agent.end_left_run()
            await agent.session.acknowledged()
        launch = plan.launch(agent)
        if launch.take_up:
            run.recall(_open_run(await self._logs.load(session_id), agent.session.progress.run_id))
        agent.launch(plan.what, launch, run)

    async def _agent(self, session_id: str, *, must_exist: bool, named: bool) -> Agent:
        """The twin of the agent that works on a session: the one there is, or a new one."""
        async with self._loading.setdefault(session_id, asyncio.Lock()):
            agent = self._opened.get(session_id)
            if agent is None or _is_cut_off(agent) or await self._grown(agent):
                agent = await self._twin(session_id, must_exist=must_exist, named=named)
                self._opened[session_id] = agent
            return agent

    async def _twin(self, session_id: str, *, must_exist: bool, named: bool) -> Agent:
        log: Sequence[AnyEvent] = ()
        if named:
            try:
                log = await self._logs.load(session_id)
            except UnknownSession:
                if must_exist:
                    raise
        session = self.agent.restored(session_id, log) if log else self.agent.new_session(session_id)
        agent = self.agent.over(session)
        self._keep(session, agent)
        return agent

    async def _grown(self, agent: Agent) -> bool:
        """Whether somebody else has written the session of an agent that is open here."""
        if agent.is_running:
            return False
        try:
            return bool(await self._logs.load(agent.session.id, agent.session.next_seq))
        except UnknownSession:
            return False

    def _keep(self, session: Session, agent: Agent) -> None:
        def failed(error: Exception) -> None:
            agent.fail(ErrorInfo(f"the session can't be stored: {told(error)}", "store"))

        journal = self._logs.journal(session.id, session.next_seq, failed)
        session.journal = journal
        if isinstance(journal, StoreJournal):
            session.events.subscribe(journal.watch)


def _is_cut_off(agent: Agent) -> bool:
    """Whether an agent goes beyond what its store took, so that only the log tells how the session stands."""
    journal = agent.session.journal
    return isinstance(journal, StoreJournal) and journal.failure is not None and not agent.is_running


def _open_run(log: Sequence[AnyEvent], run_id: str) -> list[AnyEvent]:
    """The events from the start of a root run on."""
    for index in range(len(log) - 1, -1, -1):
        event = log[index]
        if isinstance(event, AgentStart) and event.origin.run_id == run_id and not event.origin.call_id:
            return list(log[index:])
    return []


def _until(log: Sequence[AnyEvent], seq: int | None) -> int:
    if seq is None:
        return len(log)
    if not 0 <= seq < len(log):
        raise UsageError(f"the session has events 0 to {len(log) - 1}, so none with seq {seq}")
    return seq + 1
