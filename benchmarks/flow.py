"""The flow kit against stock reactivex: same process, interleaved rounds, CPU time, the minimum of each.

python benchmarks/flow.py [--rounds 7] [--deltas 1000000] [--skip-slow]
"""

import argparse
import asyncio
import gc
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from harness import table, where
from reactivex import operators as rxops
from reactivex.scheduler import ThreadPoolScheduler
from reactivex.scheduler.eventloop import AsyncIOScheduler
from reactivex.subject import Subject

from rxagent.events import MessageUpdate
from rxagent.events.model import TextDelta
from rxagent.flow import Hub, emit, frames, offload
from rxagent.marble.loop import VirtualLoop
from rxagent.operators import text_deltas

COUNT = 50_000
PERIOD = 1 / 60
UPDATES = [MessageUpdate(TextDelta("word ")) for _ in range(COUNT)]


def cpu(work: Callable[[], object]) -> float:
    gc.collect()
    start = time.process_time()
    work()
    return time.process_time() - start


def compare(rounds: int, contenders: dict[str, Callable[[], object]]) -> dict[str, float]:
    """µs a value: the minimum of interleaved rounds."""
    best: dict[str, float] = {}
    for _ in range(rounds):
        for name, work in contenders.items():
            best[name] = min(best.get(name, 9e9), cpu(work) / COUNT * 1e6)
    return best


def ignore(_: object) -> None:
    return None


def feed(send: Callable[[int], object]) -> Callable[[], None]:
    def work() -> None:
        for value in range(COUNT):
            send(value)

    return work


def observed(kind: type[Hub[int]] | type[Subject[int]], observers: int) -> Hub[int] | Subject[int]:
    source = kind()
    for _ in range(observers):
        source.subscribe(ignore)
    return source


def multicast(rounds: int, observers: int) -> tuple[float, float]:
    hub, subject = observed(Hub[int], observers), observed(Subject[int], observers)
    best = compare(rounds, {"own": feed(hub.on_next), "stock": feed(subject.on_next)})
    return best["own"], best["stock"]


def awaited(rounds: int, observers: int) -> tuple[float, float]:
    hub, subject = observed(Hub[int], observers), observed(Subject[int], observers)

    async def send(value: int) -> None:
        subject.on_next(value)

    async def own() -> None:
        for value in range(COUNT):
            await emit(hub.on_next, value)

    async def stock() -> None:
        for value in range(COUNT):
            await send(value)

    best = compare(rounds, {"own": lambda: asyncio.run(own()), "stock": lambda: asyncio.run(stock())})
    return best["own"], best["stock"]


def handed_over(rounds: int) -> tuple[float, float]:
    """To another thread, all of it, the source waiting for it where it can."""
    pool = ThreadPoolScheduler(1)

    def run(source: Hub[int] | Subject[int], operator: object) -> None:
        done = threading.Event()
        source.pipe(operator).subscribe(ignore, on_completed=done.set)  # type: ignore[arg-type]

        async def main() -> None:
            for value in range(COUNT):
                await emit(source.on_next, value)
            source.on_completed()

        asyncio.run(main())
        done.wait()

    best = compare(
        rounds,
        {
            "own": lambda: run(Hub(), offload(pool)),
            "stock": lambda: run(Subject(), rxops.observe_on(pool)),
        },
    )
    pool.executor.shutdown()
    return best["own"], best["stock"]


def framed(rounds: int) -> tuple[float, float, str]:
    async def run(source: Hub[object] | Subject[object], *operators: object) -> None:
        seen = 0

        def see(texts: list[str]) -> None:
            nonlocal seen
            seen += len(texts)

        source.pipe(*operators).subscribe(see)  # type: ignore[arg-type]
        for at, update in enumerate(UPDATES):
            source.on_next(update)
            if at % 16 == 15:
                await asyncio.sleep(0)
        source.on_completed()
        assert seen == COUNT

    def stock(make: Callable[[AsyncIOScheduler], object]) -> Callable[[], object]:
        async def main() -> None:
            pick = rxops.filter(lambda event: isinstance(event, MessageUpdate) and isinstance(event.delta, TextDelta))
            text = rxops.map(lambda event: event.delta.text)
            await run(Subject(), pick, text, make(AsyncIOScheduler(asyncio.get_running_loop())))

        return lambda: asyncio.run(main())

    best = compare(
        rounds,
        {
            "own": lambda: asyncio.run(run(Hub(), text_deltas(), frames(PERIOD))),
            "buffer_with_time": stock(lambda clock: rxops.buffer_with_time(PERIOD, scheduler=clock)),
            "buffer_with_time_or_count": stock(lambda clock: rxops.buffer_with_time_or_count(PERIOD, 8192, scheduler=clock)),
        },
    )
    own = best.pop("own")
    name = min(best, key=lambda each: best[each])
    return own, best[name], name


def idle_wakes() -> int:
    """Timers set in ten virtual minutes of silence behind ``frames``."""
    wakes = 0

    class Counting(VirtualLoop):
        def call_at(self, *args: object, **kwargs: object) -> asyncio.TimerHandle:
            nonlocal wakes
            wakes += 1
            return super().call_at(*args, **kwargs)  # type: ignore[arg-type]

    async def main() -> None:
        nonlocal wakes
        hub = Hub[int]()
        hub.pipe(frames(PERIOD)).subscribe(ignore)
        await emit(hub.on_next, 1)
        await asyncio.sleep(1)
        wakes = 0
        await asyncio.sleep(600)
        wakes -= 1  # that sleep itself

    loop = Counting()
    loop.run_until_complete(main())
    loop.close()
    return wakes


def ratios(rounds: int) -> None:
    rows: list[list[object]] = []
    for observers in (1, 5, 10):
        own, stock = multicast(rounds, observers)
        rows.append([f"`Hub.on_next`, {observers} observers, against `Subject.on_next`", own, stock, own / stock, 0.6])
    for observers in (1, 5, 10):
        own, stock = awaited(rounds, observers)
        rows.append(
            [f"`await emit`, {observers} observers, against a coroutine around `Subject.on_next`", own, stock, own / stock, 0.9]
        )
    own, stock = handed_over(rounds)
    rows.append(["`offload` to a thread, against `observe_on`", own, stock, own / stock, 0.5])
    own, stock, name = framed(rounds)
    rows.append([f"`text_deltas`, `frames`, against `filter`, `map`, `{name}`", own, stock, own / stock, 0.5])
    print(table(["", "own, µs", "stock, µs", "ratio", "at most"], rows))
    print(f"\n`frames` over ten silent virtual minutes: {idle_wakes()} timers.\n")


def slow_consumer(deltas: int) -> None:
    """A million deltas from a socket to a sink on another thread, fast and ten times slower."""
    rows: list[list[object]] = []
    peaks: dict[str, int] = {}
    script = str(Path(__file__).parent / "slow_consumer.py")
    for sink in ("fast", "slow"):
        out = subprocess.run([sys.executable, script, sink, str(deltas)], capture_output=True, text=True, check=True)
        received, in_order, queue, ahead, peak, seconds = out.stdout.split()
        peaks[sink] = int(peak)
        rows.append([sink, int(received), in_order, int(queue), int(ahead) / 1024, int(peak) / 1024, float(seconds)])
    print(
        table(
            ["sink", "received", "in order", "longest queue", "read ahead, KiB", "peak RSS, MiB", "seconds"],
            rows,
        )
    )
    print(f"\nPeak RSS, slow minus fast: {(peaks['slow'] - peaks['fast']) / 1024:.1f} MiB (at most 32).\n")


def slow_agent(deltas: int) -> None:
    """The same through a whole run: HTTP, wire, engine, hub."""
    rows: list[list[object]] = []
    script = str(Path(__file__).parent / "slow_agent.py")
    for sink in ("fast", "slow"):
        out = subprocess.run([sys.executable, script, sink, str(deltas)], capture_output=True, text=True, check=True)
        received, in_order, ahead, peak, seconds = out.stdout.split()
        rows.append([sink, int(received), in_order, int(ahead) / 1024, int(peak) / 1024, float(seconds)])
    print(table(["sink of a run", "received", "in order", "read ahead, KiB", "peak RSS, MiB", "seconds"], rows))


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--rounds", type=int, default=7)
    arguments.add_argument("--deltas", type=int, default=1_000_000)
    arguments.add_argument("--skip-slow", action="store_true")
    options = arguments.parse_args()
    print(where() + "\n")
    ratios(options.rounds)
    if not options.skip_slow:
        slow_consumer(options.deltas)
        slow_agent(options.deltas // 5)


if __name__ == "__main__":
    main()
