"""Where the time of one text delta goes: each stage of its way through the house by itself, in process, CPU time.

python benchmarks/stages.py [--rounds 7]
"""

import argparse
import asyncio
import gc
import time
from collections.abc import AsyncIterator, Callable

from fake_server import text_events
from harness import table, where
from pydantic_core import from_json

from rxagent.engine.run import Run
from rxagent.engine.session import Session
from rxagent.events import AgentStart, Draft, ModelEvent, Origin, message_update
from rxagent.models.body import BodyReader
from rxagent.models.openai_chat_stream import ChatDecoder
from rxagent.models.sse import SseDecoder, SseEvents
from rxagent.signals import Signal
from rxagent.state import AgentState

COUNT = 20_000
BODY = b"".join(text_events(COUNT))
CHUNKS = [BODY[at : at + 65_536] for at in range(0, len(BODY), 65_536)]


def split() -> None:
    decoder = SseDecoder(1 << 25)
    for chunk in CHUNKS:
        events: list[SseEvents] = []
        decoder.feed(chunk, events)


def parse() -> None:
    decoder = SseDecoder(1 << 25)
    for chunk in CHUNKS:
        events: list[SseEvents] = []
        decoder.feed(chunk, events)
        for _, data, between in events:
            for each in data.split(between) if between else (data,):
                if each != b"[DONE]":
                    from_json(each)


def decode() -> list[ModelEvent]:
    reader = BodyReader(ChatDecoder(), 1 << 25)
    return [event for chunk in CHUNKS for event in reader.feed(chunk)]


EVENTS = decode()


def pull() -> None:
    async def stream() -> AsyncIterator[ModelEvent]:
        for event in EVENTS:
            yield event

    async def go() -> None:
        async for _ in stream():
            pass

    asyncio.run(go())


def fold_message() -> None:
    draft = Draft("id", 0.0, "model")
    for event in EVENTS:
        draft.add(event)


def wrap() -> None:
    draft, origin = Draft("id", 0.0, "model"), Origin()
    for event in EVENTS:
        message_update(event, draft.add(event), -1, origin)


def publish(*, kept: bool, observed: bool) -> Callable[[], None]:
    async def go() -> None:
        session = Session(AgentState(("agent",)))
        origin = session.origin("run", "agent")
        if kept:
            run = Run(origin, Signal(), None)
            session.recorder = run.on_next
        session.publish(AgentStart(origin=origin))
        if observed:
            session.states.subscribe(lambda _: None)
            session.events.subscribe(lambda _: None)
        draft = Draft("id", 0.0, "model")
        for event in EVENTS:
            pending = session.update(event, draft.add(event), origin)
            if pending is not None:
                await session.settle(pending)

    return lambda: asyncio.run(go())


STAGES: tuple[tuple[str, Callable[[], object]], ...] = (
    ("bytes to SSE events", split),
    ("… and JSON parsed", parse),
    ("… and decoded to model events", decode),
    ("model events pulled through an async generator", pull),
    ("model events folded into the message so far", fold_message),
    ("… and wrapped as `MessageUpdate`", wrap),
    ("… and published, nobody watching", publish(kept=False, observed=False)),
    ("… to one state and one event observer", publish(kept=False, observed=True)),
    ("… and kept by a `Run` for late subscribers", publish(kept=True, observed=True)),
)


def cost(stage: Callable[[], object], rounds: int) -> float:
    best = float("inf")
    for _ in range(rounds):
        gc.collect()
        start = time.process_time()
        stage()
        best = min(best, time.process_time() - start)
    return best / COUNT * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    rounds = parser.parse_args().rounds
    print(table(["stage", "µs a delta"], [[title, cost(stage, rounds)] for title, stage in STAGES]))
    print(f"\nMinimum of {rounds} rounds over {COUNT:,} deltas. {where()}.")


if __name__ == "__main__":
    main()
