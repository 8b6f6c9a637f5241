"""elapsed, progress, until_idle, merge_runs: what watches a run from outside."""

import asyncio
import re
import threading
from itertools import pairwise

import pytest
import reactivex as rx
from hypothesis import given
from hypothesis import strategies as st
from operator_harness import CHILD, END, MAIN, answer, attempt, hub, numbered, play, user
from reactivex import operators as rxops
from strategies import logs

from rxagent import events as e
from rxagent import operators as ops
from rxagent.errors import NoRunningLoop, UsageError
from rxagent.flow import Hub, emit, hold, publish
from rxagent.marble.loop import run_virtual


def played(script, operator):
    """What an operator gives on a virtual loop; the script: an event, or seconds to wait. (time, item) pairs."""

    async def main():
        loop, source, got = asyncio.get_running_loop(), hub(), []
        source.pipe(operator).subscribe(
            lambda item: got.append((round(loop.time(), 6), item)), got.append, lambda: got.append(END)
        )
        for step in script:
            if isinstance(step, int | float):
                await asyncio.sleep(step)
            else:
                source.on_next(step)
        source.on_completed()
        assert not [handle for handle in loop._scheduled if not handle._cancelled], "a timer was left"
        return got

    return run_virtual(main())


def start(origin=MAIN):
    return e.AgentStart(origin=origin)


def end(origin=MAIN, outcome="completed"):
    return e.AgentEnd((), outcome, origin=origin)


# -- elapsed


def test_the_clock_ticks_from_start_to_end_and_says_exactly_how_long_it_took():
    got = played([2.5, start(), 2.7, end(), 10], ops.elapsed(period=1))
    assert got == [(2.5, 0.0), (3.5, 1.0), (4.5, 2.0), (5.2, pytest.approx(2.7)), END]


def test_no_timer_runs_while_nothing_does():
    async def main():
        loop, source = asyncio.get_running_loop(), hub()
        source.pipe(ops.elapsed(0.1)).subscribe(lambda _: None)
        timers = lambda: [handle for handle in loop._scheduled if not handle._cancelled]
        assert not timers()
        source.on_next(start())
        assert len(timers()) == 1
        source.on_next(end())
        assert not timers()
        source.on_next(start())
        subscription = source.pipe(ops.elapsed(0.1)).subscribe(lambda _: None)
        subscription.dispose()
        source.on_completed()
        assert not timers()

    run_virtual(main())


def test_behind_a_tool_execution_it_is_the_clock_of_that_call():
    async def main():
        loop, source, got = asyncio.get_running_loop(), hub(), []
        source.pipe(ops.tool_executions(), rxops.flat_map(lambda call: call.pipe(ops.elapsed(1)))).subscribe(
            lambda item: got.append((round(loop.time(), 6), item))
        )
        for step in [start(), e.ToolStart("c1", "add", origin=MAIN), 0.5, e.ToolStart("c2", "add", origin=MAIN), 1.2]:
            await asyncio.sleep(step) if isinstance(step, float) else source.on_next(step)
        source.on_next(e.ToolEnd("c1", "add", origin=MAIN))
        await asyncio.sleep(1)
        source.on_next(e.ToolEnd("c2", "add", origin=MAIN))
        await asyncio.sleep(5)
        assert got == [(0, 0.0), (0.5, 0.0), (1.0, 1.0), (1.5, 1.0), (1.7, 1.7), (2.5, 2.0), (2.7, pytest.approx(2.2))]

    run_virtual(main())


def test_what_ends_below_does_not_stop_the_clock():
    got = played([start(), start(CHILD), 1.5, end(CHILD), 1, end()], ops.elapsed(1))
    assert [item for _, item in got[:-1]] == [0.0, 1.0, 2.0, 2.5]


def test_every_run_has_a_clock_of_its_own():
    got = played([start(), 1.5, end(), 3, start(), 0.5, end()], ops.elapsed(1))
    assert [item for _, item in got[:-1]] == [0.0, 1.0, 1.5, 0.0, 0.5]


def test_a_consumer_that_holds_a_tick_misses_those_meanwhile():
    async def main():
        loop, source, got = asyncio.get_running_loop(), hub(), []

        def slow(seconds):
            got.append(seconds)
            release = hold()
            loop.call_later(2.5, release)

        source.pipe(ops.elapsed(1)).subscribe(slow)
        source.on_next(start())
        await asyncio.sleep(6.9)
        source.on_completed()
        assert got == [0.0, 1.0, 4.0]

    run_virtual(main())


def test_the_clock_needs_a_loop_and_a_period():
    with pytest.raises(UsageError, match="period"):
        ops.elapsed(0)
    got = play([start()], ops.elapsed())
    assert isinstance(got[0], NoRunningLoop)


# -- progress


def test_progress_tells_what_the_run_does():
    log = numbered(
        [
            e.AgentStart(),
            e.TurnStart(),
            *user(),
            *attempt(e.ThinkingDelta("hm"), "he"),
            *answer("see", e.ToolCallStart("c1", "add"), aid="a2", stop="tool_use"),
            e.ToolStart("c1", "add"),
            e.AgentStart(origin=CHILD),
            e.AgentEnd(origin=CHILD),
            e.ToolEnd("c1", "add"),
            e.TurnEnd(),
            e.TurnStart(1),
            *answer("4", aid="a3"),
            e.AgentEnd((), "completed"),
        ]
    )
    got = play(log, ops.progress())[:-1]
    assert [(p.phase, p.turn, p.characters, p.running, p.finished) for p in got] == [
        ("asking", 0, 0, (), 0),
        ("thinking", 0, 2, (), 0),
        ("answering", 0, 4, (), 0),
        ("retrying", 0, 0, (), 0),
        ("asking", 0, 0, (), 0),
        ("answering", 0, 3, (), 0),
        ("calling", 0, 3, (), 0),
        ("running", 0, 3, ("add",), 0),
        ("running", 0, 3, (), 1),
        ("asking", 1, 0, (), 1),
        ("answering", 1, 1, (), 1),
        ("done", 1, 1, (), 1),
    ]
    assert got[-1].outcome == "completed"


@given(logs())
def test_progress_changes_with_every_value_and_ends_with_the_run(log):
    got = play(log, ops.progress())[:-1]
    assert all(a != b for a, b in pairwise(got))
    ended = [x.outcome for x in log if isinstance(x, e.AgentEnd) and not x.origin.call_id]
    assert [p.outcome for p in got if p.phase == "done"] == ended
    calls = [x for x in log if isinstance(x, e.ToolEnd) and not x.origin.call_id]
    assert sum(p.finished for p in got if p.phase == "done") == len(calls)


# -- until_idle


@given(logs())
def test_the_first_run_is_given_whole_and_nothing_after_it(log):
    ends = [i for i, x in enumerate(log) if isinstance(x, e.AgentEnd) and not x.origin.call_id]
    expected = log[: ends[0] + 1] if ends else log
    assert play(log, ops.until_idle()) == [*expected, END]


def test_a_session_that_never_ends_is_left_when_its_run_does():
    source, got = hub(), []
    source.pipe(ops.until_idle()).subscribe(got.append, got.append, lambda: got.append(END))
    for event in [e.QueueChanged(), start(), start(CHILD), end(CHILD)]:
        source.on_next(event)
    assert got[-1] != END
    source.on_next(end())
    assert got[-1] == END
    assert not source.observed


def test_overlapping_runs_of_several_agents_are_all_waited_for():
    other = e.Origin("s2", "r9", "other", ("other",))
    log = [start(), start(other), end(), end(other), start()]
    assert play(log, ops.until_idle()) == [*log[:4], END]


# -- record


@given(logs())
def test_a_recording_is_the_whole_stream_and_reads_back_from_its_lines(log):
    recording, ended = play(log, ops.record())
    assert ended == END
    assert recording.events == tuple(log)
    assert len(recording.times) == len(log)
    read = list(e.EventReader().read_all(recording.json_lines().split("\n")))
    assert [e.to_json(x) for x in read] == [e.to_json(x) for x in log]


def test_a_recording_knows_when_things_came():
    got = played([3, start(), 0.25, *answer("x"), 1, end()], ops.record())
    assert [round(at, 6) for at in got[0][1].times] == [0, 0.25, 0.25, 0.25, 1.25]


def test_what_came_before_an_error_is_recorded():
    boom, got = ValueError("boom"), []
    rx.concat(rx.from_iterable([start()]), rx.throw(boom)).pipe(ops.record()).subscribe(got.append, got.append)
    assert got == [ops.Recording((start(),), (0.0,)), boom]


def test_a_recorded_run_is_written_as_a_marble_block():
    said = answer("he", "y")
    log = numbered([e.AgentStart(), e.TurnStart(), *said, e.TurnEnd(said[-1].message), e.AgentEnd((said[-1].message,))])
    text = played([*log[:3], 0.01, log[3], 0.02, *log[4:]], ops.record())[0][1].marble()
    assert "> run(" in text
    assert re.search(r'text "?he', text)


# -- merge_runs


@given(st.lists(st.lists(st.integers(), max_size=5), max_size=4))
def test_merging_keeps_every_value_in_the_order_of_its_run(runs):
    tagged = [[(n, i, x) for i, x in enumerate(run)] for n, run in enumerate(runs)]
    got = []
    ops.merge_runs(*(rx.from_iterable(run) for run in tagged)).subscribe(got.append, got.append, lambda: got.append(END))
    assert got[-1] == END
    for n, run in enumerate(tagged):
        assert [item for item in got[:-1] if item[0] == n] == run


def test_while_the_consumer_holds_the_runs_take_turns():
    async def main():
        flood, other, got, releases = Hub[str](), Hub[str](), [], []
        ops.merge_runs(flood, other).subscribe(lambda item: (got.append(item), releases.append(hold())))

        async def send(source, name, count):
            for n in range(count):
                await emit(source.on_next, f"{name}{n}")

        tasks = [asyncio.create_task(send(flood, "f", 5)), asyncio.create_task(send(other, "o", 2))]
        for _ in range(7):
            for _ in range(4):
                await asyncio.sleep(0)
            assert len(releases) == 1, "one value is on its way at a time"
            releases.pop()()
        await asyncio.gather(*tasks)
        assert got == ["f0", "o0", "f1", "o1", "f2", "f3", "f4"]

    run_virtual(main())


def test_a_value_that_is_held_holds_its_own_run():
    a, b, releases = Hub[int](), Hub[int](), []
    ops.merge_runs(a, b).subscribe(lambda _: releases.append(hold()))
    first, second = publish(a.on_next, 1), publish(b.on_next, 2)
    assert first.held
    assert second.held
    releases.pop()()
    assert not first.held
    assert second.held
    releases.pop()()
    assert not second.held


def test_a_re_entrant_value_comes_after_the_one_that_caused_it():
    a, b, direct = Hub[int](), Hub[int](), []
    ops.merge_runs(a, b).subscribe(lambda x: (b.on_next(20) if x == 10 else None, direct.append(x)))
    a.on_next(10)
    assert direct == [10, 20]


def test_an_error_comes_after_what_waits_and_leaves_the_other_runs():
    boom = ValueError("boom")
    a, b, got, releases = Hub[int](), Hub[int](), [], []
    ops.merge_runs(a, b).subscribe(lambda x: (got.append(x), releases.append(hold())), got.append)
    publish(a.on_next, 1)
    publish(b.on_next, 2)
    a.on_error(boom)
    assert got == [1]
    releases.pop(0)()
    assert got == [1, 2]
    releases.pop(0)()
    assert got == [1, 2, boom]
    assert not b.observed


def test_disposing_lets_go_of_everything():
    a, b = Hub[int](), Hub[int]()
    subscription = ops.merge_runs(a, b).subscribe(lambda _: hold())
    first, second = publish(a.on_next, 1), publish(b.on_next, 2)
    subscription.dispose()
    assert not first.held
    assert not second.held
    assert not a.observed
    assert not b.observed


def test_runs_on_different_threads_are_serialised():
    a, b, inside, got = Hub[int](), Hub[int](), threading.Lock(), []

    def consume(item):
        assert inside.acquire(blocking=False), "two values at once"
        got.append(item)
        inside.release()

    ops.merge_runs(a, b).subscribe(consume)

    def run(source, base):
        for n in range(2000):
            source.on_next(base + n)

    threads = [threading.Thread(target=run, args=(source, base)) for source, base in ((a, 0), (b, 10_000))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [x for x in got if x < 10_000] == list(range(2000))
    assert [x - 10_000 for x in got if x >= 10_000] == list(range(2000))


def test_no_runs_are_an_empty_stream():
    got = []
    ops.merge_runs().subscribe(got.append, got.append, lambda: got.append(END))
    assert got == [END]


def test_an_observer_that_has_seen_enough_stops_the_subscribing():
    got, subscribed = [], []
    never = rx.create(lambda observer, _: subscribed.append(1))
    ops.merge_runs(rx.of(1, 2), never).pipe(rxops.take(1)).subscribe(got.append)
    assert got == [1]


def test_progress_of_an_unstreamed_answer_comes_to_the_same():
    pieces = (e.ThinkingDelta("hm"), "so ", "it is")
    ends = [play(numbered([e.AgentStart(), *answer(*pieces, unstreamed=u)]), ops.progress())[-2] for u in (False, True)]
    assert ends == [ops.Progress("answering", characters=10)] * 2
