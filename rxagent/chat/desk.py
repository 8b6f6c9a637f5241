"""`Desk`: the conversations of the app: the one that is open, and those in the store."""

from collections.abc import Sequence
from dataclasses import dataclass

from reactivex import operators as rxops

from rxagent.chat.text import one_line
from rxagent.engine import Agent
from rxagent.errors import RxAgentError
from rxagent.events import AnyEvent, MessageEnd, SessionStart
from rxagent.flow import to_aiter
from rxagent.hooks import HookCall, approve
from rxagent.log import EventStore, SessionInfo
from rxagent.messages import AnyMessage, UserMessage
from rxagent.runner import Runner

SHOWN = 100  # conversations of the history, the latest
HEAD = 24  # events in which the first prompt is looked for


class Approvals:
    """Which tools ask before they run. ``names``: those; None: all. ``always``: those that a person has let off."""

    def __init__(self, names: Sequence[str] | None = ()) -> None:
        self.names = None if names is None else frozenset(names)
        self.always: set[str] = set()

    def __call__(self, call: HookCall) -> bool:
        """Whether this call asks."""
        return (self.names is None or call.name in self.names) and call.name not in self.always


@dataclass(frozen=True, slots=True)
class Entry:
    """A conversation in the history. ``time``: of its last message, in seconds since 1970."""

    id: str
    title: str
    time: float | None
    events: int


class Desk:
    """Opens conversations of one agent, keeps them in one store."""

    def __init__(self, agent: Agent, store: EventStore, approvals: Approvals | None = None) -> None:
        self.approvals = approvals or Approvals()
        agent.hooks = agent.hooks | approve(self.approvals)
        self.runner = Runner(agent, store)
        self.store = store

    async def open(self, session_id: str | None = None) -> tuple[Agent, list[AnyEvent]]:
        """A conversation, new or stored: its agent and its log so far.

        Raises:
            StoreError: there is none of this id, or it can't be read.
        """
        if session_id is None:
            return await self.runner.open(), []
        log = await self.runner.events(session_id)
        return await self.runner.open(session_id), log

    async def leave(self, agent: Agent) -> None:
        """Lets others write the conversation."""
        await self.store.release(agent.session_id)

    async def latest(self) -> str | None:
        """The conversation that was spoken in last."""
        infos = sorted(await self.store.sessions(), key=_last, reverse=True)
        return infos[0].id if infos else None

    async def history(self) -> list[Entry]:
        """The latest conversations, the newest first."""
        infos = sorted(await self.store.sessions(), key=_last, reverse=True)
        return [Entry(info.id, await self._title(info), info.last_time, info.events) for info in infos[:SHOWN]]

    async def _title(self, info: SessionInfo) -> str:
        head = self.store.read(info.id).pipe(rxops.take(min(info.events, HEAD)))
        try:
            async for event in to_aiter(head, 64):
                for message in _messages(event):
                    if isinstance(message, UserMessage) and message.text.strip():
                        return one_line(message.text, 120)
        except RxAgentError as error:
            return f"({error})"
        return "(nothing was said)"


def _last(info: SessionInfo) -> float:
    return info.last_time or info.first_time or 0.0


def _messages(event: AnyEvent) -> tuple[AnyMessage, ...]:
    if isinstance(event, SessionStart):
        return event.messages
    return (event.message,) if isinstance(event, MessageEnd) else ()
