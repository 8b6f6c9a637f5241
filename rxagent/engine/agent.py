"""`Agent`: a conversation and its runs. Hot: a prompt starts at once, whoever watches."""

import asyncio
from collections.abc import Callable, Mapping, Sequence

from reactivex import Observable, abc
from reactivex.disposable import Disposable

from rxagent.engine.config import ModelLike, as_models, one_of, prompt_text
from rxagent.engine.core import AgentCore
from rxagent.engine.inbox import QueueMode
from rxagent.engine.launch import Launch, with_answers, with_input
from rxagent.engine.listeners import ListenerLike, Listeners
from rxagent.engine.run import Run, RunResult
from rxagent.errors import InvalidMessage, NothingToContinue, UsageError, told
from rxagent.events import (
    AnyEvent,
    ErrorInfo,
    SessionReset,
)
from rxagent.flow import Fault, OnFault
from rxagent.flow.direct import Direct
from rxagent.flow.faults import call_site
from rxagent.flow.holds import local
from rxagent.flow.hub import OBSERVER_FAULTS
from rxagent.messages import (
    AnyMessage,
    AssistantMessage,
    ImagePart,
    TextPart,
    ThinkingLevel,
    UserMessage,
    as_messages,
)
from rxagent.models.base import Model
from rxagent.state import AgentState
from rxagent.tools import Tool, as_tools

Images = ImagePart | Sequence[ImagePart]


class Agent(AgentCore):
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
        UnknownModel, MissingKey, InvalidTool, DuplicateTool, InvalidMessage, InvalidOption: what is wrong with the arguments.
    """

    def __repr__(self) -> str:
        return f"<Agent {self.name!r} {self._setup.models[0].name}: {len(self.state.messages)} messages>"

    # -- what it is

    @property
    def session_id(self) -> str:
        """Id of the whole conversation."""
        return self._session.id

    @property
    def events(self) -> Observable[AnyEvent]:
        """All events of the session as they happen; doesn't end with a run."""
        return self._session.events

    @property
    def states(self) -> Observable[AgentState]:
        """The current state first, then every change."""

        def subscribe(observer: abc.ObserverBase[AgentState]) -> abc.DisposableBase:
            state = self._session.published
            outer, local.slot.owner = local.slot.owner, None  # not a value of whoever's handler subscribes here
            try:
                observer.on_next(state)
            except OBSERVER_FAULTS as error:
                self._report(Fault(error, state, str(call_site())))
                return Disposable()
            finally:
                local.slot.owner = outer
            return self._session.states.subscribe(observer)

        return Direct(subscribe)

    @property
    def errors(self) -> Observable[Fault]:
        """Faults of observers, listeners and abandoned tools; printed to stderr while nobody subscribes here."""
        return self._errors

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
        self._setup.system_prompt = prompt_text(system_prompt)
        self._config_changed()

    @property
    def thinking_level(self) -> ThinkingLevel:
        """How much the model should reason; assignable."""
        return self._setup.thinking_level

    @thinking_level.setter
    def thinking_level(self, level: ThinkingLevel) -> None:
        self._setup.thinking_level = one_of(level, ThinkingLevel, "thinking_level")
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

    def prompt(self, input: str | AnyMessage | Sequence[str | AnyMessage], *, images: Images = ()) -> Run:  # noqa: A002 - the contract's word
        """Starts a run at once and returns it.

        Raises:
            AgentBusy: a run is going.
            InvalidMessage: the input is neither text nor messages.
            NoRunningLoop: there is no running asyncio loop; see ``prompt_sync``.
        """
        messages = as_messages(input)
        if images:
            images = (images,) if isinstance(images, ImagePart) else images
            wrong = next((image for image in images if not isinstance(image, ImagePart)), None)  # pyright: ignore[reportUnnecessaryIsInstance] callers without a type checker
            if wrong is not None:
                raise InvalidMessage(f"images are ImagePart(data, mime_type) or ImagePart(url=…), not {wrong!r:.100}")
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
            found = "is empty" if self._last() is None else "ends with an answer"
            raise NothingToContinue(f"nothing to continue from: the transcript {found} and no message is queued")
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
            InterruptError: an id that nothing waits for, that was settled before, or whose schema the answer doesn't fit.
            NothingToContinue: the last run was not interrupted.
        """
        self._check_idle("resume")
        return self._begin("resume", with_answers(self._session, answers))

    def prompt_sync(self, input: str | AnyMessage | Sequence[str | AnyMessage], *, images: Images = ()) -> RunResult:  # noqa: A002 - as in prompt
        """Runs a prompt to its end without a running loop, for scripts. Ctrl-C aborts the run cleanly.

        Raises:
            UsageError: a loop is running here already; await ``prompt`` instead.
        """
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return asyncio.run(self._whole(input, images))
        raise UsageError("prompt_sync inside a running asyncio loop would block it: use await agent.prompt(…)")

    async def _whole(self, input: str | AnyMessage | Sequence[str | AnyMessage], images: Images) -> RunResult:  # noqa: A002 - as in prompt
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
            self._place.do(cut)

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
            self._bury()

    async def wait_for_idle(self) -> None:
        """Returns when no run is going and every listener has handled its last event.

        Raises:
            WouldDeadlock: called from a listener or tool of the running run.
        """
        self._session.gate.check("wait_for_idle")
        self._bury()
        while (run := self._run) is not None:
            await run.ended()
        if self._listeners is not None:
            await self._listeners.drained()

    def reset(self) -> None:
        """Clears transcript and queues.

        Raises:
            AgentBusy: a run is going.
        """
        self._check_idle("reset")
        self._inbox.clear()
        self._session.branches.clear()
        self._place.do(lambda: self._publish(SessionReset(origin=self._origin())))

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
                text = f"a critical listener raised {told(fault.error)}"
                self._scope.fail(ErrorInfo(text, "listener"))

        def fail_and_report(fault: Fault) -> None:
            fail(fault)
            self._report(fault)

        listeners = self._listeners = self._listeners or Listeners(self._session.events, lambda: self.signal)
        if listeners.is_async(listener):
            on_fault: OnFault | None = fail_and_report if critical else self._report
        else:
            on_fault = fail if critical else None  # the hub itself reports it
        return listeners.add(listener, capacity=capacity, hold_timeout=hold_timeout, on_fault=on_fault)
