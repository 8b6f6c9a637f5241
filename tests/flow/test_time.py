"""The operators on the loop's clock, in virtual time: pace, losslessness, holds, no idle timer."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine
from datetime import timedelta

import pytest
import reactivex as rx
from reactivex import Observable
from reactivex import operators as rxops

from rxagent.errors import NoRunningLoop, UsageError
from rxagent.flow import (
    Fault,
    Gate,
    Hub,
    LoopClock,
    Release,
    conflate,
    debounce,
    delay,
    emit,
    frames,
    hold,
    publish,
    sample,
    subscribe_async,
    throttle_first,
)
from rxagent.marble.loop import VirtualLoop

Log = list[tuple[float, object]]
Operator = Callable[[Observable[object]], Observable[object]]


def virtual(main: Callable[[], Coroutine[object, object, None]]) -> VirtualLoop:
    loop = VirtualLoop()
    try:
        loop.run_until_complete(main())
    finally:
        loop.close()
    return loop


def record(hub: Hub[object], operator: Operator) -> tuple[Log, Callable[[], None]]:
    """Log what comes out, with its time in ms."""
    log: Log = []
    loop = asyncio.get_running_loop()

    def at(value: object) -> None:
        log.append((round(loop.time() * 1000, 6), value))

    subscription = hub.pipe(operator).subscribe(at, lambda error: at(f"error {error}"), lambda: at("end"))
    return log, subscription.dispose


def play(operator: Operator, *steps: tuple[int, object]) -> Log:
    """Send each value at its time in ms; "end" and an exception are the end."""
    result: Log = []

    async def main() -> None:
        nonlocal result
        hub = Hub[object]()
        result, _ = record(hub, operator)
        for at, value in steps:
            await asyncio.sleep(at / 1000 - asyncio.get_running_loop().time())
            if value == "end":
                hub.on_completed()
            elif isinstance(value, Exception):
                hub.on_error(value)
            else:
                await emit(hub.on_next, value)
        await asyncio.sleep(10)
        assert not timers()

    virtual(main)
    return result


def timers() -> list[asyncio.TimerHandle]:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    return loop.pending_timers()


def test_frames_gives_the_first_value_at_once_then_one_list_per_period() -> None:
    log = play(frames(0.016), (0, "a"), (1, "b"), (2, "c"), (20, "d"), (100, "e"), (101, "f"))
    assert log == [(0, ["a"]), (16, ["b", "c"]), (32, ["d"]), (100, ["e"]), (116, ["f"])]


def test_frames_never_gives_an_empty_list() -> None:
    log = play(frames(0.016), *((at, at) for at in range(0, 2000, 37)))
    assert all(value for _, value in log)


def test_frames_flushes_the_rest_before_completion() -> None:
    assert play(frames(0.016), (0, 1), (1, 2), (2, "end")) == [(0, [1]), (2, [2]), (2, "end")]


def test_frames_flushes_the_rest_before_an_error() -> None:
    assert play(frames(0.016), (0, 1), (1, 2), (2, ValueError("x"))) == [(0, [1]), (2, [2]), (2, "error x")]


def test_frames_flushes_early_when_full_and_never_exceeds_its_size() -> None:
    log = play(frames(1.0, max_items=3), *((at, at) for at in range(8)), (9, "end"))
    assert log == [(0, [0]), (3, [1, 2, 3]), (6, [4, 5, 6]), (9, [7]), (9, "end")]


def test_frames_splits_what_a_source_that_cannot_wait_piled_up() -> None:
    async def main() -> None:
        hub = Hub[object]()
        lists: list[list[object]] = []
        releases: list[Release] = []

        def slow(items: list[object]) -> None:
            lists.append(items)
            releases.append(hold())

        hub.pipe(frames(0.01, max_items=3)).subscribe(slow)
        for value in range(10):
            hub.on_next(value)
        for index in range(4):
            while len(releases) <= index:
                await asyncio.sleep(0.001)
            releases[index].release()
        assert lists == [[0], [1, 2, 3], [4, 5, 6], [7, 8, 9]]

    virtual(main)


def test_frames_holds_the_source_only_when_full_and_held_itself() -> None:
    async def main() -> None:
        hub = Hub[object]()
        releases: list[Release] = []
        hub.pipe(frames(0.01, max_items=2)).subscribe(lambda _: releases.append(hold()))
        for value in range(2):
            await asyncio.wait_for(emit(hub.on_next, value), 1)
        full = asyncio.ensure_future(emit(hub.on_next, 2))
        await asyncio.sleep(5)
        assert not full.done()
        releases[0].release()
        await asyncio.sleep(0.001)
        assert full.done()
        releases[1].release()

    virtual(main)


def test_frames_wakes_nobody_in_ten_idle_minutes() -> None:
    async def main() -> None:
        hub = Hub[object]()
        log, _ = record(hub, frames(1 / 60))
        await emit(hub.on_next, 1)
        await emit(hub.on_next, 2)
        await asyncio.sleep(1)
        assert len(log) == 2
        assert timers() == []
        loop = asyncio.get_running_loop()
        wakes = 0
        call_at = loop.call_at

        def counting(*args: object, **kwargs: object) -> asyncio.TimerHandle:
            nonlocal wakes
            wakes += 1
            return call_at(*args, **kwargs)  # type: ignore[arg-type]

        loop.call_at = counting  # type: ignore[method-assign]
        await asyncio.sleep(600)
        assert wakes == 1  # that sleep's own

    virtual(main)


def test_frames_completes_after_a_consumer_that_holds() -> None:
    async def main() -> None:
        hub = Hub[object]()
        lists: list[object] = []
        releases: list[Release] = []

        def slow(items: list[object]) -> None:
            lists.append(items)
            releases.append(hold())

        hub.pipe(frames(0.01)).subscribe(slow, on_completed=lambda: lists.append("end"))
        hub.on_next(1)
        hub.on_next(2)
        hub.on_completed()
        await asyncio.sleep(1)
        assert lists == [[1]]
        releases[0].release()
        await asyncio.sleep(1)
        assert lists == [[1], [2]]
        releases[1].release()
        await asyncio.sleep(1)
        assert lists == [[1], [2], "end"]

    virtual(main)


def test_conflate_gives_the_first_at_once_and_always_the_last() -> None:
    log = play(conflate(0.016), (0, "a"), (1, "b"), (2, "c"), (100, "d"), (101, "e"), (102, "end"))
    assert log == [(0, "a"), (16, "c"), (100, "d"), (102, "e"), (102, "end")]


def test_conflate_keeps_the_latest_while_its_consumer_holds_and_never_holds_the_source() -> None:
    async def main() -> None:
        hub = Hub[object]()
        seen: list[object] = []
        releases: list[Release] = []

        def slow(value: object) -> None:
            seen.append(value)
            releases.append(hold())

        hub.pipe(conflate(0.01)).subscribe(slow)
        for value in range(100):
            await asyncio.wait_for(emit(hub.on_next, value), 1)
        await asyncio.sleep(1)
        assert seen == [0]
        releases[0].release()
        await asyncio.sleep(0.001)
        assert seen == [0, 99]

    virtual(main)


def test_delay_shifts_values_and_the_end() -> None:
    assert play(delay(0.05), (0, 1), (10, 2), (20, "end")) == [(50, 1), (60, 2), (70, "end")]


def test_delay_loses_nothing_before_an_error() -> None:
    assert play(delay(0.05), (0, 1), (10, 2), (20, ValueError("x"))) == [(50, 1), (60, 2), (70, "error x")]


def test_delay_holds_the_source_when_too_much_is_on_the_way() -> None:
    async def main() -> None:
        hub = Hub[object]()
        log, _ = record(hub, delay(1.0, capacity=2))
        for value in range(5):
            await emit(hub.on_next, value)
        await asyncio.sleep(5)
        assert [value for _, value in log] == [0, 1, 2, 3, 4]
        assert [at for at, _ in log] == [1000, 1000, 1000, 2000, 2000]

    virtual(main)


def test_delay_holds_the_source_until_enough_is_delivered() -> None:
    async def main() -> None:
        hub = Hub[object]()
        loop = asyncio.get_running_loop()
        record(hub, delay(1.0, capacity=2))
        for value in range(4):  # more than it holds, from a source that didn't wait
            hub.on_next(value)
            await asyncio.sleep(0.001)
        await emit(hub.on_next, 4)
        assert round(loop.time(), 6) == 1.002

    virtual(main)


def test_debounce_waits_for_silence_and_gives_the_last() -> None:
    log = play(debounce(0.05), (0, 1), (40, 2), (80, 3), (200, 4), (210, "end"))
    assert log == [(130, 3), (210, 4), (210, "end")]


def test_debounce_gives_what_it_keeps_before_an_error() -> None:
    assert play(debounce(0.05), (0, 1), (10, ValueError("x"))) == [(10, 1), (10, "error x")]


def test_debounce_sets_one_timer_however_many_values_come() -> None:
    async def main() -> None:
        hub = Hub[object]()
        record(hub, debounce(0.05))
        for value in range(1000):
            hub.on_next(value)
        assert len(timers()) == 1
        await asyncio.sleep(1)

    virtual(main)


def test_sample_gives_the_latest_at_fixed_times_and_does_not_delay_the_end() -> None:
    log = play(sample(0.1), (10, 1), (20, 2), (150, 3), (450, 4), (460, "end"))
    assert log == [(100, 2), (200, 3), (460, 4), (460, "end")]


def test_throttle_first_gives_one_value_per_period() -> None:
    log = play(throttle_first(0.1), (0, 1), (50, 2), (99, 3), (100, 4), (150, 5), (300, 6), (301, "end"))
    assert log == [(0, 1), (100, 4), (300, 6), (301, "end")]


def test_throttle_first_lets_a_hold_through() -> None:
    async def main() -> None:
        hub = Hub[object]()
        hub.pipe(throttle_first(0.1)).subscribe(lambda _: hold())
        pending = publish(hub.on_next, 1)
        assert pending is not None
        assert pending.held

    virtual(main)


TIMED: list[tuple[str, Operator]] = [
    ("frames", frames(0.01)),
    ("conflate", conflate(0.01)),
    ("delay", delay(0.01)),
    ("debounce", debounce(0.01)),
    ("sample", sample(0.01)),
]
timed = pytest.mark.parametrize("operator", [operator for _, operator in TIMED], ids=[name for name, _ in TIMED])


@timed
def test_disposing_leaves_no_timer_and_delivers_no_more(operator: Operator) -> None:
    async def main() -> None:
        hub = Hub[object]()
        log, dispose = record(hub, operator)
        hub.on_next(1)
        hub.on_next(2)
        before = len(log)
        dispose()
        assert timers() == []
        assert not hub.observed
        await asyncio.sleep(1)
        assert len(log) == before

    virtual(main)


@timed
def test_a_value_from_within_a_delivery_is_not_lost(operator: Operator) -> None:
    async def main() -> None:
        hub = Hub[object]()
        seen: list[object] = []

        def answer(value: object) -> None:
            seen.append(value)
            if len(seen) == 1:
                hub.on_next("again")

        hub.pipe(operator).subscribe(answer)
        hub.on_next("first")
        await asyncio.sleep(1)
        assert seen in (["first", "again"], [["first"], ["again"]])

    virtual(main)


@timed
def test_a_raising_observer_is_reported_by_its_hub_and_the_loop_lives_on(operator: Operator) -> None:
    async def main() -> None:
        faults: list[Fault] = []
        hub = Hub[object](faults.append)
        other: list[object] = []
        hub.subscribe(other.append)
        hub.pipe(operator).subscribe(lambda value: value.missing)  # type: ignore[attr-defined]
        await emit(hub.on_next, 1)
        await asyncio.sleep(1)
        await emit(hub.on_next, 2)
        await asyncio.sleep(1)
        assert len(faults) == 1
        assert isinstance(faults[0].error, AttributeError)
        assert "test_a_raising_observer" in faults[0].subscribed_at
        assert other == [1, 2]
        assert timers() == []

    virtual(main)


@timed
def test_waiting_for_the_source_behind_a_timed_operator_raises(operator: Operator) -> None:
    async def main() -> None:
        hub = Hub[object]()
        gate = Gate()
        faults: list[Fault] = []

        async def waits(_: object) -> None:
            gate.check("await run")

        subscription = subscribe_async(hub.pipe(operator), waits, on_fault=faults.append)
        await emit(hub.on_next, 1, gate)
        await asyncio.sleep(1)
        await subscription.drained()
        assert "await run" in str(faults[0].error)

    virtual(main)


@timed
async def test_values_from_another_thread_arrive_on_the_loop_in_order(operator: Operator) -> None:
    hub = Hub[object]()
    seen: list[object] = []
    threads: set[int] = set()
    end = asyncio.Event()

    def see(value: object) -> None:
        threads.add(threading.get_ident())
        seen.extend(value if isinstance(value, list) else [value])

    hub.pipe(operator).subscribe(see, on_completed=end.set)

    def produce() -> None:
        for value in range(200):
            hub.on_next(value)
        hub.on_completed()

    thread = threading.Thread(target=produce)
    thread.start()
    await asyncio.wait_for(end.wait(), 10)
    thread.join()
    assert threads == {threading.get_ident()}
    assert seen == sorted(seen)
    assert seen[-1] == 199


@timed
def test_one_chain_serves_one_loop_after_another(operator: Operator) -> None:
    hub = Hub[object]()
    seen: list[object] = []
    hub.pipe(operator).subscribe(seen.append)

    async def main() -> None:
        await asyncio.sleep(100 if not seen else 1)
        await emit(hub.on_next, "value")
        await asyncio.sleep(1)

    virtual(main)
    virtual(main)
    assert len(seen) == 2


@timed
def test_an_end_without_any_loop_goes_through(operator: Operator) -> None:
    ends: list[str] = []
    rx.empty().pipe(operator).subscribe(on_completed=lambda: ends.append("end"))
    assert ends == ["end"]


@timed
def test_the_present_value_of_a_state_passes_before_any_loop_runs(operator: Operator) -> None:
    hub = Hub[object]()
    states = Observable[object](lambda observer, _: (observer.on_next("now"), hub.subscribe(observer))[1])
    seen: list[object] = []
    states.pipe(operator).subscribe(seen.append)
    assert seen in (["now"], [["now"]])

    async def main() -> None:
        await emit(hub.on_next, "then")
        await asyncio.sleep(1)

    virtual(main)
    assert seen in (["now", "then"], [["now"], ["then"]])


def test_a_value_without_any_loop_is_a_named_error() -> None:
    faults: list[Fault] = []
    hub = Hub[object](faults.append)
    hub.pipe(frames()).subscribe(print)
    hub.on_next(1)
    assert isinstance(faults[0].error, NoRunningLoop)


@pytest.mark.parametrize(
    "make",
    [
        lambda: frames(0),
        lambda: frames(0.1, max_items=0),
        lambda: conflate(-1),
        lambda: delay(-1),
        lambda: delay(1, capacity=0),
        lambda: debounce(-1),
        lambda: sample(0),
        lambda: throttle_first(0),
    ],
)
def test_a_senseless_argument_is_refused(make: Callable[[], Operator]) -> None:
    with pytest.raises(UsageError):
        make()


def test_the_loop_clock_tells_the_loops_time_and_drives_stock_operators() -> None:
    async def main() -> None:
        clock = LoopClock()
        log: list[object] = []
        start = clock.now
        rx.timer(2.0, scheduler=clock).subscribe(lambda _: log.append((clock.now - start).total_seconds()))
        hub = Hub[object]()
        hub.pipe(rxops.delay(1.0, scheduler=clock)).subscribe(log.append)
        hub.pipe(rxops.throttle_first(10.0, scheduler=clock)).subscribe(lambda value: log.append(("first", value)))
        hub.on_next("a")
        hub.on_next("b")
        await asyncio.sleep(5)
        assert log == [("first", "a"), "a", "b", 2.0]

    virtual(main)


def test_the_loop_clock_schedules_periodically_absolutely_and_can_be_cancelled() -> None:
    async def main() -> None:
        clock = LoopClock()
        log: list[object] = []
        loop = asyncio.get_running_loop()
        periodic = clock.schedule_periodic(1.0, lambda _: log.append(loop.time()))
        clock.schedule_absolute(clock.now + timedelta(seconds=2.5), lambda *_: log.append("absolute"))
        never = clock.schedule_relative(timedelta(seconds=1), lambda *_: log.append("never"))
        never.dispose()
        await asyncio.sleep(3.2)
        periodic.dispose()
        await asyncio.sleep(5)
        assert log == [1.0, 2.0, "absolute", 3.0]
        assert timers() == []

    virtual(main)


async def test_the_loop_clock_takes_work_from_other_threads() -> None:
    clock = LoopClock()
    ran: list[int] = []
    done = asyncio.Event()

    def action(*_: object) -> None:
        ran.append(threading.get_ident())
        done.set()

    def other() -> None:
        clock.schedule_relative(0.001, action)
        clock.schedule_relative(60.0, lambda *_: ran.append(-1)).dispose()

    thread = threading.Thread(target=other)
    thread.start()
    await asyncio.wait_for(done.wait(), 5)
    thread.join()
    assert ran == [threading.get_ident()]


def test_a_loop_clock_outside_a_loop_is_refused() -> None:
    with pytest.raises(NoRunningLoop, match="LoopClock"):
        LoopClock()


def test_awaitables_of_the_kit_work_on_a_virtual_loop() -> None:
    async def main() -> None:
        hub = Hub[int]()

        async def slow(_: int) -> None:
            await asyncio.sleep(3600)

        subscribe_async(hub, slow)
        waits: Awaitable[None] = emit(hub.on_next, 1)
        await waits
        assert asyncio.get_running_loop().time() == 3600

    virtual(main)


@pytest.mark.parametrize("make", [frames, conflate, delay, debounce, sample, throttle_first])
@pytest.mark.parametrize("seconds", [-1.0, float("nan")])
def test_a_time_that_is_none_is_refused(make: Callable[[float], object], seconds: float) -> None:
    with pytest.raises(UsageError, match="must be"):
        make(seconds)
