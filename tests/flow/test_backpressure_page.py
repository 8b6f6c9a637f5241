"""docs/backpressure.md: what every stock operator does to back-pressure, found out by trying.

`python tests/flow/test_backpressure_page.py` writes the page anew; the test says when it has to be.
"""

import asyncio
import inspect
import itertools
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import reactivex as rx
from reactivex import Observable, operators
from reactivex import operators as rxops
from reactivex.notification import OnNext
from reactivex.subject import Subject

from rxagent.flow import Hub, LoopClock, Release, emit, hold
from rxagent.marble.loop import VirtualLoop

PAGE = Path(__file__).parents[2] / "docs" / "backpressure.md"

Apply = Callable[[Observable[Any], "Probe"], Observable[Any]]


@dataclass
class Probe:
    """One operator at work: the other source it may need, a clock, and where its values came out."""

    other: Hub[Any] = field(default_factory=Hub)
    where: Counter[str] = field(default_factory=Counter)
    phase: str = "subscribe"
    _clock: LoopClock | None = None

    @property
    def clock(self) -> LoopClock:
        self._clock = self._clock or LoopClock()
        return self._clock

    def see(self, _: object) -> None:
        release = hold()
        self.where[self._place(release)] += 1
        asyncio.get_running_loop().call_later(0.004, release)

    def _place(self, release: Release) -> str:
        if not release.active:
            return "timer" if self.phase in {"main", "other"} else self.phase
        return self.phase


def stock(name: str, *arguments: object) -> Apply:
    return lambda source, _: source.pipe(getattr(rxops, name)(*arguments))


def timed(name: str, *arguments: object) -> Apply:
    return lambda source, probe: source.pipe(getattr(rxops, name)(*arguments, scheduler=probe.clock))


def other(name: str) -> Apply:
    return lambda source, probe: source.pipe(getattr(rxops, name)(probe.other))


def flat(apply: Apply) -> Apply:
    """For operators that deliver Observables: what those deliver."""
    return lambda source, probe: apply(source, probe).pipe(rxops.flat_map(lambda inner: inner))


def over(mapper: Callable[[Any], Any], apply: Apply) -> Apply:
    """For operators that want values of a kind."""
    return lambda source, probe: apply(source.pipe(rxops.map(mapper)), probe)


def key(value: int) -> int:
    return value % 2


def even(value: int) -> bool:
    return value % 2 == 0


def inner(value: int) -> Observable[int]:
    return rx.of(value)


def never(*_: object) -> Observable[int]:
    return rx.never()


def once() -> Callable[[object], bool]:
    turns = itertools.count()
    return lambda *_: next(turns) == 0


# How to apply each operator so that it has something to deliver. The main source sends 0…5 every
# 10 ms, the other one in between; inner Observables deliver at once.
HOW: dict[str, Apply] = {
    "all": stock("all", lambda v: v < 3),
    "amb": lambda source, _: source.pipe(rxops.amb(rx.never())),
    "as_observable": stock("as_observable"),
    "average": stock("average"),
    "buffer": other("buffer"),
    "buffer_toggle": lambda s, p: s.pipe(rxops.buffer_toggle(p.other, lambda _: p.other)),
    "buffer_when": lambda s, p: s.pipe(rxops.buffer_when(lambda: p.other)),
    "buffer_with_count": stock("buffer_with_count", 2),
    "buffer_with_time": timed("buffer_with_time", 0.025),
    "buffer_with_time_or_count": timed("buffer_with_time_or_count", 0.025, 2),
    "catch": stock("catch", rx.never()),
    "combine_latest": other("combine_latest"),
    "concat": stock("concat", rx.empty()),
    "concat_all": over(inner, stock("concat_all")),
    "concat_map": stock("concat_map", inner),
    "contains": stock("contains", 3),
    "count": stock("count"),
    "debounce": timed("debounce", 0.005),
    "default_if_empty": stock("default_if_empty", 9),
    "delay": timed("delay", 0.015),
    "delay_subscription": timed("delay_subscription", 0.001),
    "delay_with_mapper": lambda s, p: s.pipe(rxops.delay_with_mapper(lambda _: rx.timer(0.015, scheduler=p.clock))),
    "dematerialize": over(OnNext, stock("dematerialize")),
    "distinct": stock("distinct"),
    "distinct_until_changed": stock("distinct_until_changed"),
    "do": lambda source, _: source.pipe(rxops.do(Subject())),
    "do_action": stock("do_action", lambda _: None),
    "do_while": stock("do_while", lambda _: False),
    "element_at": stock("element_at", 2),
    "element_at_or_default": stock("element_at_or_default", 2, 0),
    "exclusive": over(inner, stock("exclusive")),
    "expand": stock("expand", lambda _: rx.empty()),
    "filter": stock("filter", even),
    "filter_indexed": stock("filter_indexed", lambda v, _: even(v)),
    "finally_action": stock("finally_action", lambda: None),
    "find": stock("find", lambda v, *_: v == 3),
    "find_index": stock("find_index", lambda v, *_: v == 3),
    "first": stock("first"),
    "first_or_default": stock("first_or_default"),
    "flat_map": stock("flat_map", inner),
    "flat_map_indexed": stock("flat_map_indexed", lambda v, _: inner(v)),
    "flat_map_latest": stock("flat_map_latest", inner),
    "fork_join": other("fork_join"),
    "group_by": flat(stock("group_by", key)),
    "group_by_until": flat(stock("group_by_until", key, None, never)),
    "group_join": flat(
        lambda s, p: s.pipe(rxops.group_join(p.other, never, never), rxops.map(lambda pair: pair[1])),
    ),
    "ignore_elements": stock("ignore_elements"),
    "is_empty": stock("is_empty"),
    "join": lambda s, p: s.pipe(rxops.join(p.other, never, never)),
    "last": stock("last"),
    "last_or_default": stock("last_or_default"),
    "map": stock("map", str),
    "map_indexed": stock("map_indexed", lambda v, i: (v, i)),
    "materialize": stock("materialize"),
    "max": stock("max"),
    "max_by": stock("max_by", key),
    "merge": other("merge"),
    "merge_all": over(inner, stock("merge_all")),
    "min": stock("min"),
    "min_by": stock("min_by", key),
    "multicast": lambda source, _: source.pipe(rxops.multicast(Subject()), rxops.ref_count()),
    "observe_on": lambda source, probe: source.pipe(rxops.observe_on(probe.clock)),
    "on_error_resume_next": stock("on_error_resume_next", rx.empty()),
    "pairwise": stock("pairwise"),
    "partition": lambda source, _: rxops.partition(even)(source)[0],
    "partition_indexed": lambda source, _: rxops.partition_indexed(lambda v, _: even(v))(source)[0],
    "pluck": over(lambda v: {"k": v}, stock("pluck", "k")),
    "pluck_attr": over(lambda v: complex(v), stock("pluck_attr", "real")),
    "publish": lambda source, _: source.pipe(rxops.publish(), rxops.ref_count()),
    "publish_value": lambda source, _: source.pipe(rxops.publish_value(9), rxops.ref_count()),
    "reduce": stock("reduce", lambda a, v: a + v),
    "ref_count": lambda source, _: source.pipe(rxops.publish(), rxops.ref_count()),
    "repeat": stock("repeat", 1),
    "replay": lambda source, _: source.pipe(rxops.replay(), rxops.ref_count()),
    "retry": stock("retry", 1),
    "sample": timed("sample", 0.015),
    "scan": stock("scan", lambda a, v: a + v),
    "sequence_equal": other("sequence_equal"),
    "share": stock("share"),
    "single": over(lambda v: v, lambda s, p: s.pipe(rxops.take(1), rxops.single())),
    "single_or_default": lambda s, _: s.pipe(rxops.take(1), rxops.single_or_default()),
    "single_or_default_async": lambda s, _: s.pipe(rxops.take(1), rxops.single_or_default_async(True)),
    "skip": stock("skip", 2),
    "skip_last": stock("skip_last", 2),
    "skip_last_with_time": timed("skip_last_with_time", 0.015),
    "skip_until": other("skip_until"),
    "skip_until_with_time": timed("skip_until_with_time", 0.015),
    "skip_while": stock("skip_while", lambda v: v < 2),
    "skip_while_indexed": stock("skip_while_indexed", lambda v, _: v < 2),
    "skip_with_time": timed("skip_with_time", 0.015),
    "slice": stock("slice", 1, 4),
    "some": stock("some", lambda v: v == 3),
    "starmap": over(lambda v: (v,), stock("starmap", lambda v: v)),
    "starmap_indexed": over(lambda v: (v, 0), stock("starmap_indexed", lambda v, _: v)),
    "start_with": stock("start_with", 9),
    "subscribe_on": lambda source, probe: source.pipe(rxops.subscribe_on(probe.clock)),
    "sum": stock("sum"),
    "switch_latest": over(inner, stock("switch_latest")),
    "switch_map": stock("switch_map", inner),
    "switch_map_indexed": stock("switch_map_indexed", lambda v, _: inner(v)),
    "take": stock("take", 3),
    "take_last": stock("take_last", 2),
    "take_last_buffer": stock("take_last_buffer", 2),
    "take_last_with_time": timed("take_last_with_time", 0.025),
    "take_until": lambda source, _: source.pipe(rxops.take_until(rx.never())),
    "take_until_with_time": timed("take_until_with_time", 0.03),
    "take_while": stock("take_while", lambda v: v < 3),
    "take_while_indexed": stock("take_while_indexed", lambda v, _: v < 3),
    "take_with_time": timed("take_with_time", 0.03),
    "tap": stock("tap", lambda _: None),
    "throttle_first": timed("throttle_first", 0.015),
    "throttle_with_mapper": lambda s, p: s.pipe(rxops.throttle_with_mapper(lambda _: rx.timer(0.005, scheduler=p.clock))),
    "throttle_with_timeout": timed("throttle_with_timeout", 0.005),
    "time_interval": timed("time_interval"),
    "timeout": lambda s, p: s.pipe(rxops.timeout(10.0, scheduler=p.clock)),
    "timeout_with_mapper": lambda s, _: s.pipe(rxops.timeout_with_mapper(rx.never(), never)),
    "timestamp": timed("timestamp"),
    "to_dict": stock("to_dict", key),
    "to_iterable": stock("to_iterable"),
    "to_list": stock("to_list"),
    "to_marbles": timed("to_marbles"),
    "to_set": stock("to_set"),
    "while_do": lambda source, _: source.pipe(rxops.while_do(once())),
    "window": flat(other("window")),
    "window_toggle": flat(lambda s, p: s.pipe(rxops.window_toggle(p.other, lambda _: p.other))),
    "window_when": flat(lambda s, p: s.pipe(rxops.window_when(lambda: p.other))),
    "window_with_count": flat(stock("window_with_count", 2)),
    "window_with_time": flat(timed("window_with_time", 0.025)),
    "window_with_time_or_count": flat(timed("window_with_time_or_count", 0.025, 2)),
    "with_latest_from": other("with_latest_from"),
    "zip": other("zip"),
    "zip_latest": other("zip_latest"),
    "zip_with_iterable": stock("zip_with_iterable", range(100)),
    "zip_with_list": stock("zip_with_list", range(100)),
}

# Gives a future instead of an Observable: there is nothing to hold.
NO_OBSERVABLE = {"to_future"}

INSTEAD = {
    "buffer_with_time": "`frames`",
    "buffer_with_time_or_count": "`frames`",
    "debounce": "`debounce` of `rxagent.flow`",
    "delay": "`delay` of `rxagent.flow`",
    "observe_on": "`offload`",
    "replay": "`Replay`",
    "sample": "`sample` of `rxagent.flow`, or `conflate`",
    "throttle_first": "",
    "throttle_with_timeout": "`debounce` of `rxagent.flow`",
}

PLACES = {
    "main": "the emission of its source",
    "other": "the emission of the other source",
    "timer": "its scheduler",
    "subscribe": "the subscription",
    "end": "the end",
}


def try_out(apply: Apply) -> Counter[str]:
    """Where the values of an operator come out."""

    async def main() -> Counter[str]:
        probe, hub = Probe(), Hub[int]()
        apply(hub, probe).subscribe(probe.see, lambda _: None)
        probe.phase = "main"
        await asyncio.sleep(0.002)
        for value in range(6):
            probe.phase = "main"
            await emit(hub.on_next, value)
            await asyncio.sleep(0.005)
            probe.phase = "other"
            await emit(probe.other.on_next, value)
            await asyncio.sleep(0.045 if value == 2 else 0.005)
        probe.phase = "end"
        hub.on_completed()
        probe.other.on_completed()
        await asyncio.sleep(1)
        return probe.where

    loop = VirtualLoop()
    try:
        return loop.run_until_complete(main())
    finally:
        loop.close()


def verdict(where: Counter[str]) -> str:
    within = where["main"]
    if where["timer"]:
        return "bends" if within else "breaks"
    return "bends" if where["other"] and not within else "keeps"


def rows() -> list[tuple[str, str, str, str]]:
    result: list[tuple[str, str, str, str]] = []
    for name in sorted(HOW):
        where = try_out(HOW[name])
        places = [text for place, text in PLACES.items() if where[place]]
        result.append((name, verdict(where), ", ".join(places) or "nothing is delivered", INSTEAD.get(name, "")))
    return result


HEAD = """# Back-pressure through stock operators

A consumer slows its source by *holding* the emission of the value it is being given (`rxagent.flow.hold`; async
subscribers, `offload`, `frames` and `to_aiter` do it by themselves). A hold reaches the source when the value is delivered
within the source's emission: synchronously, on the same thread. So every operator

- **keeps** back-pressure if what it delivers during the run, it delivers within the emission of the value that caused it;
- **bends** it if some of it comes in another source's emission, or by a timer: only a part of the holds slows its source;
- **breaks** it if it delivers by a timer or on another thread alone: its source is never slowed, and what is between grows.

This page is written by `tests/flow/test_backpressure_page.py`, which tries every operator of reactivex on a source of six
values, with a pause in the middle, and a consumer that holds each for four milliseconds. Operators that take Observables
are tried with inner ones that deliver at once; with slower ones they do what those do. The scheduler of timed ones is
`LoopClock`.

All operators of `rxagent.flow` that cross a thread or time (`offload`, `frames`, `delay`, …) are a source of their own to
what comes after them and hold what comes before them when they are full. `conflate`, `debounce`, `sample`,
`throttle_first` and `overflow` lose values, as their names say, and therefore never need to hold.

| operator | back-pressure | delivers in | instead |
|---|---|---|---|
"""


def page() -> str:
    table = "".join(f"| `{name}` | {what} | {where} | {instead} |\n" for name, what, where, instead in rows())
    return HEAD + table + "\n`to_future` gives a future, which holds nothing.\n"


def test_every_stock_operator_is_on_the_page() -> None:
    every = {name for name in operators.__all__ if inspect.isfunction(getattr(operators, name))}
    assert every == set(HOW) | NO_OBSERVABLE


def test_the_page_says_what_the_operators_do() -> None:
    assert PAGE.read_text() == page(), f"run `python tests/flow/{Path(__file__).name}`"


@pytest.mark.parametrize(
    ("name", "expected"), [("map", "keeps"), ("delay", "breaks"), ("zip", "bends"), ("observe_on", "breaks")]
)
def test_the_probe_tells_the_kinds_apart(name: str, expected: str) -> None:
    assert verdict(try_out(HOW[name])) == expected


def test_every_operator_but_the_silent_one_was_seen_delivering() -> None:
    silent = {name for name, apply in HOW.items() if not try_out(apply)}
    assert silent == {"ignore_elements"}


if __name__ == "__main__":
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(page())
