"""What a delta costs late in a long answer, beside a long transcript, in long arguments; and what a run keeps in memory.

    python benchmarks/growth.py [--rounds 7]

The whole engine with three observers (states, text or call deltas, all events); the model is in process.
"""

import argparse
import asyncio
import gc
import time
import tracemalloc
from collections.abc import AsyncIterator, Callable

from harness import table, where

from rxagent import Agent, AgentState
from rxagent import operators as ops
from rxagent.events import (
    AnyEvent,
    MessageUpdate,
    ModelEvent,
    ResponseEnd,
    ResponseStart,
    TextEnd,
    TextStart,
    ToolCallEnd,
    ToolCallStart,
    text_delta,
    tool_call_delta,
)
from rxagent.messages import AnyMessage, AssistantMessage, UserMessage
from rxagent.models import ScriptedModel

WINDOW = 1_000  # deltas over which a cost is averaged
COUNT = 50_000
HISTORY = [
    UserMessage("question " * 20) if n % 2 == 0 else AssistantMessage("answer " * 25, stop_reason="stop") for n in range(2_000)
]


async def text(count: int) -> AsyncIterator[ModelEvent]:
    yield ResponseStart()
    yield TextStart(0)
    for n in range(count):
        yield text_delta(f"{n % 1000:03d} ", 0)
    yield TextEnd(0)
    yield ResponseEnd()


async def arguments(count: int) -> AsyncIterator[ModelEvent]:
    """A call with so many pieces of 20 characters; its tool is unknown, so that nothing but the stream is measured."""
    yield ResponseStart()
    yield ToolCallStart("call", "write", 0)
    yield tool_call_delta('{"text": "' + "x" * 10, 0)
    for _ in range(count - 2):
        yield tool_call_delta("x" * 20, 0)
    yield tool_call_delta("x" * 18 + '"}', 0)
    yield ToolCallEnd(0)
    yield ResponseEnd("tool_use")


class Clock:
    """An observer that reads the CPU clock at the ends of windows."""

    def __init__(self, ends: list[int]) -> None:
        self.at: dict[int, float] = {}
        self._marks = {mark for end in ends for mark in (end - WINDOW, end)}
        self._count = 0

    def __call__(self, event: AnyEvent) -> None:
        if type(event) is MessageUpdate:
            self._count += 1
            if self._count in self._marks:
                self.at[self._count] = time.process_time()

    def cost(self, end: int) -> float:
        return (self.at[end] - self.at[end - WINDOW]) / WINDOW * 1e6


async def costs(stream: Callable[[int], AsyncIterator[ModelEvent]], history: list[AnyMessage], ends: list[int]) -> list[float]:
    agent = Agent(ScriptedModel([stream(COUNT), ["done"]]), messages=history)
    clock = Clock(ends)
    agent.states.subscribe(lambda state: None)
    agent.events.pipe(ops.text_deltas() if stream is text else ops.tool_call_deltas()).subscribe(lambda delta: None)
    agent.events.subscribe(clock)
    gc.collect()
    result = await agent.prompt("go")
    assert result.outcome == "completed", result
    return [clock.cost(end) for end in ends]


def growth(rounds: int) -> None:
    rows: list[list[object]] = []
    early, late = 2 * WINDOW, COUNT
    for title, stream, history in (
        ("text", text, []),
        ("text, after 2,000 messages", text, HISTORY),
        ("arguments in 20-character pieces, to 1 MB", arguments, []),
    ):
        found = [asyncio.run(costs(stream, list(history), [early, late])) for _ in range(rounds)]
        first, last = (min(column) for column in zip(*found, strict=True))
        rows.append([title, first, last, last / first])
    print(table(["a delta of", f"µs at {early:,}", f"µs at {late:,}", "ratio"], rows))


def plain(agent: Agent) -> object:
    return None


def reading(agent: Agent) -> object:
    def read(state: AgentState) -> None:
        if state.streaming_message is not None:
            assert state.streaming_message.text is not None

    return agent.states.subscribe(read)


def keeping(agent: Agent) -> object:
    kept: list[AnyEvent] = []
    agent.events.subscribe(kept.append)
    return kept


async def memory(observe: Callable[[Agent], object], count: int) -> float:
    """Bytes that a run of so many deltas holds when it has ended."""
    agent = Agent(ScriptedModel([text(count)]))
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    held = observe(agent)
    run = agent.prompt("go")
    await run
    gc.collect()
    after = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert run.finished
    del held
    return float(after - before)


def held() -> None:
    rows: list[list[object]] = []
    sizes = (12_500, 25_000, 50_000)
    for title, observe in (
        ("a run, kept for late subscribers", plain),
        ("… and `streaming_message.text` read at every delta", reading),
        ("… and every event kept by an observer", keeping),
    ):
        rows.append([title, *(asyncio.run(memory(observe, size)) / size for size in sizes)])
    print(table(["bytes a delta, held at the end of", *(f"{size:,} deltas" for size in sizes)], rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    rounds = parser.parse_args().rounds
    growth(rounds)
    print()
    held()
    print(f"\nMinimum of {rounds} rounds, windows of {WINDOW:,} deltas, process CPU time. {where()}.")


if __name__ == "__main__":
    main()
