"""`rxagent replay`: plays a recorded run, or shows the state that it had at one event."""

import asyncio
import sys
from argparse import Namespace
from collections.abc import AsyncIterator, Sequence

from pydantic_core import to_json as value_to_json

from rxagent.cli import exits
from rxagent.cli.places import recorded
from rxagent.cli.state_json import state_object
from rxagent.cli.terminal import Terminal
from rxagent.cli.view import TextView
from rxagent.errors import UsageError
from rxagent.events import AgentEnd, AnyEvent, to_json
from rxagent.flow import Hub
from rxagent.runner import times
from rxagent.state import AgentState, reduce


def start(arguments: Namespace) -> int:
    """Plays; the exit code is that of the last run in it."""
    return asyncio.run(_replay(arguments))


async def _replay(arguments: Namespace) -> int:
    events = await recorded(arguments.run, arguments.store)
    if arguments.at is not None:
        return _show_state(events, arguments.at)
    outcome = 0
    if arguments.mode == "json":
        async for event in paced(events, arguments.speed):
            sys.stdout.write(f"{to_json(event).decode()}\n")
            sys.stdout.flush()
    else:
        hub: Hub[AnyEvent] = Hub()
        gone = asyncio.Event()
        TextView(hub, Terminal(gone.set))
        async for event in paced(events, arguments.speed):
            hub.on_next(event)
            if gone.is_set():
                return exits.ABORTED
    for event in events:
        if isinstance(event, AgentEnd) and not event.origin.call_id:
            outcome = exits.of(event.outcome)
    return outcome


async def paced(events: Sequence[AnyEvent], speed: float | None) -> AsyncIterator[AnyEvent]:
    """The events, each when it is due: at ``speed`` times the pace at which they came; None: at once."""
    clock = asyncio.get_running_loop().time
    began = clock()
    for event, at in zip(events, times(events), strict=True):
        if speed is not None and (wait := began + at / speed - clock()) > 0:
            await asyncio.sleep(wait)
        yield event


def _show_state(events: Sequence[AnyEvent], at: int) -> int:
    last = events[-1].seq
    if not events[0].seq <= at <= last:
        raise UsageError(f"--at {at}: the run has the events {events[0].seq} to {last}")
    state = AgentState(events[0].origin.path)
    for event in events:
        if event.seq > at:
            break
        state = reduce(state, event)
    sys.stdout.write(f"{value_to_json(state_object(state), indent=2).decode()}\n")
    return 0
