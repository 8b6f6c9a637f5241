"""The names that the expressions of marble blocks can use: rxagent, Rx, and `run`, `session`, `cold`, `slow`."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, TypedDict, TypeVar, Unpack, cast

import reactivex as rx
from reactivex import Observable, abc
from reactivex import operators as rxops
from reactivex.disposable import CompositeDisposable, Disposable

import rxagent
from rxagent import flow
from rxagent.engine import Agent, AgentContext, Limits, LoopConfig, Retry, run_loop
from rxagent.engine.config import ModelLike, ToolMode
from rxagent.engine.inbox import QueueMode
from rxagent.errors import UsageError
from rxagent.events import AnyEvent
from rxagent.hooks import Hooks
from rxagent.marble.streams import Source
from rxagent.messages import AnyMessage, ThinkingLevel
from rxagent.models import Model, ScriptedModel
from rxagent.operators import verify, verify_run
from rxagent.state import AgentState
from rxagent.testing.lines import LineModel, LineTool, act
from rxagent.tools import Tool

T = TypeVar("T")

ModelInput = Source | Model | str | Sequence[Source | Model | str]
ToolInput = Source | Tool | Callable[..., object]


class Trial(Observable[AnyEvent]):
    """The events of an agent under test; subscribing also starts the user's line. ``state`` is the agent's."""

    def __init__(self, agent: Agent, events: Observable[AnyEvent], user: Observable[object] | None) -> None:
        super().__init__()
        self.agent = agent
        self._events = events
        self._user = user

    @property
    def state(self) -> AgentState:
        """The agent's present state."""
        return self.agent.state

    def _subscribe_core(
        self, observer: abc.ObserverBase[AnyEvent], scheduler: abc.SchedulerBase | None = None
    ) -> abc.DisposableBase:
        both = CompositeDisposable()
        if self._user is not None:
            both.add(self._user.subscribe(lambda action: act(action, self.agent)))
        both.add(self._events.subscribe(observer))
        return both


class Options(TypedDict, total=False):
    """The arguments that `Agent` and `LoopConfig` share."""

    name: str
    thinking_level: ThinkingLevel
    streaming: bool
    output: type | None
    hooks: Hooks
    limits: Limits
    retry: Retry
    deps: object


class AgentOptions(Options, total=False):
    """The arguments of `agent`."""

    model: ModelInput
    tools: Sequence[ToolInput]
    system_prompt: str
    messages: Sequence[AnyMessage]
    tool_mode: ToolMode
    steering_mode: QueueMode
    follow_up_mode: QueueMode


def agent(**options: Unpack[AgentOptions]) -> Agent:
    """An agent whose model and tools may be input lines; the other options are those of `Agent`, and its modes.

    Raises ``UsageError`` without a model.
    """
    given = dict(options)
    given.pop("model", None)
    if "model" not in options:
        raise UsageError("an agent needs a model: model=… names an input line, or is a Model")
    modes = {name: given.pop(name) for name in ("tool_mode", "steering_mode", "follow_up_mode") if name in given}
    tools = [_tool(tool) for tool in options.get("tools", ())]
    made = Agent(_model(options["model"]), **cast("dict[str, Any]", {**given, "tools": tools}))
    for name, mode in modes.items():
        setattr(made, name, mode)
    return made


def run(
    prompt: object,
    *,
    user: Observable[object] | None = None,
    before: Callable[[Agent], object] | None = None,
    of: Agent | None = None,
    **options: Unpack[AgentOptions],
) -> Trial:
    """The events of one run that begins now, their grammar checked.

    ``user`` acts on the agent meanwhile, ``before`` acts on it before the run. It is the agent ``of``, or a new one
    with the ``options`` of `agent`.
    """
    made = of if of is not None else agent(**options)
    if before is not None:
        before(made)
    return Trial(made, made.prompt(cast("str", prompt)).pipe(verify_run()), user)


def session(*, user: Observable[object] | None = None, of: Agent | None = None, **options: Unpack[AgentOptions]) -> Trial:
    """The events of an agent's whole life, their grammar checked; it does what ``user`` says, and never ends."""
    made = of if of is not None else agent(**options)
    return Trial(made, made.events.pipe(verify(joined=True)), user)


def cold(
    prompt: object, *, model: ModelInput, tools: Sequence[ToolInput] = (), **options: Unpack[Options]
) -> Observable[AnyEvent]:
    """``run_loop``: every subscription is a run of its own, and disposing it cancels that run."""
    return run_loop(prompt, AgentContext(tools=[_tool(t) for t in tools]), LoopConfig(model=_model(model), **options))


def slow(seconds: float) -> Callable[[Observable[T]], Observable[T]]:
    """An operator that takes ``seconds`` over each value: it holds whoever sent it."""

    def operator(source: Observable[T]) -> Observable[T]:
        def subscribe(observer: abc.ObserverBase[T], scheduler: abc.SchedulerBase | None = None) -> abc.DisposableBase:
            release: dict[asyncio.TimerHandle, flow.Release] = {}

            def on_next(value: T) -> None:
                held = flow.hold()

                def let_go() -> None:
                    del release[timer]
                    held.release()

                timer = asyncio.get_running_loop().call_later(seconds, let_go)
                release[timer] = held
                observer.on_next(value)

            def dispose() -> None:
                for timer, held in release.items():
                    timer.cancel()
                    held.release()
                release.clear()

            subscription = source.subscribe(on_next, observer.on_error, observer.on_completed, scheduler=scheduler)
            return CompositeDisposable(subscription, Disposable(dispose))

        return Observable(subscribe)

    return operator


def _model(given: ModelInput) -> ModelLike:
    if isinstance(given, Source):
        return LineModel(given)
    if isinstance(given, Sequence) and not isinstance(given, str):
        return [LineModel(each) if isinstance(each, Source) else each for each in given]
    return given


def _tool(given: ToolInput) -> Tool | Callable[..., object]:
    return LineTool(given) if isinstance(given, Source) else given


def world() -> dict[str, object]:
    """A fresh namespace for one block."""
    names: dict[str, object] = {name: getattr(rxagent, name) for name in rxagent.__all__}
    names.update({name: getattr(flow, name) for name in flow.__all__})
    names.update(asyncio=asyncio, rx=rx, rxops=rxops, flow=flow, ops=rxagent.operators, ScriptedModel=ScriptedModel)
    names.update(agent=agent, run=run, session=session, cold=cold, slow=slow)
    return names


__all__ = ["Trial", "agent", "cold", "run", "session", "slow", "world"]
