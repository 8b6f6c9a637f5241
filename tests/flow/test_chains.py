"""Random chains of operators, sources and consumers, compared with what plain lists would do."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from unittest.mock import patch

from hypothesis import given, note
from hypothesis import strategies as st
from reactivex import Observable
from reactivex import operators as rxops
from reactivex.abc import DisposableBase

from rxagent.flow import (
    Hub,
    LoopClock,
    Replay,
    conflate,
    debounce,
    delay,
    emit,
    frames,
    from_aiter,
    hold,
    offload,
    overflow,
    sample,
    subscribe_async,
    to_aiter,
)
from rxagent.flow.handover import Handover
from rxagent.marble.loop import VirtualLoop

Stream = Observable[int]
Model = Callable[[list[int]], list[int]]
END = "end"


@dataclass(frozen=True)
class Step:
    """An operator and what it does to a finite list."""

    name: str
    apply: Callable[[Stream], Stream]
    model: Model


def flat(operator: Callable[[Stream], Observable[list[int]]]) -> Callable[[Stream], Stream]:
    # A list as one value, spread out synchronously: within the emission, so holds reach it.
    return lambda source: source.pipe(operator, rxops.flat_map(lambda items: items))


def round_trip(capacity: int) -> Callable[[Stream], Stream]:
    async def values(source: Stream) -> AsyncIterator[int]:
        async for value in to_aiter(source, capacity):
            yield value

    def operator(source: Stream) -> Stream:
        return from_aiter(values(source))

    return operator


def replayed(source: Stream) -> Stream:
    replay = Replay[int]()
    source.subscribe(replay)
    return replay


seconds = st.sampled_from([0.0, 0.001, 0.01, 0.05])
periods = st.sampled_from([0.001, 0.01, 0.05])
sizes = st.integers(1, 5)

lossless = st.one_of(
    st.just(Step("map", rxops.map(lambda v: v * 2 + 1), lambda vs: [v * 2 + 1 for v in vs])),
    st.just(Step("filter", rxops.filter(lambda v: v % 3 != 0), lambda vs: [v for v in vs if v % 3 != 0])),
    st.just(Step("scan", rxops.scan(lambda a, v: a + v, 0), lambda vs: list(itertools.accumulate(vs)))),
    st.just(
        Step("distinct", rxops.distinct_until_changed(), lambda vs: [v for v, _ in itertools.groupby(vs)]),
    ),
    st.integers(0, 6).map(lambda n: Step(f"skip {n}", rxops.skip(n), lambda vs: vs[n:])),
    st.integers(1, 12).map(lambda n: Step(f"take {n}", rxops.take(n), lambda vs: vs[:n])),
    st.tuples(periods, sizes).map(lambda a: Step(f"frames {a}", flat(frames(*a)), list)),
    st.tuples(seconds, sizes).map(lambda a: Step(f"delay {a}", delay(*a), list)),
    sizes.map(lambda n: Step(f"offload {n}", lambda source: source.pipe(offload(LoopClock(), n)), list)),
    st.just(Step("overflow", overflow("error", 10_000), list)),
)
# These subscribe to what is before them when the chain is made, or not before their first item is
# asked for: a hub that sends meanwhile would be heard too early or too late anywhere but at the start.
starts = st.one_of(
    st.none(),
    st.integers(0, 4).map(lambda n: Step(f"round trip {n}", round_trip(n), list)),
    st.just(Step("replay", replayed, list)),
)
lossy = st.one_of(
    periods.map(lambda p: Step(f"conflate {p}", conflate(p), list)),
    seconds.map(lambda s: Step(f"debounce {s}", debounce(s), list)),
    periods.map(lambda p: Step(f"sample {p}", sample(p), list)),
    st.just(Step("latest", overflow("latest"), list)),
)
inputs = st.lists(st.tuples(seconds, st.integers(-9, 9)), max_size=25)
consumers = st.sampled_from(["quick", "holding", "async", "async 3"])


def consume(consumer: str, source: Stream, seen: list[object], pace: list[float]) -> DisposableBase:
    loop = asyncio.get_running_loop()
    paces = itertools.cycle(pace)

    def holding(value: int) -> None:
        seen.append(value)
        loop.call_later(next(paces), hold().release)

    async def handle(value: int) -> None:
        seen.append(value)
        await asyncio.sleep(next(paces))

    if consumer.startswith("async"):
        capacity = 3 if consumer.endswith("3") else 0
        tail = source.pipe(rxops.do_action(None, lambda error: seen.append(type(error)), lambda: seen.append(END)))
        return subscribe_async(tail, handle, capacity=capacity, on_fault=lambda _: None)
    on_next = holding if consumer == "holding" else seen.append
    return source.subscribe(on_next, lambda error: seen.append(type(error)), lambda: seen.append(END))


class Boom(Exception):
    pass


@dataclass
class Play:
    """One run of a chain on a loop of its own; ``stop_after`` disposes after so many sends."""

    steps: list[Step]
    values: list[tuple[float, int]]
    consumer: str
    pace: list[float]
    fails: bool
    stop_after: int | None = None

    def run(self) -> list[object]:
        loop = VirtualLoop()
        try:
            return loop.run_until_complete(self._main(loop))
        finally:
            loop.close()

    async def _main(self, loop: VirtualLoop) -> list[object]:
        hub = Hub[int]()
        chain: Stream = hub
        for step in self.steps:
            chain = step.apply(chain)
        seen: list[object] = []
        subscription = consume(self.consumer, chain, seen, self.pace)
        await asyncio.sleep(0)
        for count, (gap, value) in enumerate(self.values):
            if count == self.stop_after:
                subscription.dispose()
                await asyncio.sleep(0)
                frozen = list(seen)
            if gap:
                await asyncio.sleep(gap)
            await emit(hub.on_next, value)
        if self.fails:
            hub.on_error(Boom())
        else:
            hub.on_completed()
        if self.stop_after is None:
            await asyncio.sleep(1000)
        else:
            if self.stop_after >= len(self.values):
                subscription.dispose()
                frozen = list(seen)
            await asyncio.sleep(0.001 if "round" in str(self.steps) else 0)
            assert seen == frozen, "delivered after dispose"
        await asyncio.sleep(0)
        left = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        assert not left
        if self.consumer != "holding":  # its own timers
            assert loop.pending_timers() == []
        return seen


def modelled(steps: list[Step], values: list[int], fails: bool) -> list[object]:
    result: list[object] = []
    expected = list(values)
    cut = False
    for step in steps:
        before = len(expected)
        expected = step.model(expected)
        if step.name.startswith("take") and before >= int(step.name.split()[1]):
            cut = True
    result.extend(expected)
    result.append(Boom if fails and not cut else END)
    return result


@given(
    start=starts,
    steps=st.lists(lossless, max_size=5),
    values=inputs,
    consumer=consumers,
    pace=st.lists(seconds, min_size=1, max_size=4),
    fails=st.booleans(),
)
def test_a_lossless_chain_gives_what_plain_lists_would(  # noqa: PLR0917  # one per strategy
    start: Step | None,
    steps: list[Step],
    values: list[tuple[float, int]],
    consumer: str,
    pace: list[float],
    fails: bool,
) -> None:
    chain = [*([start] if start else []), *steps]
    note(str([step.name for step in chain]))
    seen = Play(chain, values, consumer, pace, fails).run()
    expected = modelled(chain, [value for _, value in values], fails)
    if consumer.startswith("async"):  # the end may be seen while the last values are still queued for the handler
        ends = [item for item in seen if not isinstance(item, int)]
        assert ends == expected[-1:]
        assert [item for item in seen if isinstance(item, int)] == expected[:-1]
    else:
        assert seen == expected


@given(
    steps=st.lists(st.one_of(lossless, lossy), max_size=5),
    values=inputs,
    consumer=consumers,
    pace=st.lists(seconds, min_size=1, max_size=4),
    stop_after=st.integers(0, 25),
)
def test_disposing_any_chain_at_any_time_leaves_nothing_and_never_holds_the_source(
    steps: list[Step], values: list[tuple[float, int]], consumer: str, pace: list[float], stop_after: int
) -> None:
    note(str([step.name for step in steps]))
    Play(steps, values, consumer, pace, fails=False, stop_after=stop_after).run()


@given(
    step=lossy,
    values=inputs,
    consumer=st.sampled_from(["quick", "holding"]),
    pace=st.lists(seconds, min_size=1),
    fails=st.booleans(),
)
def test_a_lossy_operator_keeps_order_invents_nothing_and_ends_with_the_last_value(
    step: Step, values: list[tuple[float, int]], consumer: str, pace: list[float], fails: bool
) -> None:
    numbered = [(gap, number) for number, (gap, _) in enumerate(values)]
    seen = Play([step], numbered, consumer, pace, fails).run()
    *given_on, end = seen
    assert end == (Boom if fails else END)
    assert given_on == sorted(set(given_on), key=int)  # type: ignore[call-overload]
    if values:
        assert given_on[-1] == len(values) - 1


@given(
    capacities=st.lists(sizes, min_size=1, max_size=3),
    values=inputs,
    pace=st.lists(seconds, min_size=1, max_size=4),
)
def test_no_queue_is_ever_longer_than_its_capacity_and_one(
    capacities: list[int], values: list[tuple[float, int]], pace: list[float]
) -> None:
    sizes_seen: list[tuple[int, int]] = []

    push = Handover[int].push

    def watched(self: Handover[int], value: int) -> None:
        push(self, value)
        sizes_seen.append((self.size, self._capacity))

    with patch.object(Handover, "push", watched):
        steps = [Step(f"offload {n}", lambda source, n=n: source.pipe(offload(LoopClock(), n)), list) for n in capacities]
        seen = Play(steps, values, "holding", pace, fails=False).run()
    assert seen == [*(value for _, value in values), END]
    assert all(size <= capacity + 1 for size, capacity in sizes_seen)
