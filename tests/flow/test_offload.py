"""offload: bounded, ordered, lossless, on the scheduler's thread; nothing left when disposed."""

import asyncio
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator

import pytest
import reactivex as rx
from reactivex import Observable, abc
from reactivex import operators as rxops
from reactivex.disposable import Disposable
from reactivex.scheduler import EventLoopScheduler, ImmediateScheduler, NewThreadScheduler, ThreadPoolScheduler
from reactivex.subject import Subject

from rxagent.errors import UsageError
from rxagent.flow import Fault, Gate, Hub, LoopClock, Release, emit, hold, offload, publish, subscribe_async
from rxagent.flow.handover import Handover
from rxagent.flow.outlet import Outlet


@pytest.fixture
def worker() -> Iterator[ThreadPoolScheduler]:
    scheduler = ThreadPoolScheduler(1)
    yield scheduler
    scheduler.executor.shutdown()


@pytest.fixture
def impatient() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


async def until(done: threading.Event) -> None:
    deadline = time.monotonic() + 30
    while not done.is_set():
        assert time.monotonic() < deadline, "took too long"
        await asyncio.sleep(0.001)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("make", [ThreadPoolScheduler, NewThreadScheduler, EventLoopScheduler])
async def test_a_consumer_on_another_thread_gets_everything_in_order(make: type[abc.SchedulerBase]) -> None:
    scheduler = make(*((3,) if make is ThreadPoolScheduler else ()))
    hub = Hub[int]()
    seen: list[int] = []
    threads: set[int] = set()
    done = threading.Event()

    def slow(value: int) -> None:
        threads.add(threading.get_ident())
        seen.append(value)

    hub.pipe(offload(scheduler, 16)).subscribe(slow, on_completed=done.set)
    for value in range(3000):
        await emit(hub.on_next, value)
    hub.on_completed()
    await until(done)
    assert seen == list(range(3000))
    assert threading.get_ident() not in threads
    if isinstance(scheduler, EventLoopScheduler):
        await asyncio.sleep(0.05)  # its dispose misses a thread that isn't waiting yet
        scheduler.dispose()
    if isinstance(scheduler, ThreadPoolScheduler):
        scheduler.executor.shutdown()


@pytest.mark.usefixtures("impatient")
async def test_two_chained_offloads_with_a_slow_sink_never_queue_more_than_their_capacity_and_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    most: dict[int, int] = {}
    push = Handover[int].push

    def watched(self: Handover[int], value: int) -> None:
        push(self, value)
        most[id(self)] = max(most.get(id(self), 0), self.size)

    monkeypatch.setattr(Handover, "push", watched)
    first, second = ThreadPoolScheduler(1), ThreadPoolScheduler(1)
    hub = Hub[int]()
    seen: list[int] = []
    done = threading.Event()

    def slow(value: int) -> None:
        time.sleep(0.0002)
        seen.append(value)

    hub.pipe(offload(first, 4), offload(second, 4)).subscribe(slow, on_completed=done.set)
    for value in range(500):
        await emit(hub.on_next, value)
    hub.on_completed()
    await until(done)
    assert seen == list(range(500))
    assert len(most) == 2
    assert max(most.values()) <= 5
    first.executor.shutdown()
    second.executor.shutdown()


async def test_a_hold_downstream_pauses_the_drain_and_reaches_the_source_when_the_queue_is_full() -> None:
    hub = Hub[int]()
    releases: list[Release] = []
    hub.pipe(offload(LoopClock(), 2)).subscribe(lambda _: releases.append(hold()))
    await emit(hub.on_next, 0)
    await asyncio.sleep(0)
    for value in (1, 2):
        await asyncio.wait_for(emit(hub.on_next, value), 5)
    full = asyncio.ensure_future(emit(hub.on_next, 3))
    await asyncio.sleep(0.01)
    assert len(releases) == 1
    assert not full.done()
    releases[0].release()
    await asyncio.sleep(0.01)
    assert not full.done()
    releases[1].release()
    await asyncio.wait_for(full, 5)
    releases[2].release()


async def test_an_error_comes_after_what_is_queued() -> None:
    hub = Hub[int]()
    seen: list[object] = []
    hub.pipe(offload(LoopClock())).subscribe(seen.append, lambda error: seen.append(str(error)))
    hub.on_next(1)
    hub.on_next(2)
    hub.on_error(ValueError("x"))
    assert seen == []
    await asyncio.sleep(0.001)
    assert seen == [1, 2, "x"]


async def test_disposing_while_the_source_is_held_releases_it_and_delivers_no_more() -> None:
    hub = Hub[int]()
    seen: list[int] = []

    def stuck(value: int) -> None:
        seen.append(value)
        hold()

    subscription = hub.pipe(offload(LoopClock(), 1)).subscribe(stuck)
    for value in range(2):
        await emit(hub.on_next, value)
        await asyncio.sleep(0)
    held = asyncio.ensure_future(emit(hub.on_next, 2))
    await asyncio.sleep(0.001)
    assert not held.done()
    threading.Thread(target=subscription.dispose).start()
    await asyncio.wait_for(held, 5)
    await asyncio.sleep(0.001)
    assert seen == [0]
    assert not hub.observed


async def test_disposing_releases_a_source_that_is_no_hub() -> None:
    subject = Subject[int]()

    subscription = subject.pipe(offload(LoopClock(), 1)).subscribe(lambda _: hold())
    await emit(subject.on_next, 0)
    await asyncio.sleep(0.001)
    await emit(subject.on_next, 1)
    held = asyncio.ensure_future(emit(subject.on_next, 2))
    await asyncio.sleep(0.001)
    assert not held.done()
    subscription.dispose()
    await asyncio.wait_for(held, 5)


async def test_an_abort_lets_the_source_go_and_loses_nothing() -> None:
    hub = Hub[int]()
    gate = Gate()
    seen: list[int] = []
    releases: list[Release] = []

    def slow(value: int) -> None:
        seen.append(value)
        releases.append(hold())

    hub.pipe(offload(LoopClock(), 1)).subscribe(slow)
    gate.open()
    for value in range(6):
        await asyncio.wait_for(emit(hub.on_next, value, gate), 5)
    for index in range(6):
        while len(releases) <= index:
            await asyncio.sleep(0)
        releases[index].release()
    assert seen == list(range(6))


async def test_an_observer_that_raises_on_the_other_thread_is_reported_by_its_hub(worker: ThreadPoolScheduler) -> None:
    faults: list[Fault] = []
    hub = Hub[int](faults.append)
    other: list[int] = []
    hub.pipe(offload(worker)).subscribe(lambda value: 1 // value)
    hub.subscribe(other.append)
    await emit(hub.on_next, 0)
    while not faults:
        await asyncio.sleep(0.001)
    await emit(hub.on_next, 1)
    assert isinstance(faults[0].error, ZeroDivisionError)
    assert faults[0].value == 0
    assert "test_an_observer_that_raises" in faults[0].subscribed_at
    assert other == [0, 1]
    worker.executor.shutdown()


def test_a_raising_observer_behind_a_foreign_source_is_printed(
    worker: ThreadPoolScheduler, capsys: pytest.CaptureFixture[str]
) -> None:
    done = threading.Event()
    rx.concat(rx.from_iterable([0, 1]), rx.never()).pipe(rxops.finally_action(done.set), offload(worker)).subscribe(
        lambda value: 1 // value
    )
    assert done.wait(5)
    time.sleep(0.01)
    text = capsys.readouterr().err
    assert "ZeroDivisionError" in text
    assert "test_offload.py" in text


async def test_waiting_for_the_source_behind_an_offload_raises_instead_of_hanging() -> None:
    hub = Hub[int]()
    gate = Gate()
    faults: list[Fault] = []

    async def waits(_: int) -> None:
        gate.check("await run")

    subscription = subscribe_async(hub.pipe(offload(LoopClock(), 1)), waits, on_fault=faults.append)
    await emit(hub.on_next, 1, gate)
    await asyncio.sleep(0.001)
    await subscription.drained()
    assert "await run" in str(faults[0].error)


async def test_a_scheduler_that_is_gone_is_reported_and_holds_nobody(capsys: pytest.CaptureFixture[str]) -> None:
    gone = asyncio.new_event_loop()
    clock = LoopClock(gone)
    gone.close()
    subject = Subject[int]()
    subject.pipe(offload(clock, 1)).subscribe(print)
    for value in range(5):
        await asyncio.wait_for(emit(subject.on_next, value), 5)
    assert "closed" in capsys.readouterr().err


def test_a_scheduler_that_runs_things_inline_works_too() -> None:
    seen: list[object] = []
    rx.from_iterable(range(5)).pipe(offload(ImmediateScheduler())).subscribe(seen.append, on_completed=lambda: seen.append("end"))
    assert seen == [0, 1, 2, 3, 4, "end"]


async def test_a_long_drain_gives_its_loop_a_turn() -> None:
    hub = Hub[int]()
    order: list[str] = []

    def slow(_: int) -> None:
        time.sleep(0.001)
        order.append("value")

    hub.pipe(offload(LoopClock())).subscribe(slow)
    for value in range(64):
        hub.on_next(value)
    await asyncio.sleep(0)
    order.append("turn")
    while len(order) < 65:
        await asyncio.sleep(0)
    assert order.index("turn") < 64


async def test_nothing_runs_while_nothing_is_queued() -> None:
    hub = Hub[int]()
    schedules = 0

    class Counting(LoopClock):
        def schedule(self, action: abc.ScheduledAction[object], state: object | None = None) -> abc.DisposableBase:
            nonlocal schedules
            schedules += 1
            return super().schedule(action, state)

    seen: list[int] = []
    hub.pipe(offload(Counting())).subscribe(seen.append)
    for value in range(100):
        publish(hub.on_next, value)
    await asyncio.sleep(0.001)
    assert len(seen) == 100
    assert schedules == 1


@pytest.mark.parametrize("capacity", [0, -1])
def test_a_capacity_below_one_is_refused(capacity: int) -> None:
    with pytest.raises(UsageError, match="capacity"):
        offload(ImmediateScheduler(), capacity)


def test_a_loop_in_place_of_a_scheduler_is_refused_with_what_to_give_instead() -> None:
    loop = asyncio.new_event_loop()
    try:
        with pytest.raises(UsageError, match=r"no scheduler; for an asyncio loop give LoopClock\(loop\)"):
            offload(loop)  # pyright: ignore[reportArgumentType]
    finally:
        loop.close()


async def test_unsubscribing_disposes_the_upstream_subscription() -> None:
    gone: list[bool] = []

    def subscribe(observer: abc.ObserverBase[int], _: abc.SchedulerBase | None = None) -> abc.DisposableBase:
        return Disposable(lambda: gone.append(True))

    Observable(subscribe).pipe(offload(LoopClock())).subscribe(print).dispose()
    assert gone == [True]


async def test_a_value_that_comes_in_just_as_the_drain_ends_is_not_forgotten() -> None:
    seen: list[int] = []
    observer = Subject[int]()
    observer.subscribe(seen.append)
    clock = LoopClock()

    class Interrupted(deque[int]):
        """Another thread pushes between "the queue is empty" and the end of the drain."""

        pushed = False

        def popleft(self) -> int:
            if not self and not Interrupted.pushed:
                Interrupted.pushed = True
                handover.push(2)
                raise IndexError
            return super().popleft()

    handover = Handover(Outlet(observer), 4, lambda drain: clock.schedule(lambda *_: drain()))
    handover._queue = Interrupted()
    handover.push(1)
    await asyncio.sleep(0.001)
    assert seen == [1, 2]
    assert handover.idle
