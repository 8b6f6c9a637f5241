"""Observable to async iterator and back: lossless, paced by the consumer, gone when left."""

import asyncio
import threading
from collections.abc import AsyncIterator

import pytest
import reactivex as rx

from rxagent.errors import NoRunningLoop, UsageError, WouldDeadlock
from rxagent.flow import Hub, Release, emit, emit_blocking, from_aiter, hold, publish, to_aiter


async def test_iterating_gives_every_value_and_then_ends() -> None:
    assert [value async for value in to_aiter(rx.from_iterable(range(5)))] == [0, 1, 2, 3, 4]


async def test_an_error_is_raised_after_the_values_before_it() -> None:
    hub = Hub[int]()
    iterator = to_aiter(hub)
    hub.on_next(1)
    hub.on_error(ValueError("x"))
    assert await anext(iterator) == 1
    with pytest.raises(ValueError, match="x"):
        await anext(iterator)
    with pytest.raises(StopAsyncIteration):
        await anext(iterator)


async def test_the_source_is_held_while_more_than_the_capacity_waits() -> None:
    hub = Hub[int]()
    iterator = to_aiter(hub, capacity=2)
    assert publish(hub.on_next, 0) is None
    assert publish(hub.on_next, 1) is None
    third = publish(hub.on_next, 2)
    assert third is not None
    assert third.held
    assert await anext(iterator) == 0
    assert third.held
    assert await anext(iterator) == 1
    assert not third.held
    assert await anext(iterator) == 2


async def test_capacity_zero_makes_the_source_wait_for_each_value() -> None:
    hub = Hub[int]()
    log: list[str] = []

    async def produce() -> None:
        for value in range(3):
            await emit(hub.on_next, value)
            log.append(f"sent {value}")
        hub.on_completed()

    iterator = to_aiter(hub, capacity=0)
    task = asyncio.ensure_future(produce())
    async for value in iterator:
        log.append(f"got {value}")
        await asyncio.sleep(0.001)
    await task
    assert log == ["got 0", "sent 0", "got 1", "sent 1", "got 2", "sent 2"]


async def test_leaving_the_loop_unsubscribes_at_once_and_releases_the_source() -> None:
    hub = Hub[int]()

    async def first() -> int:
        async for value in to_aiter(hub, capacity=0):
            return value
        return -1

    consumer = asyncio.ensure_future(first())
    await asyncio.sleep(0)
    await asyncio.wait_for(emit(hub.on_next, 7), 5)
    assert await consumer == 7
    assert not hub.observed


async def test_a_break_unsubscribes_before_the_next_statement() -> None:
    hub = Hub[int]()
    asyncio.get_running_loop().call_soon(hub.on_next, 1)
    async for _ in to_aiter(hub):
        break
    assert not hub.observed


async def test_closing_ends_a_waiting_iteration() -> None:
    hub = Hub[int]()
    async with to_aiter(hub) as iterator:
        waiting = asyncio.ensure_future(anext(iterator, None))
        await asyncio.sleep(0)
    assert await waiting is None
    assert not hub.observed


async def test_a_cancelled_wait_loses_nothing() -> None:
    hub = Hub[int]()
    iterator = to_aiter(hub)
    waiting = asyncio.ensure_future(anext(iterator))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait([waiting])
    hub.on_next(1)
    assert await anext(iterator) == 1


async def test_values_from_a_thread_wake_the_iteration() -> None:
    hub = Hub[int]()
    iterator = to_aiter(hub)

    def produce() -> None:
        for value in range(1000):
            hub.on_next(value)
        hub.on_completed()

    thread = threading.Thread(target=produce)
    thread.start()
    assert [value async for value in iterator] == list(range(1000))
    thread.join()


async def test_a_cancelled_consumer_lets_its_source_go_also_while_its_task_is_kept() -> None:
    hub = Hub[int]()

    async def consume() -> None:
        async for _ in to_aiter(hub, capacity=0):
            pass

    task = asyncio.ensure_future(consume())
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])
    assert not hub.observed
    await asyncio.wait_for(emit(hub.on_next, 1), 5)


async def test_an_iterator_that_only_its_next_refers_to_goes_on() -> None:
    hub = Hub[int]()
    asyncio.get_running_loop().call_soon(hub.on_next, 5)
    assert await anext(to_aiter(hub)) == 5


async def test_a_negative_capacity_is_refused() -> None:
    with pytest.raises(UsageError):
        to_aiter(rx.empty(), capacity=-1)


async def count(upto: int, log: list[str]) -> AsyncIterator[int]:
    try:
        for value in range(upto):
            log.append(f"made {value}")
            yield value
    finally:
        log.append("closed")


async def test_an_async_iterable_becomes_an_observable() -> None:
    log: list[str] = []
    assert [value async for value in to_aiter(from_aiter(count(3, log)))] == [0, 1, 2]
    assert log[-1] == "closed"


async def test_the_next_item_is_made_when_nobody_holds_the_last() -> None:
    log: list[str] = []
    releases: list[Release] = []
    end = asyncio.Event()
    from_aiter(count(2, log)).subscribe(lambda _: releases.append(hold()), on_completed=end.set)
    await asyncio.sleep(0.01)
    assert log == ["made 0"]
    releases[0].release()
    await asyncio.sleep(0.01)
    assert log == ["made 0", "made 1"]
    releases[1].release()
    await asyncio.wait_for(end.wait(), 5)
    assert log[-1] == "closed"


async def test_an_error_of_the_iterable_is_the_observables() -> None:
    async def broken() -> AsyncIterator[int]:
        yield 1
        raise ValueError("x")

    seen: list[object] = []
    from_aiter(broken()).subscribe(seen.append, lambda error: seen.append(str(error)))
    await asyncio.sleep(0.01)
    assert seen == [1, "x"]


@pytest.mark.parametrize("within", [True, False])
async def test_disposing_closes_the_iterator(within: bool) -> None:
    log: list[str] = []

    def see(_: int) -> None:
        if within:
            subscription.dispose()
        hold()  # by now in vain, if disposed

    subscription = from_aiter(count(9, log)).subscribe(see)
    await asyncio.sleep(0.01)
    subscription.dispose()
    await asyncio.sleep(0.01)
    assert log == ["made 0", "closed"]


async def test_disposing_from_another_thread_closes_the_iterator() -> None:
    log: list[str] = []
    subscription = from_aiter(count(9, log)).subscribe(lambda _: hold())
    await asyncio.sleep(0.01)
    await asyncio.to_thread(subscription.dispose)
    await asyncio.sleep(0.01)
    assert log == ["made 0", "closed"]
    await asyncio.get_running_loop().shutdown_default_executor()


async def test_a_raising_observer_stops_the_iteration_with_a_report(capsys: pytest.CaptureFixture[str]) -> None:
    log: list[str] = []
    from_aiter(count(3, log)).subscribe(lambda value: 1 // value)
    await asyncio.sleep(0.01)
    assert log == ["made 0", "closed"]
    assert "ZeroDivisionError" in capsys.readouterr().err


def test_without_a_loop_the_subscriber_gets_a_named_error() -> None:
    errors: list[Exception] = []
    from_aiter(count(1, [])).subscribe(print, errors.append)
    assert isinstance(errors[0], NoRunningLoop)


async def test_a_thread_can_emit_and_waits_until_nobody_holds() -> None:
    hub = Hub[int]()
    loop = asyncio.get_running_loop()
    log: list[str] = []

    def slow(value: int) -> None:
        release = hold()
        loop.call_later(0.01, lambda: (log.append(f"released {value}"), release()))

    hub.subscribe(slow)

    def produce() -> None:
        for value in range(2):
            emit_blocking(hub.on_next, value, loop)
            log.append(f"sent {value}")

    await asyncio.to_thread(produce)
    assert log == ["released 0", "sent 0", "released 1", "sent 1"]
    await loop.shutdown_default_executor()


async def test_blocking_the_loops_own_thread_is_refused() -> None:
    with pytest.raises(WouldDeadlock):
        emit_blocking(print, 1, asyncio.get_running_loop())


def test_blocking_on_a_loop_that_does_not_run_is_refused() -> None:
    loop = asyncio.new_event_loop()
    with pytest.raises(UsageError, match="isn't running"):
        emit_blocking(print, 1, loop)
    loop.close()
