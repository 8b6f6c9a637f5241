"""Runs agents in virtual time and checks, at every event, what the contract promises of all of them."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

from rxagent import Agent, AgentState, reduce
from rxagent.events import AnyEvent, EventReader, to_json
from rxagent.marble.loop import run_virtual
from rxagent.operators.verify import check


class Watched:
    """An agent whose log is kept and whose live state is compared with the fold of the log at every event."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self.log: list[AnyEvent] = []
        self.faults = []
        self.mismatches: list[str] = []
        self._folded = AgentState((agent.name,))
        self._read = AgentState((agent.name,))
        self._reader = EventReader()
        agent.events.subscribe(self._see)
        agent.errors.subscribe(self.faults.append)

    def _see(self, event: AnyEvent) -> None:
        self.log.append(event)
        self._folded = reduce(self._folded, event)
        again = self._reader.read(to_json(event))
        self._read = reduce(self._read, again)
        if again != event:
            self.mismatches.append(f"{event.seq} {event.type}: does not survive JSON")
        if self._read != self._folded:
            self.mismatches.append(f"{event.seq} {event.type}: the fold of what was written differs")
        if not self.agent._session._late and self.agent.state != self._folded:
            self.mismatches.append(f"{event.seq} {event.type}: live state differs from the fold")

    def check(self) -> None:
        assert not self.mismatches, self.mismatches
        check(self.log)
        assert [e.seq for e in self.log] == list(range(len(self.log)))
        assert sum(e.type == "agent_start" for e in self.log) == sum(e.type == "agent_end" for e in self.log)

    @property
    def types(self) -> list[str]:
        """Types of the run's events, without updates and without the session's own."""
        return [e.type for e in self.log if e.type not in ("message_update", "session_start")]

    def of(self, kind: type) -> list:
        return [e for e in self.log if isinstance(e, kind)]

    @property
    def transcript(self) -> list[tuple[str, str]]:
        return [(m.role, m.text) for m in self.agent.state.messages]


async def leftovers(grace: float = 10.0) -> list[str]:
    """Names of tasks other than this one, after giving them time to end."""
    await asyncio.sleep(grace)
    return [t.get_name() for t in asyncio.all_tasks() if t is not asyncio.current_task()]


def virtual(main: Callable[[], Awaitable[object]]):
    """Decorator: the test runs in virtual time and must leave no task behind."""

    def test() -> None:
        async def body() -> None:
            await main()
            assert await leftovers() == []

        run_virtual(body())

    test.__name__ = main.__name__
    test.__doc__ = main.__doc__
    return test


async def at(seconds: float, action: Callable[[], object]) -> None:
    await asyncio.sleep(seconds)
    with contextlib.suppress(Exception):
        action()
