"""Emissions and holds: the source waits for exactly who asked it to, and for nobody else."""

import asyncio
import itertools
import threading
import time

import pytest
from reactivex import operators as rxops

from rxagent.flow import Gate, Hub, Release, emit, hold, publish


def test_without_a_hold_nothing_is_awaited() -> None:
    hub = Hub[int]()
    seen: list[int] = []
    hub.subscribe(seen.append)
    assert publish(hub.on_next, 1) is None
    assert seen == [1]


async def test_a_hold_behind_stock_operators_delays_the_source_until_released() -> None:
    hub = Hub[int]()
    releases: list[Release] = []
    hub.pipe(rxops.map(str), rxops.filter(bool)).subscribe(lambda _: releases.append(hold()))
    task = asyncio.ensure_future(emit(hub.on_next, 1))
    await asyncio.sleep(0.01)
    assert not task.done()
    assert releases[0].active
    releases[0].release()
    releases[0]()
    await task
    assert not releases[0].active


async def test_all_of_several_holds_are_waited_for() -> None:
    hub = Hub[int]()
    releases: list[Release] = []
    hub.subscribe(lambda _: releases.extend([hold(), hold()]))
    task = asyncio.ensure_future(emit(hub.on_next, 1))
    await asyncio.sleep(0)
    releases[1].release()
    await asyncio.sleep(0)
    assert not task.done()
    releases[0].release()
    await task


def test_holding_when_no_emission_is_open_does_nothing_and_says_so() -> None:
    assert not hold().active
    hub = Hub[int]()
    seen: list[Release] = []
    hub.subscribe(lambda _: seen.append(hold()))
    hub.on_next(1)
    assert not seen[0].active
    publish(hub.on_next, 2)
    assert seen[1].active
    assert not hold().active


async def test_a_release_from_another_thread_wakes_the_source() -> None:
    hub = Hub[int]()

    def later(_: int) -> None:
        threading.Timer(0.01, hold().release).start()

    hub.subscribe(later)
    await asyncio.wait_for(emit(hub.on_next, 1), 5)


async def test_disposing_a_subscription_releases_its_holds_and_no_others() -> None:
    hub = Hub[int]()
    releases: list[Release] = []
    first = hub.pipe(rxops.map(str)).subscribe(lambda _: releases.append(hold()))
    second = hub.subscribe(lambda _: releases.append(hold()))
    task = asyncio.ensure_future(emit(hub.on_next, 1))
    await asyncio.sleep(0)
    first.dispose()
    assert [release.active for release in releases] == [False, True]
    await asyncio.sleep(0)
    assert not task.done()
    second.dispose()
    await task


async def test_a_hold_taken_by_an_observer_that_then_raises_is_released() -> None:
    hub = Hub[int](lambda _: None)

    def bad(_: int) -> None:
        hold()
        raise ValueError

    hub.subscribe(bad)
    await asyncio.wait_for(emit(hub.on_next, 1), 5)


async def test_an_open_gate_ends_the_present_wait_and_all_later_ones() -> None:
    hub = Hub[int]()
    hub.subscribe(lambda _: hold())
    gate = Gate()
    task = asyncio.ensure_future(emit(hub.on_next, 1, gate))
    await asyncio.sleep(0)
    assert not task.done()
    gate.open()
    await task
    await asyncio.wait_for(emit(hub.on_next, 2, gate), 5)


async def test_a_pending_can_be_let_go_from_outside() -> None:
    hub = Hub[int]()
    hub.subscribe(lambda _: hold())
    pending = publish(hub.on_next, 1)
    assert pending is not None
    assert pending.held
    pending.release_all()
    await asyncio.wait_for(emit(lambda _: None, 0), 5)
    await pending


async def test_a_cancelled_wait_leaves_the_hold_to_its_owner() -> None:
    hub = Hub[int]()
    releases: list[Release] = []
    hub.subscribe(lambda _: releases.append(hold()))
    task = asyncio.ensure_future(emit(hub.on_next, 1))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert releases[0].active
    releases[0].release()


async def test_a_flood_lets_the_loop_have_its_turn_every_16_values() -> None:
    hub = Hub[int]()
    turns: list[int] = []
    sent = 0

    def tick() -> None:
        turns.append(sent)
        asyncio.get_running_loop().call_soon(tick)

    asyncio.get_running_loop().call_soon(tick)
    for sent in range(160):  # read by tick
        await emit(hub.on_next, sent)
    assert len(turns) >= 9
    assert max(b - a for a, b in itertools.pairwise(turns)) <= 16


async def test_slow_observers_let_the_loop_have_its_turn_by_time() -> None:
    hub = Hub[int]()
    hub.subscribe(lambda _: time.sleep(0.003))
    turns: list[int] = []
    sent = 0

    def tick() -> None:
        turns.append(sent)
        asyncio.get_running_loop().call_soon(tick)

    asyncio.get_running_loop().call_soon(tick)
    for sent in range(24):  # read by tick
        await emit(hub.on_next, sent)
    assert max(b - a for a, b in itertools.pairwise(turns)) <= 4


def test_a_send_that_raises_closes_its_emission() -> None:
    def send(_: int) -> None:
        hold()
        raise ValueError

    with pytest.raises(ValueError):
        publish(send, 1)
    assert not hold().active


@pytest.mark.parametrize("awaited", [True, False])
async def test_an_emission_within_an_emission_leaves_the_outer_one_open(awaited: bool) -> None:
    outer, inner = Hub[int](), Hub[int]()
    releases: list[Release] = []

    def pass_on(value: int) -> None:
        if awaited:
            asyncio.ensure_future(emit(inner.on_next, value)).cancel()
            with pytest.raises(StopIteration):
                emit(inner.on_next, value).send(None)
        else:
            publish(inner.on_next, value)
        releases.append(hold())

    outer.subscribe(pass_on)
    task = asyncio.ensure_future(emit(outer.on_next, 1))
    await asyncio.sleep(0)
    assert releases[0].active
    assert not task.done()
    releases[0].release()
    await task


async def test_an_observer_that_unsubscribed_can_hold_no_more() -> None:
    hub = Hub[int]()
    releases: list[Release] = []

    def leave(_: int) -> None:
        subscription.dispose()
        releases.append(hold())

    subscription = hub.subscribe(leave)
    await asyncio.wait_for(emit(hub.on_next, 1), 5)
    assert not releases[0].active


async def test_a_value_sent_from_within_a_delivery_is_waited_for_by_the_outer_emission() -> None:
    hub = Hub[int]()
    releases: list[Release] = []

    def answer(value: int) -> None:
        if value == 1:
            assert publish(hub.on_next, 2) is None

    hub.subscribe(answer)
    hub.subscribe(lambda value: releases.append(hold()) if value == 2 else None)
    task = asyncio.ensure_future(emit(hub.on_next, 1))
    await asyncio.sleep(0)
    assert not task.done()
    releases[0].release()
    await task
