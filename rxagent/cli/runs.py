"""`rxagent runs`: the sessions of a store."""

import asyncio
import sys
import time
from argparse import Namespace

from rxagent.cli.places import opened
from rxagent.events import AgentEnd, AgentStart, AnyEvent
from rxagent.log import EventStore, SessionInfo
from rxagent.messages import UserMessage


def start(arguments: Namespace) -> int:
    """Lists the sessions, the newest last."""
    return asyncio.run(_list(arguments.store))


async def _list(path: str) -> int:
    async with opened(path, must_exist=True) as store:
        for info in await store.sessions():
            sys.stdout.write(f"{await _line(store, info)}\n")
    return 0


async def _line(store: EventStore, info: SessionInfo) -> str:
    events = await store.load(info.id)
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(info.first_time)) if info.first_time else "-"
    ends = [event for event in events if isinstance(event, AgentEnd) and not event.origin.call_id]
    begun = sum(isinstance(event, AgentStart) and not event.origin.call_id for event in events)
    outcome = "open" if begun > len(ends) else ends[-1].outcome if ends else "-"
    return f"{info.id}  {when}  {info.events:>7} events  {outcome:<11}  {_prompt(events)}"


def _prompt(events: list[AnyEvent]) -> str:
    for event in events:
        if isinstance(event, AgentStart):
            texts = [message.text for message in event.input if isinstance(message, UserMessage)]
            if texts:
                return " ".join(texts[0].split())[:60]
    return ""
