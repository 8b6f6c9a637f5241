"""`Scope`: what every part of one run shares; how it emits, calls hooks, and notices an abort."""

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeVar, cast

from rxagent.engine.config import LoopConfig, Output, Setup
from rxagent.engine.inbox import Inbox
from rxagent.engine.session import Session
from rxagent.events import AnyEvent, Custom, ErrorInfo, Origin, Outcome
from rxagent.flow import OnFault, print_fault
from rxagent.hooks import HookContext
from rxagent.messages import to_json_value
from rxagent.signals import Signal
from rxagent.tools import Told

T = TypeVar("T")


class Ended(Exception):
    """Ends a run early with an outcome."""

    def __init__(self, outcome: Outcome, error: ErrorInfo | None = None) -> None:
        super().__init__(outcome)
        self.outcome: Outcome = outcome
        self.error = error


class HookFailed(Exception):
    """A hook raised."""

    def __init__(self, hook: str, error: Exception) -> None:
        super().__init__(f"hook {hook} raised {type(error).__name__}: {error}")


@dataclass(slots=True)
class Scope:
    """One run's surroundings."""

    session: Session
    setup: Setup
    config: LoopConfig
    inbox: Inbox
    signal: Signal
    origin: Origin
    output: Output | None = None
    on_fault: OnFault = print_fault
    closing: bool = field(default=False, init=False)
    doom: ErrorInfo | None = field(default=None, init=False)

    def fail(self, error: ErrorInfo) -> None:
        """Ends the run as failed; from any thread."""
        self.doom = error
        self.signal.cancel(error.message)

    async def emit(self, event: AnyEvent) -> None:
        """Emits and waits for holds; raises `Ended` once the run is aborted."""
        await self.session.emit(event)
        self.check()

    def check(self) -> None:
        """Raises `Ended` once the run is aborted, unless it is closing already."""
        if self.signal.cancelled and not self.closing:
            raise Ended("aborted")

    def custom(self, name: str, data: object) -> Told:
        """Emits a `Custom` event of the application's."""
        event = Custom(name, to_json_value(data, f"data of event {name!r}"), origin=self.origin)
        return Told(self.session.publish(event))

    def hook_context(self) -> HookContext:
        """What hooks are told of the run."""
        o = self.origin
        return HookContext(o.agent, o.path, o.run_id, self.signal, self.custom, self.config.deps)

    async def call(self, name: str, hook: Callable[..., object], *args: object) -> object:
        """Calls a sync or async hook; what it raises comes as `HookFailed`."""
        self.check()
        try:
            value = hook(*args)
            if inspect.isawaitable(value):
                value = await cast("Awaitable[object]", value)
        except Exception as error:
            raise HookFailed(name, error) from error
        self.check()
        return value
