"""`Session`: one log. Gives every event its seq, appends it, folds it, publishes it, in that order.

1. Whoever sees an event finds ``state`` already updated.
2. Events of one session come from one thread, the running loop's.
3. While somebody holds an event, the next one waits; ``publish`` is for those that can't wait.
"""

import asyncio
import os
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Protocol

from rxagent.engine.progress import Progress
from rxagent.events import AnyEvent, MessageEnd, MessageUpdate, ModelEvent, Origin, message_update
from rxagent.flow import Gate, Hub, OnFault, Pending, publish
from rxagent.messages import AnyMessage, AssistantMessage, Transcript, identified
from rxagent.state import AgentState, reduce, streaming


class Journal(Protocol):
    """Where a session's events are kept. ``append`` must not wait; ``acknowledged`` does."""

    def append(self, event: AnyEvent) -> None:
        """Takes the next event."""
        ...

    async def acknowledged(self) -> None:
        """Returns when everything appended so far is durable.

        Raises:
            StoreError: it can't be made durable.
        """
        ...

    async def finished(self) -> None:
        """The run is over: as ``acknowledged``, and others may write the session now."""
        ...


def new_id() -> str:
    """An id nobody else has."""
    return os.urandom(16).hex()


def wall_clock() -> Callable[[], float]:
    """Seconds since 1970; a loop that keeps its own wall clock (``wall_time``) is asked first."""
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return time.time
    clock: Callable[[], float] = getattr(loop, "wall_time", time.time)
    return clock


class Session:
    """The log, state and live stream of one session.

    ``branches``: the unfinished children (agents that run as tools), by the call they work for.
    """

    def __init__(
        self,
        state: AgentState,
        *,
        session_id: str | None = None,
        next_seq: int = 0,
        journal: Journal | None = None,
        on_fault: OnFault | None = None,
    ) -> None:
        self.id = session_id or new_id()
        self.state = state
        self.published = state
        self.progress = Progress(state.path)
        self.next_seq = next_seq
        self.journal = journal
        self.events: Hub[AnyEvent] = Hub(on_fault)
        self.states: Hub[AgentState] = Hub(on_fault)
        self.gate = Gate()
        self.recorder: Callable[[AnyEvent], None] | None = None
        self.message_ids: set[str] = set()
        self.call_ids: set[str] = set()
        self.branches: dict[str, Branch] = {}
        self._send = self._deliver
        self._late: list[tuple[AnyEvent, AgentState | None]] = []
        self._delivering = False
        self._changed: AgentState | None = None
        self._held: Pending | None = None
        self._turns: list[asyncio.Future[None]] = []
        self.adopt(state.messages)

    def adopt(self, messages: Iterable[AnyMessage]) -> None:
        """Counts ids of messages as taken."""
        for message in messages:
            self.message_ids.add(message.id)
            if isinstance(message, AssistantMessage):
                self.call_ids.update(call.id for call in message.tool_calls)

    def identify(self, messages: Iterable[AnyMessage]) -> tuple[AnyMessage, ...]:
        """Gives each message an id that is new to this session, and a timestamp, where they are missing."""
        now = wall_clock()()
        named: list[AnyMessage] = []
        for message in messages:
            taken = not message.id or message.id in self.message_ids
            named.append(identified(message, id=new_id() if taken else message.id, timestamp=now))
            self.message_ids.add(named[-1].id)
        return tuple(named)

    def origin(self, run_id: str, agent: str) -> Origin:
        """The origin of one run's events."""
        return Origin(self.id, run_id, agent, self.state.path)

    @property
    def root(self) -> "Session":
        """The session whose log this one's events are in."""
        return self

    def publish(self, event: AnyEvent) -> Pending | None:
        """Append, fold, publish; returns what there is to wait for. For code that can't wait."""
        object.__setattr__(event, "seq", self.next_seq)
        self.next_seq += 1
        if self.journal is not None:
            self.journal.append(event)
        old = self.state
        self.state = state = reduce(old, event)
        if type(event) is not MessageUpdate:
            self.progress.apply(event)
            if isinstance(event, MessageEnd) and isinstance(event.message, AssistantMessage):
                self.call_ids.update(call.id for call in event.message.tool_calls)
        changed = None if state is old else state
        if self._delivering:  # an observer of an earlier event caused this one: it comes after it for everybody
            self._late.append((event, changed))
            return None
        self._changed = changed
        return publish(self._send, event, self.gate)

    def update(self, delta: ModelEvent, message: AssistantMessage, origin: Origin) -> Pending | None:
        """``publish(MessageUpdate(delta, message))`` of the session's own agent: the same steps, made for the hot path."""
        seq = self.next_seq
        self.next_seq = seq + 1
        event = message_update(delta, message, seq, origin)
        if self.journal is not None:
            self.journal.append(event)
        self.state = state = streaming(self.state, message)
        if self._delivering:
            self._late.append((event, state))
            return None
        self._changed = state
        return publish(self._send, event, self.gate)

    async def emit(self, event: AnyEvent) -> None:
        """Append, fold, publish, and wait until nobody holds. One event is held at a time."""
        await self.turn()
        pending = self.publish(event)
        if pending is not None:
            await self.settle(pending)

    async def settle(self, pending: Pending) -> None:
        """Waits for a published event; others wait for their turn meanwhile."""
        if not pending.held or self._held is not None:
            await pending
            return
        self._held = pending
        try:
            await pending
        finally:
            self._held = None
            turns, self._turns = self._turns, []
            for turn in turns:
                if not turn.done():
                    turn.set_result(None)

    async def acknowledged(self) -> None:
        """Returns when the journal, if there is one, has everything."""
        if self.journal is not None:
            await self.journal.acknowledged()

    async def finished(self) -> None:
        """The run is over: returns when the journal, if there is one, has everything."""
        if self.journal is not None:
            await self.journal.finished()

    def let_go(self) -> None:
        """The run is cancelled: it waits for no consumer any more."""
        self.gate.open()

    def restart(self) -> None:
        """A new gate for a new run: the last one may have been opened by an abort."""
        if self.gate.is_open:
            self.gate = Gate()

    async def turn(self) -> None:
        """Waits while an event is held, except for those whom its holder waits for."""
        while self._held is not None and not self.gate.is_open and not self.gate.held_here:
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._turns.append(turn)
            await turn

    def _deliver(self, event: AnyEvent) -> None:
        self._delivering = True
        try:
            changed = self._changed  # _tell, without the call: once per delta
            if self.recorder is not None:
                self.recorder(event)
            self.events.on_next(event)
            if changed is not None:
                self.published = changed
                if self.states.observed:
                    self.states.on_next(changed)
            while self._late:
                self._tell(*self._late.pop(0))
        finally:
            self._delivering = False

    def _tell(self, event: AnyEvent, changed: AgentState | None) -> None:
        if self.recorder is not None:
            self.recorder(event)
        self.events.on_next(event)
        if changed is not None:
            self.published = changed
            if self.states.observed:
                self.states.on_next(changed)


class Branch(Session):
    """The part of a session's log that belongs to a child: a state of its own, everything else the root's."""

    def __init__(self, parent: Session, call_id: str, state: AgentState) -> None:
        self._parent = parent
        self._root = root = parent.root
        self.call_id = call_id
        self.id = root.id
        self.state = self.published = state
        self.progress = Progress(state.path)
        self.gate = root.gate
        self.message_ids, self.call_ids, self.branches = root.message_ids, root.call_ids, root.branches
        self.adopt(state.messages)

    @property
    def root(self) -> Session:
        """The session whose log this one's events are in."""
        return self._root

    def attach(self, parent: Session, seed: Iterable[AnyMessage]) -> None:
        """Goes on in a new run of the parent; ``seed``: what the child's transcript begins with, if it isn't there yet."""
        self._parent, self.gate = parent, parent.gate
        known = {message.id for message in self.state.messages}
        missing = [message for message in seed if message.id not in known]
        if missing:
            self.state = replace(self.state, messages=Transcript([*missing, *self.state.messages]))

    def origin(self, run_id: str, agent: str) -> Origin:
        """The origin of one run's events."""
        return Origin(self.id, run_id, agent, self.state.path, self.call_id)

    def fold(self, event: AnyEvent) -> None:
        """Takes an event of this child, or of one below it, into state and progress."""
        self.state = reduce(self.state, event)
        if type(event) is not MessageUpdate:
            self.progress.apply(event)
            if isinstance(event, MessageEnd) and isinstance(self._parent, Branch):
                self._parent.fold(event)

    def publish(self, event: AnyEvent) -> Pending | None:
        """Append, fold, publish; returns what there is to wait for. For code that can't wait."""
        object.__setattr__(event, "seq", self._root.next_seq)  # as the root is about to do
        self.fold(event)
        return self._root.publish(event)

    def update(self, delta: ModelEvent, message: AssistantMessage, origin: Origin) -> Pending | None:
        """``publish(MessageUpdate(delta, message))``."""
        return self.publish(message_update(delta, message, -1, origin))

    async def turn(self) -> None:
        """Waits while an event is held, except for those whom its holder waits for."""
        await self._root.turn()

    async def settle(self, pending: Pending) -> None:
        """Waits for a published event; others wait for their turn meanwhile."""
        await self._root.settle(pending)

    def let_go(self) -> None:
        """A child is cancelled; the events of others are waited for as before."""

    async def acknowledged(self) -> None:
        """Returns when the journal, if there is one, has everything."""
        await self._root.acknowledged()
