"""overflow: the source never waits; what is lost is what was asked for, and it is counted."""

import asyncio
import threading
import time

import pytest
from reactivex.subject import Subject

from rxagent.errors import BufferOverflow, UsageError
from rxagent.flow import Hub, OverflowPolicy, Release, emit, hold, overflow


def held_after_the_first(policy: OverflowPolicy, capacity: int) -> tuple[list[object], list[object], int]:
    """Send 0…9 while the consumer holds 0, then let go; what was seen, what was dropped, the count."""
    source = Subject[int]()
    seen: list[object] = []
    dropped: list[object] = []
    releases: list[Release] = []

    def slow(value: int) -> None:
        seen.append(value)
        if value == 0:
            releases.append(hold())

    guard = overflow(policy, capacity, on_drop=dropped.append)
    source.pipe(guard).subscribe(slow, lambda error: seen.append(type(error)), lambda: seen.append("end"))
    for value in range(10):
        source.on_next(value)
    source.on_completed()
    assert seen == [0]
    releases[0].release()
    return seen, dropped, guard.dropped


def test_drop_oldest() -> None:
    assert held_after_the_first("drop_oldest", 3) == ([0, 7, 8, 9, "end"], [1, 2, 3, 4, 5, 6], 6)


def test_drop_newest() -> None:
    assert held_after_the_first("drop_newest", 3) == ([0, 1, 2, 3, "end"], [4, 5, 6, 7, 8, 9], 6)


def test_latest() -> None:
    assert held_after_the_first("latest", 3) == ([0, 9, "end"], [1, 2, 3, 4, 5, 6, 7, 8], 8)


def test_error() -> None:
    assert held_after_the_first("error", 3) == ([0, 1, 2, 3, BufferOverflow], [4], 1)


def test_nothing_is_dropped_while_nobody_holds() -> None:
    source = Subject[int]()
    seen: list[int] = []
    guard = overflow("error", 1)
    source.pipe(guard).subscribe(seen.append)
    for value in range(1000):
        source.on_next(value)
    assert seen == list(range(1000))
    assert guard.dropped == 0


async def test_a_source_that_could_wait_is_not_held() -> None:
    hub = Hub[int]()
    hub.pipe(overflow("latest")).subscribe(lambda _: hold())
    for value in range(5):
        await asyncio.wait_for(emit(hub.on_next, value), 5)


async def test_after_a_hold_values_go_on_on_the_loop_of_the_subscription() -> None:
    source = Subject[int]()
    threads: list[int] = []
    releases: list[Release] = []

    def slow(_: int) -> None:
        threads.append(threading.get_ident())
        releases.append(hold())

    source.pipe(overflow("drop_oldest", 4)).subscribe(slow)
    source.on_next(1)
    source.on_next(2)
    await asyncio.to_thread(releases[0].release)
    await asyncio.sleep(0.001)
    assert threads == [threading.get_ident()] * 2
    await asyncio.get_running_loop().shutdown_default_executor()


def test_a_sensor_thread_and_a_releasing_thread_keep_order_and_count_every_loss() -> None:
    source = Subject[int]()
    seen: list[int] = []
    releases: list[Release] = []
    stop = threading.Event()

    def slow(value: int) -> None:
        seen.append(value)
        if value % 3 == 0:
            releases.append(hold())

    def release() -> None:
        while not stop.is_set() or releases:
            while releases:
                releases.pop().release()
            time.sleep(0)

    guard = overflow("drop_oldest", 8)
    source.pipe(guard).subscribe(slow)
    thread = threading.Thread(target=release)
    thread.start()
    for value in range(5000):
        source.on_next(value)
    stop.set()
    thread.join()
    assert seen == sorted(set(seen))
    assert seen[-1] == 4999
    assert len(seen) + guard.dropped == 5000


@pytest.mark.parametrize(("policy", "capacity"), [("sometimes", 1), ("latest", 0)])
def test_a_senseless_argument_is_refused(policy: OverflowPolicy, capacity: int) -> None:
    with pytest.raises(UsageError, match="overflow"):
        overflow(policy, capacity)
