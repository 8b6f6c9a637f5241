"""`run_loop`: one run as a stateless, cold Observable."""

import asyncio

from reactivex import Observable, abc
from reactivex.disposable import Disposable

from rxagent.engine.config import AgentContext, LoopConfig, Output, Setup, as_models
from rxagent.engine.inbox import Inbox
from rxagent.engine.loop import Loop
from rxagent.engine.scope import Scope
from rxagent.engine.session import Session, new_id
from rxagent.errors import NoRunningLoop
from rxagent.events import AnyEvent
from rxagent.messages import Transcript, as_messages
from rxagent.signals import Signal
from rxagent.state import AgentState
from rxagent.tools import as_tools


def running_loop(what: str) -> asyncio.AbstractEventLoop:
    """The running loop; raises `NoRunningLoop` with what to do instead."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        raise NoRunningLoop(
            f"{what} needs a running asyncio loop. In a script use agent.prompt_sync(…), in a GUI an AgentHost."
        ) from None


def run_loop(input: object, context: AgentContext, config: LoopConfig) -> Observable[AnyEvent]:  # noqa: A002 - the contract's word
    """One run as a cold Observable: each subscription is a run of its own, disposing it cancels that run.

    Args:
        input: text, a message or a list of them; an empty list goes on from ``context.messages``.
        context: system prompt, transcript and tools to start from.
        config: model, hooks, limits and the rest.

    Raises:
        NoRunningLoop: at subscribe, without a running asyncio loop.
        InvalidMessage, DuplicateTool, InvalidTool, UnknownModel, MissingKey: at once.
    """
    messages, history = as_messages(input), as_messages(context.messages)
    models, tools = as_models(config.model), as_tools(context.tools)
    output = Output(config.output) if config.output is not None else None

    def subscribe(observer: abc.ObserverBase[AnyEvent], scheduler: abc.SchedulerBase | None = None) -> abc.DisposableBase:
        loop = running_loop("run_loop")
        setup = Setup(models, context.system_prompt, config.thinking_level, tools)
        state = AgentState((config.name,), messages=Transcript(history))
        session = Session(state)
        signal = Signal()
        origin = session.origin(new_id(), config.name)
        scope = Scope(session, setup, config, Inbox(), signal, origin, output)
        subscription = session.events.subscribe(observer)

        async def drive() -> None:
            try:
                await Loop(scope).run(session.identify(messages))
            except Exception as error:
                session.events.on_error(error)
            else:
                session.events.on_completed()

        task = loop.create_task(drive(), name=f"rxagent run {origin.run_id}")

        def dispose() -> None:
            subscription.dispose()
            if not task.done():
                signal.cancel("disposed")

        return Disposable(dispose)

    return Observable(subscribe)
