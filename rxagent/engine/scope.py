"""`Scope`: what every part of one run shares; how it emits, calls hooks, and notices an abort."""

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import TypeVar, cast

from rxagent.engine.config import LoopConfig, Output, Setup
from rxagent.engine.inbox import Inbox
from rxagent.engine.profile import NO_RECOVERY, Profile, Recovery
from rxagent.engine.session import Session
from rxagent.errors import UsageError, told
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
        super().__init__(f"hook {hook} raised {told(error)}")


def _nobody(name: str) -> Profile:
    raise UsageError(f"there is no agent {name!r} to hand over to")


def _ignored(profile: Profile) -> None:
    """Nobody keeps who has the conversation after this run."""


@dataclass(slots=True)
class Scope:
    """One run's surroundings.

    ``find``: the agents that may take over; ``on_hand_over``: is told when one does; ``recovery``: what becomes
    of calls that a dead process left open.
    """

    session: Session
    setup: Setup
    config: LoopConfig
    inbox: Inbox
    signal: Signal
    origin: Origin
    output: Output | None = None
    on_fault: OnFault = print_fault
    find: Callable[[str], Profile] = _nobody
    on_hand_over: Callable[[Profile], object] = _ignored
    recovery: Recovery = NO_RECOVERY
    closing: bool = field(default=False, init=False)
    doom: ErrorInfo | None = field(default=None, init=False)
    began: Origin = field(init=False)

    def __post_init__(self) -> None:
        self.began = self.origin

    def fail(self, error: ErrorInfo) -> None:
        """Ends the run as failed; from any thread."""
        self.doom = error
        self.signal.cancel(error.message)

    def become(self, profile: Profile) -> None:
        """Another agent goes on with the run; its limits stay those of the one that began it."""
        self.setup, self.config = profile.setup, replace(profile.config, limits=self.config.limits)
        self.output = profile.output or self.output
        self.origin = replace(self.origin, agent=profile.name)
        self.on_hand_over(profile)

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
        settled = self.session.progress.settled
        return HookContext(o.agent, o.path, o.run_id, self.signal, self.custom, self.config.deps, settled)

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
