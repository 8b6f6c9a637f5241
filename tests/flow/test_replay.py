"""Replay: everybody gets everything, in order, whenever they come."""

import asyncio
import random
import sys
import threading

from reactivex import operators as rxops

from rxagent.flow import Fault, Release, Replay, emit, hold, publish


def test_a_late_subscriber_gets_all_from_the_start_then_goes_on_live() -> None:
    run = Replay[int]()
    run.on_next(1)
    run.on_next(2)
    seen: list[object] = []
    run.subscribe(seen.append, on_completed=lambda: seen.append("end"))
    assert seen == [1, 2]
    run.on_next(3)
    run.on_completed()
    run.on_next(4)
    assert seen == [1, 2, 3, "end"]
    assert run.values == [1, 2, 3]


def test_after_the_end_a_subscriber_gets_all_and_the_end() -> None:
    run = Replay([1, 2])
    run.on_error(ValueError("x"))
    seen: list[object] = []
    run.subscribe(seen.append, lambda error: seen.append(str(error)))
    assert seen == [1, 2, "x"]


def test_joining_in_the_middle_of_a_delivery_neither_repeats_nor_loses() -> None:
    run = Replay[int]()
    late: list[int] = []

    def grow(value: int) -> None:
        if value < 5:
            run.on_next(value + 1)
        if value == 3:
            run.subscribe(late.append)

    run.subscribe(grow)
    run.on_next(0)
    assert late == [0, 1, 2, 3, 4, 5]


def test_take_stops_a_replay_that_is_under_way() -> None:
    given: list[int] = []
    run = Replay(list(range(1000)))
    seen: list[int] = []
    run.pipe(rxops.do_action(given.append), rxops.take(2)).subscribe(seen.append)
    assert seen == [0, 1]
    assert given == [0, 1]


def test_a_holding_subscriber_pauses_its_own_replay_without_a_loop() -> None:
    run = Replay([1, 2, 3])
    seen: list[int] = []
    releases: list[Release] = []

    def slow(value: int) -> None:
        seen.append(value)
        releases.append(hold())

    run.subscribe(slow)
    assert seen == [1]
    publish(run.on_next, 4)
    assert seen == [1]
    for count in (2, 3, 4):
        releases[-1].release()
        assert len(seen) == count
    assert seen == [1, 2, 3, 4]


async def test_a_holding_subscriber_pauses_its_own_replay_and_resumes_on_the_loop() -> None:
    run = Replay(list(range(100)))
    seen: list[int] = []

    def slow(value: int) -> None:
        seen.append(value)
        asyncio.get_running_loop().call_later(0, hold().release)

    run.subscribe(slow)
    assert seen == [0]
    while len(seen) < 100:
        await asyncio.sleep(0)
    assert seen == list(range(100))
    await emit(run.on_next, 100)
    while len(seen) < 101:
        await asyncio.sleep(0)
    assert seen[-1] == 100


async def test_a_subscriber_that_caught_up_slows_the_source() -> None:
    run = Replay([1])
    releases: list[Release] = []
    run.subscribe(lambda value: releases.append(hold()) if value > 1 else None)
    task = asyncio.ensure_future(emit(run.on_next, 2))
    await asyncio.sleep(0)
    assert not task.done()
    releases[0].release()
    await task


def test_disposing_a_paused_replay_ends_it() -> None:
    run = Replay([1, 2, 3])
    seen: list[int] = []
    releases: list[Release] = []

    def slow(value: int) -> None:
        seen.append(value)
        releases.append(hold())

    subscription = run.subscribe(slow)
    subscription.dispose()
    assert seen == [1]
    assert not releases[0].active


def test_a_subscriber_that_raises_during_its_replay_is_reported_and_dropped() -> None:
    faults: list[Fault] = []
    run = Replay([1, 0, 2], faults.append)
    seen: list[int] = []
    run.subscribe(lambda value: seen.append(1 // value))
    run.on_next(5)
    assert seen == [1]
    assert faults[0].value == 0


def test_subscribers_from_other_threads_get_each_value_once_and_in_order() -> None:
    run = Replay[int]()
    total = 3000
    results: list[list[int]] = []
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)

    def join() -> None:
        for _ in range(20):
            seen: list[int] = []
            results.append(seen)
            run.subscribe(seen.append)
            threading.Event().wait(random.random() / 1000)

    threads = [threading.Thread(target=join) for _ in range(3)]
    try:
        for thread in threads:
            thread.start()
        for value in range(total):
            run.on_next(value)
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    assert len(results) == 60
    for seen in results:
        assert seen == list(range(total))
