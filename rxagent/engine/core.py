"""`AgentCore`: what stands under `Agent`: its session, how runs begin and end.

`Agent` is the face of it. What is public here is for those that run agents: runners and teams.
"""

from collections.abc import Coroutine, Iterable, Iterator
from contextlib import suppress
from copy import copy
from dataclasses import replace
from typing import Self

from rxagent.engine.acting import Acting
from rxagent.engine.closing import end_left_run, publish_left
from rxagent.engine.cold import running_loop
from rxagent.engine.config import matches
from rxagent.engine.inbox import Inbox
from rxagent.engine.launch import Launch
from rxagent.engine.listeners import Listeners
from rxagent.engine.loop import Loop
from rxagent.engine.place import Place
from rxagent.engine.restore import Restoring
from rxagent.engine.run import Run
from rxagent.engine.scope import Scope
from rxagent.engine.session import Journal, Session, new_id
from rxagent.errors import AgentBusy, UsageError
from rxagent.events import (
    AgentStart,
    AnyEvent,
    ConfigChanged,
    ErrorInfo,
    Origin,
    QueueChanged,
    SessionStart,
)
from rxagent.flow import Fault, Hub, Pending, print_fault
from rxagent.messages import (
    AnyMessage,
    AssistantMessage,
    Transcript,
)
from rxagent.signals import Signal
from rxagent.state import AgentState


class AgentCore(Acting):
    """A session, and the run of it that is going."""

    def _made(self) -> None:
        self._errors: Hub[Fault] = Hub()
        self._inbox = Inbox(self._queue_changed)
        self._open(self.new_session())

    @property
    def state(self) -> AgentState:
        """The present state: a snapshot, safe to read from any thread."""
        return self._session.state

    @property
    def signal(self) -> Signal | None:
        """The signal of the running run, None while idle."""
        return self._run.signal if self._run is not None else None

    def _initial(self, messages: tuple[AnyMessage, ...]) -> AgentState:
        config = self._setup.config()
        return AgentState(
            (self.name,), config.system_prompt, config.model, config.thinking_level, config.tools, Transcript(messages)
        )

    def _open(self, session: Session) -> None:
        self._session = session
        self._run: Run | None = None
        self._driven: Coroutine[object, object, None] | None = None
        self._scope: Scope | None = None
        self._place = Place()
        self._listeners: Listeners | None = None  # made for the first of them

    def _last(self) -> AnyMessage | None:
        """The last message a model would see."""
        for message in reversed(self.state.messages):
            if not (isinstance(message, AssistantMessage) and message.stop_reason in ("error", "aborted")):
                return message
        return None

    def _check_idle(self, what: str) -> None:
        self._bury()
        if self._run is not None:
            raise AgentBusy(
                f"{what}: a run is already going. Use steer(…) to reach it, follow_up(…) for after it, or await wait_for_idle()."
            )

    def _begin(self, what: str, launch: Launch, run: Run | None = None) -> Run:
        self._check_idle(what)
        loop = running_loop(f"agent.{what}")
        session, progress = self._session, self._session.progress
        session.restart()
        acting = self._acting
        if progress.next_speaker not in ("", acting.name):
            acting = self._hold(self.find(progress.next_speaker))
        run_id = progress.run_id if launch.take_up else new_id()
        run = run or self.new_run(session.origin(run_id, acting.name))
        run.begin(session.origin(run_id if launch.take_up else run.run_id, acting.name), session.gate)
        with self._place.lock:  # from here on other threads come in through the loop
            self._run, self._place.loop = run, loop
        scope = Scope(session, acting.setup, acting.config, self._inbox, run.signal, run.origin, acting.output, self._report)
        scope.find, scope.on_hand_over, scope.recovery = self.find, self._hold, launch.recovery
        self._scope = scope
        queued = {m.id for m in (*self._inbox.steering, *self._inbox.follow_ups, *progress.inputs)}
        named = tuple(m if m.id in queued else session.identify((m,))[0] for m in launch.messages)
        self._driven = drive = self._drive(run, scope, launch, named)
        run.task = loop.create_task(drive, name=f"rxagent run {run.run_id}")
        return run

    async def _drive(self, run: Run, scope: Scope, launch: Launch, messages: tuple[AnyMessage, ...]) -> None:
        failure: BaseException | None = None
        session = self._session
        forget = run.signal.on_cancel(session.gate.open)  # an abort may come before the loop listens to it
        pending = self._start_session()
        session.recorder = run.on_next
        try:
            if pending is not None:
                await session.settle(pending)
            loop = Loop(scope)
            await (loop.take_up() if launch.take_up else loop.run(messages, launch.resume))
            await session.finished()
        except GeneratorExit:  # its loop was closed with it inside: nobody failed
            raise
        except BaseException as error:
            failure = error
            if not isinstance(error, Exception):
                raise
        finally:
            forget()
            self._over(run, scope, failure)

    def _over(self, run: Run, scope: Scope, failure: BaseException | None = None) -> None:
        try:
            publish_left(scope)
        except Exception as error:  # whatever broke, the agent is not stuck in it
            failure = failure or error
        self._session.recorder = None
        self._run = self._scope = self._driven = self._place.loop = None
        run.expects(scope.output)
        run.finish(failure)

    def _bury(self) -> None:
        """Ends, as aborted, a run whose loop was closed with it inside; otherwise it does nothing."""
        with self._place.lock:
            run, scope, loop = self._run, self._scope, self._place.loop
            if run is None or scope is None or loop is None or not loop.is_closed():
                return
            if self._driven is not None:
                with suppress(RuntimeError):  # it wanted to wait for something once more
                    self._driven.close()
            if run.finished:
                return
            self._start_session()
            self._session.recorder = run.on_next
            if not self._session.progress.run_open:  # its loop hadn't come to it
                self._session.publish(AgentStart(origin=scope.origin))
            self._over(run, scope)

    # -- for those that run agents: runners and teams

    def new_session(self, session_id: str | None = None, journal: Journal | None = None) -> Session:
        """A session of its own for this agent, with the messages it was made with."""
        session = Session(self._initial(()), session_id=session_id, journal=journal, on_fault=self._report)
        if self._seed:
            session.state = session.published = self._initial(session.identify(self._seed))
        return session

    def restored(self, session_id: str, log: Iterable[AnyEvent], journal: Journal | None = None) -> Session:
        """The session of a stored log, ready to go on.

        Raises:
            UsageError: the log is of an agent of another name.
        """
        session = Session(AgentState((self.name,)), session_id=session_id, journal=journal, on_fault=self._report)
        Restoring(session).take_all(self._own(log))
        return session

    def _own(self, log: Iterable[AnyEvent]) -> Iterator[AnyEvent]:
        for event in log:
            if event.seq == 0 and event.origin.path != (self.name,):
                raise UsageError(f"the session is of the agent {'.'.join(event.origin.path)!r}, not of {self.name!r}")
            yield event

    def over(self, session: Session) -> Self:
        """An agent like this one on another session; this one's own transcript and queues stay as they are."""
        twin = copy(self)
        twin._setup = twin._home = replace(self._home)
        twin._holder = None
        twin._inbox = Inbox(twin._queue_changed)
        twin._inbox.steering, twin._inbox.follow_ups = session.state.steering, session.state.follow_ups
        twin._inbox.steering_mode, twin._inbox.follow_up_mode = self._inbox.steering_mode, self._inbox.follow_up_mode
        twin._open(session)
        return twin

    @property
    def session(self) -> Session:
        """Log, state and live stream of the conversation."""
        return self._session

    def new_run(self, origin: Origin) -> Run:
        """A run of this agent that has not begun."""
        return Run(origin, Signal(), self._output, self._report)

    def launch(self, what: str, launch: Launch, run: Run) -> Run:
        """Starts a run that was made beforehand."""
        return self._begin(what, launch, run)

    def fail(self, error: ErrorInfo) -> None:
        """Ends the running run, if there is one, as failed; from any thread."""
        scope = self._scope
        if scope is not None:
            scope.fail(error)

    def end_left_run(self) -> None:
        """Ends, as aborted, the run that a process which died left open in the log; without one it does nothing.

        What was done stays in the transcript; calls nobody knows the end of get an error result that says so.
        """
        end_left_run(self._session, lambda: self._acting, self._inbox)

    def _origin(self) -> Origin:
        return self._run.origin if self._run is not None else self._session.origin("", self.name)

    def _start_session(self) -> Pending | None:
        if self._session.next_seq == 0:
            messages = tuple(self.state.messages)
            return self._session.publish(SessionStart(self._setup.config(), messages, origin=self._session.origin("", self.name)))
        if not matches(self._setup.config(), self.state):  # the log is of another process, or another agent took over
            return self._session.publish(ConfigChanged(self._setup.config(), origin=self._origin()))
        return None

    def _publish(self, event: AnyEvent) -> None:
        if self._session.next_seq == 0:
            self._start_session()
        self._session.publish(event)

    def _queue_changed(self) -> None:
        def publish() -> None:
            self._publish(QueueChanged(self._inbox.steering, self._inbox.follow_ups, origin=self._origin()))

        self._place.do(publish)

    def _config_changed(self) -> None:
        def publish() -> None:
            session = self._session
            config = self._setup.config()
            if session.next_seq:
                session.publish(ConfigChanged(config, origin=self._origin()))
            else:  # before its first event a session's configuration is simply what it starts with
                session.state = session.published = self._initial(tuple(session.state.messages))

        self._place.do(publish)

    def _report(self, fault: Fault) -> None:
        if self._errors.observed:
            self._errors.on_next(fault)
        else:
            print_fault(fault)
