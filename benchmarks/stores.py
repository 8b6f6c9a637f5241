"""Stores: appending against a bare SQLite loop, the delay of a reader in another process, replay to state.

Run it with ``python benchmarks/stores.py``. Rounds are interleaved and the fastest of each is reported, since
everything that disturbs a round makes it slower.
"""

import asyncio
import multiprocessing
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from rxagent.events import AnyEvent, Custom, MessageEnd, MessageStart, MessageUpdate, Origin, SessionStart, TextDelta, to_json
from rxagent.log import EventStore
from rxagent.messages import AssistantMessage
from rxagent.state import AgentState, reduce
from rxagent.stores import JsonlStore, MemoryStore, SqliteStore

ROUNDS = 7
EVENTS = 12_800
ORIGIN = Origin("s", "r", "agent", ("agent",))
MESSAGE = AssistantMessage(id="m", timestamp=1.0)


def deltas(count: int, first: int = 0) -> list[AnyEvent]:
    """Text deltas as a run has them, about 180 bytes each."""
    return [MessageUpdate(TextDelta("some text "), seq=seq, origin=ORIGIN) for seq in range(first, first + count)]


def bare(path: Path, events: list[AnyEvent], batch: int) -> None:
    """The same bytes, already encoded, into one table, a synced transaction per batch; nothing else."""
    rows = [(seq, to_json(event).decode()) for seq, event in enumerate(events)]
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = FULL")
    db.execute("CREATE TABLE events (seq INTEGER PRIMARY KEY, event TEXT)")

    def run() -> None:
        for start in range(0, len(rows), batch):
            db.execute("BEGIN")
            db.executemany("INSERT INTO events VALUES (?, ?)", rows[start : start + batch])
            db.execute("COMMIT")

    measure("bare SQLite", batch, run)
    db.close()


async def ours(name: str, store: EventStore, events: list[AnyEvent], batch: int) -> None:
    """One writer that waits for each acknowledgement; encoding, checking and hand-over included."""
    cpu, wall = time.process_time(), time.perf_counter()
    for start in range(0, len(events), batch):
        await store.append("s", start, events[start : start + batch])
    note(name, batch, time.perf_counter() - wall, time.process_time() - cpu)
    await store.close()


async def many(store: EventStore, events: list[AnyEvent], writers: int) -> None:
    """Writers of different sessions, each appending one by one: the store batches."""

    async def write(name: str) -> None:
        for seq in range(len(events) // writers):
            await store.append(name, seq, events[seq : seq + 1])

    cpu, wall = time.process_time(), time.perf_counter()
    await asyncio.gather(*(write(f"s{n}") for n in range(writers)))
    note(f"SqliteStore, {writers} writers", 1, time.perf_counter() - wall, time.process_time() - cpu)
    await store.close()


results: dict[tuple[str, int], list[tuple[float, float]]] = {}


def note(name: str, batch: int, wall: float, cpu: float) -> None:
    results.setdefault((name, batch), []).append((wall, cpu))


def measure(name: str, batch: int, run: Callable[[], None]) -> None:
    cpu, wall = time.process_time(), time.perf_counter()
    run()
    note(name, batch, time.perf_counter() - wall, time.process_time() - cpu)


def appending() -> None:
    for batch in (1, 64, 512):
        events = deltas(EVENTS if batch > 1 else EVENTS // 8)
        for _ in range(ROUNDS):
            with tempfile.TemporaryDirectory(dir=".") as name:
                folder = Path(name)
                bare(folder / "bare.db", events, batch)
                asyncio.run(ours("SqliteStore", SqliteStore(folder / "ours.db"), events, batch))
                asyncio.run(ours("JsonlStore", JsonlStore(folder / "ours.jsonl"), events, batch))
                asyncio.run(ours("MemoryStore", MemoryStore(), events, batch))
                if batch == 1:
                    asyncio.run(many(SqliteStore(folder / "many.db"), events, 64))
    print("| what | events per append | events/s | CPU µs an event | of bare, time | of bare, CPU |")
    print("|---|---|---|---|---|---|")
    for (name, batch), rounds in results.items():
        count = EVENTS if batch > 1 else EVENTS // 8
        wall, cpu = (min(column) for column in zip(*rounds, strict=True))
        base_wall, base_cpu = (min(column) for column in zip(*results["bare SQLite", batch], strict=True))
        speed, cost = f"{count / wall:,.0f}", f"{cpu / count * 1e6:.1f}"
        print(f"| {name} | {batch} | {speed} | {cost} | {wall / base_wall:.2f} | {cpu / base_cpu:.2f} |")


def follow(
    path: str, kind: type[SqliteStore] | type[JsonlStore], count: int, answer: "multiprocessing.SimpleQueue[list[float]]"
) -> None:
    """In another process: how long after its append began each event arrived, in seconds."""

    async def main() -> None:
        delays: list[float] = []
        done = asyncio.Event()

        def take(event: AnyEvent) -> None:
            assert isinstance(event, Custom)
            assert isinstance(event.data, float)
            delays.append(time.monotonic() - event.data)
            if len(delays) == count:
                done.set()

        async with kind(path) as store:
            store.read("s").subscribe(take)
            answer.put([])
            await done.wait()
        answer.put(delays)

    asyncio.run(main())


async def paced(store: EventStore, rate: int, count: int) -> None:
    """Appends ``rate`` events a second, one by one."""
    begin = time.monotonic()
    seq = 0
    while seq < count:
        due = min(int((time.monotonic() - begin) * rate) + 1, count)
        while seq < due:
            await store.append("s", seq, [Custom("n", time.monotonic(), origin=ORIGIN)])
            seq += 1
        await asyncio.sleep(1 / rate)
    await store.close()


def tailing(rate: int = 2000, count: int = 10_000) -> None:
    print(f"\n| a reader in another process, {rate} events/s one by one | p50 ms | p95 ms | p99 ms |\n|---|---|---|---|")
    context = multiprocessing.get_context("spawn")
    for kind in (SqliteStore, JsonlStore):
        with tempfile.TemporaryDirectory(dir=".") as folder:
            path = str(Path(folder) / "runs")
            answer: multiprocessing.Queue[list[float]] = context.Queue()
            store = kind(path)
            reader = context.Process(target=follow, args=(path, kind, count, answer))
            reader.start()
            answer.get(timeout=60)
            asyncio.run(paced(store, rate, count))
            cuts = statistics.quantiles(answer.get(timeout=60), n=100)
            reader.join()
            print(f"| {kind.__name__} | {cuts[49] * 1e3:.1f} | {cuts[94] * 1e3:.1f} | {cuts[98] * 1e3:.1f} |")


async def replayed(store: EventStore, count: int) -> tuple[float, float]:
    """CPU seconds to load a session of ``count`` events, and to fold it to its state."""
    events: list[AnyEvent] = [SessionStart(origin=ORIGIN)]
    while len(events) < count:
        seq = len(events)
        events += [
            MessageStart(MESSAGE, seq=seq, origin=ORIGIN),
            *deltas(998, seq + 1),
            MessageEnd(MESSAGE, seq=seq + 999, origin=ORIGIN),
        ]
    for start in range(0, count, 1000):
        await store.append("s", start, events[start : min(start + 1000, count)])
    begin = time.process_time()
    stored = await store.load("s")
    loaded = time.process_time()
    state = AgentState()
    for event in stored:
        state = reduce(state, event)
    folded = time.process_time()
    assert len(stored) == count
    await store.close()
    return loaded - begin, folded - loaded


def replaying() -> None:
    print("\n| replay | events | load, µs an event | fold, µs an event | together, s |\n|---|---|---|---|---|")
    for kind in (SqliteStore, JsonlStore):
        for count in (1_000, 10_000, 100_000):
            rounds: list[tuple[float, float]] = []
            for _ in range(ROUNDS if count < 100_000 else 3):
                with tempfile.TemporaryDirectory(dir=".") as folder:
                    rounds.append(asyncio.run(replayed(kind(Path(folder) / "runs"), count)))
            load, fold = (min(column) for column in zip(*rounds, strict=True))
            print(f"| {kind.__name__} | {count:,} | {load / count * 1e6:.1f} | {fold / count * 1e6:.1f} | {load + fold:.2f} |")


if __name__ == "__main__":
    appending()
    tailing()
    replaying()
