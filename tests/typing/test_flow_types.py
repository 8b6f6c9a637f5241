"""What a type checker makes of the flow kit, in a pipe. Checked by pyright; run, it only makes the pipes."""

import inspect
from collections.abc import AsyncIterator
from typing import assert_type

import reactivex as rx
from reactivex import Observable
from reactivex.scheduler import ImmediateScheduler

from rxagent import flow

source: Observable[int] = rx.empty()


def test_every_operator_keeps_its_type_in_a_pipe() -> None:
    assert_type(source.pipe(flow.offload(ImmediateScheduler())), Observable[int])
    assert_type(source.pipe(flow.offload(ImmediateScheduler(), capacity=4)), Observable[int])
    assert_type(source.pipe(flow.frames()), Observable[list[int]])
    assert_type(source.pipe(flow.frames(1 / 30, max_items=10)), Observable[list[int]])
    assert_type(source.pipe(flow.conflate()), Observable[int])
    assert_type(source.pipe(flow.delay(1.0)), Observable[int])
    assert_type(source.pipe(flow.debounce(1.0)), Observable[int])
    assert_type(source.pipe(flow.sample(1.0)), Observable[int])
    assert_type(source.pipe(flow.throttle_first(1.0)), Observable[int])
    assert_type(source.pipe(flow.overflow("latest")), Observable[int])
    assert_type(source.pipe(flow.conflate(), flow.frames(), flow.delay(1)), Observable[list[int]])


def test_sources_and_ends() -> None:
    async def items() -> AsyncIterator[str]:
        yield "a"

    async def handle(value: int) -> None: ...

    def drop(value: int) -> None: ...

    guard = flow.overflow("drop_oldest", 4, on_drop=drop)
    assert_type(guard, flow.Overflow)
    assert_type(guard.dropped, int)
    assert_type(source.pipe(guard), Observable[int])
    assert_type(flow.from_aiter(items()), Observable[str])
    assert_type(flow.to_aiter(source), flow.ObservableIterator[int])
    assert_type(flow.subscribe_async(source, handle), flow.Listener[int])


def test_hubs_and_emissions() -> None:
    hub = flow.Hub[int]()
    replay = flow.Replay([1, 2])
    assert_type(hub.pipe(flow.frames()), Observable[list[int]])
    assert_type(replay, flow.Replay[int])
    assert_type(flow.publish(hub.on_next, 1), flow.Pending | None)
    assert_type(flow.hold(), flow.Release)

    async def emits() -> None:
        async for value in flow.to_aiter(hub):
            assert_type(value, int)
        assert_type(await flow.emit(hub.on_next, 1), None)
        await flow.emit(hub.on_next, "1")  # pyright: ignore[reportArgumentType]  # a str where ints are sent

    assert inspect.iscoroutinefunction(emits)
