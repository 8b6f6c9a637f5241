"""Coroutine handlers: the source waits for them, never cancels them, and never waits for itself."""

import asyncio
import threading
from collections.abc import Callable

import pytest

from rxagent.errors import UsageError, WouldDeadlock
from rxagent.flow import Fault, Gate, Hub, emit, publish, subscribe_async
from rxagent.marble.loop import VirtualLoop


async def test_the_source_waits_for_the_handler_of_each_value() -> None:
    hub = Hub[int]()
    log: list[str] = []

    async def handle(value: int) -> None:
        log.append(f"begin {value}")
        await asyncio.sleep(0.001)
        log.append(f"end {value}")

    subscription = subscribe_async(hub, handle)
    for value in range(2):
        await emit(hub.on_next, value)
        log.append(f"sent {value}")
    subscription.dispose()
    assert log == ["begin 0", "end 0", "sent 0", "begin 1", "end 1", "sent 1"]


async def test_with_a_capacity_the_source_waits_only_while_more_than_that_are_unfinished() -> None:
    hub = Hub[int]()
    go = asyncio.Event()
    done: list[int] = []

    async def handle(value: int) -> None:
        await go.wait()
        done.append(value)

    subscription = subscribe_async(hub, handle, capacity=2)
    assert publish(hub.on_next, 0) is None
    assert publish(hub.on_next, 1) is None
    third = publish(hub.on_next, 2)
    assert third is not None
    assert third.held
    assert subscription.waiting == 3
    go.set()
    await third
    await subscription.drained()
    assert done == [0, 1, 2]


async def test_two_handlers_of_one_value_run_at_the_same_time() -> None:
    hub = Hub[int]()
    barrier = asyncio.Barrier(2)

    async def meet(_: int) -> None:
        await asyncio.wait_for(barrier.wait(), 5)

    subscribe_async(hub, meet)
    subscribe_async(hub, meet)
    await emit(hub.on_next, 1)


async def test_drained_returns_when_the_last_handler_is_done() -> None:
    hub = Hub[int]()
    done: list[int] = []

    async def handle(value: int) -> None:
        await asyncio.sleep(0.001)
        done.append(value)

    subscription = subscribe_async(hub, handle)
    hub.on_next(1)
    hub.on_next(2)
    hub.on_completed()
    await subscription.drained()
    assert done == [1, 2]
    await subscription.drained()


async def test_a_raising_handler_is_reported_and_unsubscribed_and_the_source_goes_on() -> None:
    hub = Hub[int]()
    faults: list[Fault] = []

    async def handle(value: int) -> None:
        await asyncio.sleep(0)
        raise ValueError(value)

    subscribe_async(hub, handle, on_fault=faults.append)
    await emit(hub.on_next, 1)
    await emit(hub.on_next, 2)
    (fault,) = faults
    assert fault.value == 1
    assert "test_a_raising_handler" in fault.subscribed_at
    assert not hub.observed


async def test_disposing_releases_the_source_and_cancels_the_handler() -> None:
    hub = Hub[int]()
    cancelled = asyncio.Event()

    async def handle(_: int) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    subscription = subscribe_async(hub, handle)
    sending = asyncio.ensure_future(emit(hub.on_next, 1))
    await asyncio.sleep(0.001)
    subscription.dispose()
    await asyncio.wait_for(sending, 5)
    await asyncio.wait_for(cancelled.wait(), 5)
    await subscription.drained()


async def test_disposing_from_within_lets_the_handler_finish() -> None:
    hub = Hub[int]()
    done: list[int] = []

    async def once(value: int) -> None:
        subscription.dispose()
        await asyncio.sleep(0.001)
        done.append(value)

    subscription = subscribe_async(hub, once)
    await emit(hub.on_next, 1)
    await emit(hub.on_next, 2)
    await subscription.drained()
    assert done == [1]


async def test_cancelling_the_source_does_not_cancel_the_handler() -> None:
    hub = Hub[int]()
    go = asyncio.Event()
    done: list[int] = []

    async def handle(value: int) -> None:
        await go.wait()
        done.append(value)

    subscription = subscribe_async(hub, handle)
    sending = asyncio.ensure_future(emit(hub.on_next, 1))
    await asyncio.sleep(0.001)
    sending.cancel()
    await asyncio.wait([sending])
    go.set()
    await subscription.drained()
    assert done == [1]


async def test_a_handler_that_holds_too_long_is_dropped_with_a_report_and_the_source_goes_on() -> None:
    hub = Hub[int]()
    faults: list[Fault] = []

    async def stuck(_: int) -> None:
        await asyncio.Event().wait()

    subscribe_async(hub, stuck, hold_timeout=0.01, on_fault=faults.append)
    await asyncio.wait_for(emit(hub.on_next, 7), 5)
    assert isinstance(faults[0].error, TimeoutError)
    assert faults[0].value == 7
    assert not hub.observed


def test_no_timer_is_left_of_a_hold_that_ended_in_time() -> None:
    loop = VirtualLoop()

    async def quick(_: int) -> None:
        await asyncio.sleep(1)

    async def main() -> None:
        hub = Hub[int]()
        subscribe_async(hub, quick, hold_timeout=1000)
        await emit(hub.on_next, 1)
        assert loop.time() == 1
        assert loop.pending_timers() == []

    loop.run_until_complete(main())
    loop.close()


async def test_waiting_for_the_run_that_waits_for_the_handler_raises() -> None:
    hub = Hub[int]()
    gate = Gate()
    raised: list[WouldDeadlock] = []
    later: list[asyncio.Task[None]] = []

    async def outlives() -> None:
        await asyncio.sleep(0.01)
        gate.check("await run")

    async def handle(_: int) -> None:
        for wait in (lambda: gate.check("await run"), subscription.drained):
            with pytest.raises(WouldDeadlock) as info:
                result = wait()
                if result is not None:
                    await result
            raised.append(info.value)
        later.append(asyncio.ensure_future(outlives()))

    faults: list[Fault] = []
    subscription = subscribe_async(hub, handle, on_fault=faults.append)
    await emit(hub.on_next, 1, gate)
    assert faults == []
    assert len(raised) == 2
    assert "await run" in str(raised[0])
    await later[0]


async def test_a_handler_that_emits_into_the_run_that_waits_for_it_is_not_waited_for() -> None:
    hub = Hub[int]()
    gate = Gate()
    seen: list[int] = []

    async def echo(value: int) -> None:
        seen.append(value)
        if value < 3:
            await emit(hub.on_next, value + 1, gate)

    subscription = subscribe_async(hub, echo)
    await asyncio.wait_for(emit(hub.on_next, 0, gate), 5)
    await subscription.drained()
    assert seen == [0, 1, 2, 3]


@pytest.mark.parametrize("gates", [(None, None), (Gate(), Gate())])
async def test_the_chain_of_waits_is_followed_through_a_run_in_between(gates: tuple[Gate | None, Gate | None]) -> None:
    outer, inner = Hub[int](), Hub[int]()
    seen: list[str] = []

    async def middle(value: int) -> None:
        if value == 0:
            await emit(inner.on_next, 1, gates[1])
        seen.append(f"middle {value}")

    async def end(value: int) -> None:
        await emit(outer.on_next, value, gates[0])
        seen.append("end")

    first = subscribe_async(outer, middle)
    second = subscribe_async(inner, end)
    await asyncio.wait_for(emit(outer.on_next, 0, gates[0]), 5)
    await first.drained()
    await second.drained()
    assert seen == ["end", "middle 0", "middle 1"]


async def test_code_marked_as_serving_a_run_may_not_wait_for_it() -> None:
    gate = Gate()
    with gate.serving():
        assert gate.held_here
        with pytest.raises(WouldDeadlock):
            gate.check("await run")
    assert not gate.held_here


async def test_values_from_a_thread_are_handled_on_the_loop_of_the_subscription() -> None:
    hub = Hub[int]()
    loops: list[asyncio.AbstractEventLoop] = []

    async def handle(_: int) -> None:
        loops.append(asyncio.get_running_loop())

    subscription = subscribe_async(hub, handle)

    def produce() -> None:
        asyncio.run(emit(hub.on_next, 1))
        hub.on_next(2)

    await asyncio.to_thread(produce)
    await subscription.drained()
    assert loops == [asyncio.get_running_loop()] * 2
    await asyncio.get_running_loop().shutdown_default_executor()


async def test_drained_can_be_awaited_from_another_loop() -> None:
    hub = Hub[int]()
    done: list[int] = []

    async def handle(value: int) -> None:
        await asyncio.sleep(0.01)
        done.append(value)

    subscription = subscribe_async(hub, handle)
    hub.on_next(1)
    thread = threading.Thread(target=lambda: asyncio.run(subscription.drained()))
    thread.start()
    await subscription.drained()
    thread.join(5)
    assert not thread.is_alive()
    assert done == [1]


def test_a_subscription_serves_one_loop_after_another() -> None:
    hub = Hub[int]()
    done: list[int] = []

    async def handle(value: int) -> None:
        done.append(value)

    subscribe_async(hub, handle)
    for value in range(2):
        asyncio.run(emit(hub.on_next, value))
    assert done == [0, 1]


def test_without_any_loop_the_handler_is_dropped_with_a_report() -> None:
    hub = Hub[int]()
    faults: list[Fault] = []

    async def handle(_: int) -> None: ...

    subscribe_async(hub, handle, on_fault=faults.append)
    hub.on_next(1)
    assert "asyncio loop" in str(faults[0].error)


def test_a_negative_capacity_is_refused() -> None:
    async def handle(_: int) -> None: ...

    attempt: Callable[[], object] = lambda: subscribe_async(Hub[int](), handle, capacity=-1)
    with pytest.raises(UsageError, match="capacity"):
        attempt()


@pytest.mark.parametrize("seconds", [0, -1, float("nan")])
def test_a_hold_timeout_of_nothing_is_refused(seconds: float) -> None:
    async def handle(_: int) -> None: ...

    with pytest.raises(UsageError, match="hold_timeout is in seconds and must be above 0"):
        subscribe_async(Hub[int](), handle, hold_timeout=seconds)
