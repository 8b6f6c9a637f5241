"""`Agent`: a conversation and its runs. Hot: a prompt starts at once, whoever watches."""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace

from reactivex import Observable, abc

from rxagent.engine.closing import left, publish_left
from rxagent.engine.cold import running_loop
from rxagent.engine.config import LoopConfig, ModelLike, Output, Setup, ToolMode, as_models, matches
from rxagent.engine.inbox import Inbox, QueueMode
from rxagent.engine.launch import Launch, with_answers, with_input
from rxagent.engine.limits import Limits, Retry
from rxagent.engine.listeners import ListenerLike, Listeners
from rxagent.engine.loop import Loop
from rxagent.engine.profile import Profile
from rxagent.engine.restore import Restoring
from rxagent.engine.run import Run, RunResult
from rxagent.engine.scope import Scope
from rxagent.engine.session import Journal, Session, new_id
from rxagent.errors import AgentBusy, NothingToContinue, UsageError
from rxagent.events import (
    AnyEvent,
    ConfigChanged,
    ErrorInfo,
    Origin,
    QueueChanged,
    SessionReset,
    SessionStart,
)
from rxagent.flow import Direct, Fault, Hub, OnFault, Pending, print_fault
from rxagent.hooks import Hooks
from rxagent.messages import (
    AnyMessage,
    AssistantMessage,
    ImagePart,
    TextPart,
    ThinkingLevel,
    Transcript,
    UserMessage,
    as_messages,
)
from rxagent.models.base import Model
from rxagent.signals import Signal
from rxagent.state import AgentState
from rxagent.tools import Tool, as_tools


class Agent:
    """A stateful conversation with a model and tools.

    Args:
        model: a `Model`, a name for ``rxagent.models.resolve``, or a list of them (fallbacks, in order).
        name: its name in events; the first step of their ``path``.
        system_prompt: what the model is told first.
        tools: tools, or plain functions to make tools of.
        messages: transcript to start with.
        thinking_level: how much the model should reason.
        streaming: False asks for each answer in one piece; there are no `MessageUpdate` then.
        output: a type the last answer must have; ``RunResult.output`` holds it.
        hooks, limits, retry: see `Hooks`, `Limits`, `Retry`.
        deps: anything; tools find it as ``ctx.deps``.

    Raises:
        UnknownModel, MissingKey, InvalidTool, DuplicateTool, InvalidMessage: what is wrong with the arguments.
    """

    def __init__(  # noqa: PLR0913 - the contract's constructor, all but the model by name
        self,
        model: ModelLike,
        *,
        name: str = "agent",
        system_prompt: str = "",
        tools: Sequence[Tool | Callable[..., object]] = (),
        messages: Sequence[AnyMessage] = (),
        thinking_level: ThinkingLevel = "off",
        streaming: bool = True,
        output: type | None = None,
        hooks: Hooks | None = None,
        limits: Limits | None = None,
        retry: Retry | None = None,
        deps: object = None,
    ) -> None:
        self.name = name
        self.streaming = streaming
        self.hooks = hooks or Hooks()
        self.limits = limits or Limits()
        self.retry_policy = retry or Retry()
        self.deps = deps
        self.tool_mode: ToolMode = "parallel"
        self._output_type = output
        self._output = Output(output) if output is not None else None
        self._setup = self._home = Setup(as_models(model), system_prompt, thinking_level, as_tools(tools))
        self._errors: Hub[Fault] = Hub()
        self._inbox = Inbox(self._queue_changed)
        self._seed = as_messages(list(messages))
        self._holder: Profile | None = None
        self._open(self.new_session())

    def _initial(self, messages: tuple[AnyMessage, ...]) -> AgentState:
        config = self._setup.config()
        return AgentState(
            (self.name,), config.system_prompt, config.model, config.thinking_level, config.tools, Transcript(messages)
        )

    def _open(self, session: Session) -> None:
        self._session = session
        self._run: Run | None = None
        self._scope: Scope | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._listeners = Listeners(session.events, lambda: self.signal)

    def __repr__(self) -> str:
        return f"<Agent {self.name!r} {self._setup.models[0].name}: {len(self.state.messages)} messages>"

    # -- what it is

    @property
    def session_id(self) -> str:
        """Id of the whole conversation."""
        return self._session.id

    @property
    def state(self) -> AgentState:
        """The present state: a snapshot, safe to read from any thread."""
        return self._session.state

    @property
    def events(self) -> Observable[AnyEvent]:
        """All events of the session as they happen; doesn't end with a run."""
        return self._session.events

    @property
    def states(self) -> Observable[AgentState]:
        """The current state first, then every change."""

        def subscribe(observer: abc.ObserverBase[AgentState]) -> abc.DisposableBase:
            observer.on_next(self._session.published)
            return self._session.states.subscribe(observer)

        return Direct(subscribe)

    @property
    def errors(self) -> Observable[Fault]:
        """Faults of observers, listeners and abandoned tools; printed to stderr while nobody subscribes here."""
        return self._errors

    @property
    def signal(self) -> Signal | None:
        """The signal of the running run, None while idle."""
        return self._run.signal if self._run is not None else None

    @property
    def is_running(self) -> bool:
        """Whether a run is going."""
        return self._run is not None

    @property
    def model(self) -> Model:
        """The model that is asked first. Assign a model, a name or a list; it holds from the next request on."""
        return self._setup.models[0]

    @model.setter
    def model(self, model: ModelLike) -> None:
        self._setup.models = as_models(model)
        self._config_changed()

    @property
    def system_prompt(self) -> str:
        """The system prompt; assignable."""
        return self._setup.system_prompt

    @system_prompt.setter
    def system_prompt(self, system_prompt: str) -> None:
        self._setup.system_prompt = system_prompt
        self._config_changed()

    @property
    def thinking_level(self) -> ThinkingLevel:
        """How much the model should reason; assignable."""
        return self._setup.thinking_level

    @thinking_level.setter
    def thinking_level(self, level: ThinkingLevel) -> None:
        self._setup.thinking_level = level
        self._config_changed()

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The tools; assign tools or functions."""
        return self._setup.tools

    @tools.setter
    def tools(self, tools: Sequence[Tool | Callable[..., object]]) -> None:
        self._setup.tools = as_tools(tools)
        self._config_changed()

    @property
    def steering_mode(self) -> QueueMode:
        """How many steering messages a turn takes in; assignable."""
        return self._inbox.steering_mode

    @steering_mode.setter
    def steering_mode(self, mode: QueueMode) -> None:
        self._inbox.steering_mode = mode

    @property
    def follow_up_mode(self) -> QueueMode:
        """How many follow-ups are taken when a run would stop; assignable."""
        return self._inbox.follow_up_mode

    @follow_up_mode.setter
    def follow_up_mode(self, mode: QueueMode) -> None:
        self._inbox.follow_up_mode = mode

    # -- runs

    def prompt(self, input: str | AnyMessage | Sequence[str | AnyMessage], *, images: Sequence[ImagePart] = ()) -> Run:  # noqa: A002 - the contract's word
        """Starts a run at once and returns it.

        Raises:
            AgentBusy: a run is going.
            InvalidMessage: the input is neither text nor messages.
            NoRunningLoop: there is no running asyncio loop; see ``prompt_sync``.
        """
        messages = as_messages(input)
        if images:
            last = messages[-1] if messages else UserMessage("")
            if not isinstance(last, UserMessage):
                raise UsageError("images go with text or a UserMessage")
            parts = [part for part in last.content if not isinstance(part, TextPart) or part.text]
            messages = (*messages[:-1], UserMessage([*parts, *images], id=last.id, timestamp=last.timestamp))
        if not messages:
            raise NothingToContinue("an empty prompt: pass text or a message, or call continue_()")
        self._check_idle("prompt")
        self.end_left_run()
        return self._begin("prompt", with_input(self._session, messages))

    def continue_(self) -> Run:
        """Goes on from the present transcript, or from what is queued.

        Raises:
            AgentBusy: a run is going.
            NothingToContinue: the transcript is empty or ends with an answer, and nothing is queued.
        """
        self._check_idle("continue_")
        if self._last() is not None and not isinstance(self._last(), AssistantMessage):
            return self._begin("continue_", Launch())
        queued = self._inbox.next_steering() or self._inbox.next_follow_ups()
        if not queued:
            raise NothingToContinue("nothing to continue from: the transcript ends with an answer and no message is queued")
        # steering is taken in at the start of any run; follow-ups have to be handed over
        return self._begin("continue_", with_input(self._session, () if self._inbox.steering else queued))

    def retry(self) -> Run:
        """Makes the last request again, after a failed or aborted run.

        Raises:
            AgentBusy: a run is going.
            NothingToContinue: the last run did not fail.
        """
        self._check_idle("retry")
        if self._session.progress.outcome not in ("failed", "aborted", "limit") or self._last() is None:
            raise NothingToContinue("nothing to retry: the last run did not fail")
        if isinstance(self._last(), AssistantMessage):
            raise NothingToContinue("nothing to retry: the last answer is complete")
        return self._begin("retry", Launch())

    def resume(self, answers: Mapping[str, object]) -> Run:
        """Goes on with an interrupted run: answers (or `Cancel`) by interrupt id; what isn't answered is asked again.

        Raises:
            AgentBusy: a run is going.
            InterruptError: an id that nothing waits for, or that was settled before.
            NothingToContinue: the last run was not interrupted.
        """
        self._check_idle("resume")
        return self._begin("resume", with_answers(self._session, answers))

    def prompt_sync(self, input: str | AnyMessage | Sequence[str | AnyMessage], *, images: Sequence[ImagePart] = ()) -> RunResult:  # noqa: A002 - as in prompt
        """Runs a prompt to its end without a running loop, for scripts. Ctrl-C aborts the run cleanly.

        Raises:
            UsageError: a loop is running here already; await ``prompt`` instead.
        """
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return asyncio.run(self._whole(input, images))
        raise UsageError("prompt_sync inside a running asyncio loop would block it: use await agent.prompt(…)")

    async def _whole(self, input: str | AnyMessage | Sequence[str | AnyMessage], images: Sequence[ImagePart]) -> RunResult:  # noqa: A002 - as in prompt
        run = self.prompt(input, images=images)
        try:
            result = await run.result()
        except asyncio.CancelledError:
            run.abort("interrupted")
            await self.wait_for_idle()
            raise
        await self.wait_for_idle()
        return result

    def steer(self, message: str | AnyMessage | Sequence[str | AnyMessage], *, interrupt: bool = False) -> None:
        """Queues a message for the running run's next turn; from any thread.

        ``interrupt``: the tools that are running are cancelled first.
        """
        self._inbox.steer(self._session.identify(as_messages(message)))
        cut = self._inbox.on_interrupt
        if interrupt and cut is not None:
            self._on_loop(cut)

    def follow_up(self, message: str | AnyMessage | Sequence[str | AnyMessage]) -> None:
        """Queues a message for when the run would stop; from any thread."""
        self._inbox.follow_up(self._session.identify(as_messages(message)))

    def clear_queues(self) -> tuple[AnyMessage, ...]:
        """Empties both queues and returns what they held."""
        return self._inbox.clear()

    def abort(self, reason: str | None = None) -> None:
        """Aborts the running run, if there is one; from any thread."""
        run = self._run
        if run is not None:
            run.abort(reason)

    async def wait_for_idle(self) -> None:
        """Returns when no run is going and every listener has handled its last event.

        Raises:
            WouldDeadlock: called from a listener or tool of the running run.
        """
        self._session.gate.check("wait_for_idle")
        while (run := self._run) is not None:
            await run.ended()
        await self._listeners.drained()

    def reset(self) -> None:
        """Clears transcript and queues.

        Raises:
            AgentBusy: a run is going.
        """
        self._check_idle("reset")
        self._inbox.clear()
        self._session.branches.clear()
        self._publish(SessionReset(origin=self._origin()))

    def subscribe(
        self,
        listener: ListenerLike,
        *,
        capacity: int = 0,
        hold_timeout: float | None = None,
        critical: bool = False,
    ) -> Callable[[], None]:
        """Calls ``listener(event)`` or ``listener(event, signal)`` with every event; returns the unsubscribe function.

        Coroutine functions are awaited: the run waits while more than ``capacity`` events of this
        listener are unfinished. One that takes longer than ``hold_timeout`` seconds is dropped and
        reported, as is one that raises; ``critical``: its failure ends the run.
        """

        def fail(fault: Fault) -> None:
            if self._scope is not None:
                text = f"a critical listener raised {type(fault.error).__name__}: {fault.error}"
                self._scope.fail(ErrorInfo(text, "listener"))

        def fail_and_report(fault: Fault) -> None:
            fail(fault)
            self._report(fault)

        if self._listeners.is_async(listener):
            on_fault: OnFault | None = fail_and_report if critical else self._report
        else:
            on_fault = fail if critical else None  # the hub itself reports it
        return self._listeners.add(listener, capacity=capacity, hold_timeout=hold_timeout, on_fault=on_fault)

    # -- the inside

    def _last(self) -> AnyMessage | None:
        """The last message a model would see."""
        for message in reversed(self.state.messages):
            if not (isinstance(message, AssistantMessage) and message.stop_reason in ("error", "aborted")):
                return message
        return None

    def _check_idle(self, what: str) -> None:
        if self._run is not None:
            raise AgentBusy(
                f"{what}: a run is already going. Use steer(…) to reach it, follow_up(…) for after it, or await wait_for_idle()."
            )

    def _begin(self, what: str, launch: Launch, run: Run | None = None) -> Run:
        self._check_idle(what)
        loop = self._loop = running_loop(f"agent.{what}")
        session, progress = self._session, self._session.progress
        session.restart()
        if progress.next_speaker not in ("", self._acting.name):
            self._hold(self.find(progress.next_speaker))
        acting = self._acting
        run_id = progress.run_id if launch.take_up else new_id()
        run = run or self.new_run(session.origin(run_id, acting.name))
        run.begin(session.origin(run_id if launch.take_up else run.run_id, acting.name), session.gate)
        self._run = run
        scope = Scope(session, acting.setup, acting.config, self._inbox, run.signal, run.origin, acting.output, self._report)
        scope.find, scope.on_hand_over, scope.recovery = self.find, self._hold, launch.recovery
        self._scope = scope
        queued = {m.id for m in (*self._inbox.steering, *self._inbox.follow_ups, *progress.inputs)}
        named = tuple(m if m.id in queued else session.identify((m,))[0] for m in launch.messages)
        drive = self._drive(run, scope, replace(launch, messages=named))
        run.task = loop.create_task(drive, name=f"rxagent run {run.run_id}")
        return run

    async def _drive(self, run: Run, scope: Scope, launch: Launch) -> None:
        failure: BaseException | None = None
        session = self._session
        forget = run.signal.on_cancel(session.gate.open)  # an abort may come before the loop listens to it
        pending = self._start_session()
        session.recorder = run.on_next
        try:
            if pending is not None:
                await session.settle(pending)
            loop = Loop(scope)
            await (loop.take_up() if launch.take_up else loop.run(launch.messages, launch.resume))
            await session.finished()
        except BaseException as error:
            failure = error
            if not isinstance(error, Exception):
                raise
        finally:
            forget()
            publish_left(scope)
            session.recorder = None
            self._run = self._scope = self._loop = None
            run.expects(scope.output)
            run.finish(failure)

    # -- for those that run agents: runners and teams

    def new_session(self, session_id: str | None = None, journal: Journal | None = None) -> Session:
        """A session of its own for this agent, with the messages it was made with."""
        session = Session(self._initial(()), session_id=session_id, journal=journal, on_fault=self._report)
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

    def over(self, session: Session) -> "Agent":
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
        session, acting = self._session, self._acting
        deepest_first = sorted(session.branches.values(), key=lambda branch: -len(branch.state.path))
        for each in (*deepest_first, session):
            progress = each.progress
            if progress.run_open:
                origin = each.origin(progress.run_id, progress.speaker)
                scope = Scope(each, acting.setup, acting.config, self._inbox, Signal(), origin)
                for event in left(scope):
                    each.publish(event)
        if session.progress.outcome != "interrupted":
            session.branches.clear()

    def profile(self) -> Profile:
        """What a run of this agent on another session, or as a tool, is made with."""
        return replace(self._own_profile(), setup=replace(self._home))

    def find(self, name: str) -> Profile:
        """The profile of this agent, or of one it can hand over to, directly or by others.

        Raises:
            UsageError: there is none of this name.
        """
        seen: list[Agent] = [self]
        for agent in seen:
            if agent.name == name:
                return agent.profile()
            targets = [getattr(tool, "target", None) for tool in agent._home.tools]
            seen.extend(target for target in targets if isinstance(target, Agent) and target not in seen)
        raise UsageError(f"no agent {name!r} can be reached from {self.name!r} by handoff(…); found {[a.name for a in seen]}")

    @property
    def _acting(self) -> Profile:
        """The agent that has the conversation."""
        return self._holder or self._own_profile()

    def _own_profile(self) -> Profile:
        config = LoopConfig(
            model=self._home.models,
            name=self.name,
            thinking_level=self._home.thinking_level,
            streaming=self.streaming,
            output=self._output_type,
            hooks=self.hooks,
            limits=self.limits,
            retry=self.retry_policy,
            tool_mode=self.tool_mode,
            deps=self.deps,
        )
        return Profile(self.name, self._home, config, self._output, self._seed, self.find)

    def _hold(self, profile: Profile) -> None:
        """Another agent has the conversation from here on; the limits stay this one's."""
        self._holder = replace(profile, config=replace(profile.config, limits=self.limits))
        self._setup = profile.setup

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

    def _on_loop(self, work: Callable[[], object]) -> None:
        """Does it on the loop of the running run; at once where there is none, or where it is here."""
        loop = self._loop
        try:
            here = asyncio.get_running_loop()
        except RuntimeError:
            here = None
        if loop is None or loop is here or loop.is_closed():
            work()
        else:
            loop.call_soon_threadsafe(work)

    def _queue_changed(self) -> None:
        def publish() -> None:
            self._publish(QueueChanged(self._inbox.steering, self._inbox.follow_ups, origin=self._origin()))

        self._on_loop(publish)

    def _config_changed(self) -> None:
        def publish() -> None:
            session = self._session
            config = self._setup.config()
            if session.next_seq:
                session.publish(ConfigChanged(config, origin=self._origin()))
            else:  # before its first event a session's configuration is simply what it starts with
                session.state = session.published = self._initial(tuple(session.state.messages))

        self._on_loop(publish)

    def _report(self, fault: Fault) -> None:
        if self._errors.observed:
            self._errors.on_next(fault)
        else:
            print_fault(fault)
