"""What each operator costs per text delta, and whether that grows: same process, interleaved rounds, CPU time.

python benchmarks/operators.py [--rounds 7] [--deltas 50000]
"""

import argparse
import gc
import time
from collections.abc import Callable, Sequence

from harness import table, where
from reactivex import operators as rxops

from rxagent import events as e
from rxagent import operators as ops
from rxagent.flow import Hub
from rxagent.state import AgentState

ORIGIN = e.Origin("s", "r", "agent", ("agent",))
OPERATORS: dict[str, Callable[[], Callable[..., object]]] = {
    "stock `map`, for comparison": lambda: rxops.map(lambda event: event),
    "`text_deltas`": ops.text_deltas,
    "`thinking_deltas`": ops.thinking_deltas,
    "`tool_call_deltas`": ops.tool_call_deltas,
    "`messages`": ops.messages,
    "`transcript`": ops.transcript,
    "`pending_tool_calls`": ops.pending_tool_calls,
    "`live_messages`": ops.live_messages,
    "`usage`": ops.usage,
    "`states`": lambda: ops.states(AgentState(ORIGIN.path)),
    "`by_agent`": lambda: ops.by_agent("agent"),
    "`of_type(ToolLevel)`": lambda: ops.of_type(e.ToolLevel),
    "`verify`": lambda: ops.verify(joined=True),
    "`lines`": ops.lines,
    "`sentences`": ops.sentences,
    "`markdown_blocks`": ops.markdown_blocks,
    "`progress`": ops.progress,
    "`until_idle`": ops.until_idle,
}


def answer(count: int) -> list[e.AnyEvent]:
    """A run whose answer has ``count`` deltas, up to the last of them."""
    draft = e.Draft("a1", 1.0, "m")
    start = e.MessageStart(draft.message(), seq=2, origin=ORIGIN)
    deltas = [e.text_delta("word. " if n % 12 else "line\n\n", 0) for n in range(count)]
    updates = [e.message_update(delta, draft.add(delta), n + 3, ORIGIN) for n, delta in enumerate(deltas)]
    return [e.AgentStart(seq=0, origin=ORIGIN), e.TurnStart(seq=1, origin=ORIGIN), start, *updates]


def ignore(_: object) -> None:
    return None


def stretches(operator: Callable[..., object] | None, events: Sequence[e.AnyEvent]) -> tuple[float, float, float]:
    """µs a delta: over all, over the 1,000 after the first 1,000, and over the last 1,000."""
    hub: Hub[e.AnyEvent] = Hub()
    (hub if operator is None else hub.pipe(operator)).subscribe(ignore)
    head, early, middle, late = events[:1003], events[1003:2003], events[2003:-1000], events[-1000:]
    times = []
    gc.collect()
    for part in (head, early, middle, late):
        began = time.process_time()
        for event in part:
            hub.on_next(event)
        times.append(time.process_time() - began)
    return sum(times) / len(events) * 1e6, times[1] * 1e3, times[3] * 1e3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--deltas", type=int, default=50_000)
    options = parser.parse_args()
    events = answer(options.deltas)
    best: dict[str, list[float]] = {}
    for _ in range(options.rounds):
        for name, make in [("hub alone", lambda: None), *OPERATORS.items()]:
            measured = stretches(make(), events)
            best[name] = [min(pair) for pair in zip(best.get(name, [9e9] * 3), measured, strict=True)]
    bare = best.pop("hub alone")[0]
    rows = [
        [name, f"{whole - bare:.2f}", f"{early:.2f}", f"{late:.2f}", f"{late / early:.2f}"]
        for name, (whole, early, late) in best.items()
    ]
    print(where())
    print(f"\nThe hub alone with one observer: {bare:.2f} µs an event. {options.deltas:,} text deltas.\n")
    print(table(["operator", "µs a delta, above the hub", "whole, at delta 1,000", "whole, at the end", "growth"], rows))


if __name__ == "__main__":
    main()
