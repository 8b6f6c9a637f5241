"""A hundred observers of all kinds at once, threads that switch all the time: once each, in order."""

import asyncio
import itertools
import sys
import threading
import time
from collections.abc import Iterator

import pytest
from reactivex import abc
from reactivex.scheduler import ThreadPoolScheduler

from rxagent.flow import Fault, Hub, LoopClock, Replay, emit, frames, hold, offload, subscribe_async, to_aiter


@pytest.fixture
def impatient() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


async def until_complete(seen: list[list[int]], length: int) -> None:
    async with asyncio.timeout(60):
        while any(len(each) < length for each in seen):
            await asyncio.sleep(0.001)


@pytest.mark.parametrize("kind", [Hub, Replay])
@pytest.mark.usefixtures("impatient")
async def test_a_hundred_observers_of_all_kinds_each_see_every_value_once_and_in_order(kind: type[Hub[int]]) -> None:
    faults: list[Fault] = []
    hub = kind(on_fault=faults.append)
    loop = asyncio.get_running_loop()
    pool = ThreadPoolScheduler(4)
    seen: list[list[int]] = []
    subscriptions: list[abc.DisposableBase] = []
    total = 300

    def holding(value: int, into: list[int]) -> None:
        into.append(value)
        loop.call_soon(hold().release)

    def raising(value: int) -> None:
        if value == 150:
            raise ValueError(value)

    async def handle(value: int, into: list[int]) -> None:
        await asyncio.sleep(0)
        into.append(value)

    for number in range(100):
        into: list[int] = []
        match number % 6:
            case 0:
                subscription = hub.subscribe(into.append)
            case 1:
                subscription = hub.subscribe(lambda value, into=into: holding(value, into))
            case 2:
                subscription = subscribe_async(hub, lambda value, into=into: handle(value, into), capacity=number % 3)
            case 3:
                subscription = hub.pipe(offload(pool, 8)).subscribe(into.append)
            case 4:
                subscription = hub.pipe(frames(0.001, max_items=16)).subscribe(into.extend)
            case _:
                subscriptions.append(hub.subscribe(raising))
                continue
        seen.append(into)
        subscriptions.append(subscription)
    for value in range(total):
        await emit(hub.on_next, value)
    await until_complete(seen, total)
    for subscription in subscriptions:
        subscription.dispose()
    assert all(each == list(range(total)) for each in seen)
    assert len(faults) == 16
    assert not hub.observed
    pool.executor.shutdown()


@pytest.mark.usefixtures("impatient")
async def test_a_source_on_another_loop_and_a_small_buffer_lose_no_wake_up() -> None:
    hub = Hub[int]()
    iterator = to_aiter(hub, capacity=1)

    async def produce() -> None:
        for value in range(2000):
            await emit(hub.on_next, value)
        hub.on_completed()

    thread = threading.Thread(target=lambda: asyncio.run(produce()))
    thread.start()
    async with asyncio.timeout(60):
        assert [value async for value in iterator] == list(range(2000))
    thread.join()


@pytest.mark.usefixtures("impatient")
async def test_there_and_back_through_threads_with_the_smallest_queues() -> None:
    hub = Hub[int]()
    worker = ThreadPoolScheduler(1)
    seen: list[int] = []
    end = asyncio.Event()
    hub.pipe(offload(worker, 1), offload(LoopClock(), 1)).subscribe(seen.append, on_completed=end.set)
    for value in range(1000):
        await emit(hub.on_next, value)
    hub.on_completed()
    async with asyncio.timeout(60):
        await end.wait()
    assert seen == list(range(1000))
    worker.executor.shutdown()


@pytest.mark.usefixtures("impatient")
async def test_subscribing_and_disposing_from_threads_while_values_flow_never_repeats_or_reorders() -> None:
    hub = Hub[int]()
    pieces: list[list[int]] = []
    stop = threading.Event()

    def come_and_go() -> None:
        while not stop.is_set():
            piece: list[int] = []

            def see(value: int, piece: list[int] = piece) -> None:
                piece.append(value)
                if len(piece) == 3:
                    hold()  # nobody releases it but the dispose below

            subscription = hub.subscribe(see)
            while len(piece) < 3 and not stop.is_set():
                time.sleep(0)
            subscription.dispose()
            pieces.append(piece)

    threads = [threading.Thread(target=come_and_go) for _ in range(3)]
    for thread in threads:
        thread.start()
    async with asyncio.timeout(60):
        for value in range(500):
            await emit(hub.on_next, value)
    stop.set()
    for thread in threads:
        thread.join()
    assert sum(map(len, pieces)) > 100
    for piece in pieces:
        assert all(b == a + 1 for a, b in itertools.pairwise(piece))
    assert not hub.observed


@pytest.mark.parametrize("kind", [Hub, Replay])
@pytest.mark.usefixtures("impatient")
def test_several_feeding_threads_lose_nothing_and_all_observers_see_one_order(kind: type[Hub[tuple[int, int]]]) -> None:
    hub = kind()
    seen: list[list[tuple[int, int]]] = [[] for _ in range(3)]
    for into in seen:
        hub.subscribe(into.append)

    def feed(number: int) -> None:
        for value in range(2000):
            hub.on_next((number, value))

    threads = [threading.Thread(target=feed, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen[0] == seen[1] == seen[2]
    assert len(seen[0]) == 8000
    for number in range(4):
        assert [value for feeder, value in seen[0] if feeder == number] == list(range(2000))
