"""tool_executions and live_messages: one inner Observable per call and per message, replaying."""

from dataclasses import replace

import reactivex as rx
from hypothesis import given
from operator_harness import CHILD, END, answer, attempt, hub, numbered, play, play_nested, user
from reactivex import operators as rxops
from strategies import logs

from rxagent import events as e
from rxagent import operators as ops
from rxagent.flow import Hub, hold, publish
from rxagent.messages import AssistantMessage


def own(log):
    return [event for event in log if not event.origin.call_id]


def start(call):
    return e.ToolStart(call, "add")


def end(call):
    return e.ToolEnd(call, "add")


def update(call, n=1):
    return e.ToolUpdate(call, "add", partial=n)


@given(logs())
def test_one_inner_stream_per_call_with_its_events_and_an_end(log):
    expected, open_calls = [], {}
    for x in own(log):
        if isinstance(x, e.ToolStart):
            open_calls[x.call_id] = [x]
            expected.append(open_calls[x.call_id])
        elif isinstance(x, e.ToolUpdate | e.ToolEnd):
            open_calls[x.call_id].append(x)
            if isinstance(x, e.ToolEnd):
                open_calls.pop(x.call_id).append(END)
    assert play_nested(log, ops.tool_executions()) == [*expected, END]


@given(logs())
def test_whoever_subscribes_late_gets_the_same(log):
    for operator in (ops.tool_executions(), ops.live_messages()):
        streams = play(log, operator)[:-1]
        late = []
        for stream in streams:
            items = []
            late.append(items)
            stream.subscribe(items.append, items.append, lambda items=items: items.append(END))
        assert late == play_nested(log, operator)[:-1]


@given(logs())
def test_one_inner_stream_per_message_of_the_transcript_ending_with_it(log):
    finished = [x.message for x in own(log) if isinstance(x, e.MessageEnd)]
    streams = play_nested(log, ops.live_messages())[:-1]
    assert len(streams) == len(finished)
    assert all(items[-1] == END for items in streams)
    # Streams stand in order of opening; within a run nothing opens while an answer is open.
    assert [items[-2] for items in streams] == finished


@given(logs())
def test_a_live_message_grows_piece_by_piece(log):
    updates = [x.message.text for x in own(log) if isinstance(x, e.MessageUpdate)]
    got = [
        item.text
        for items in play_nested(log, ops.live_messages())[:-1]
        for item in items[:-1]
        if isinstance(item, AssistantMessage) and item.stop_reason is None
    ]
    assert [t for t in got if t] == [t for t in updates if t]


def test_a_withdrawn_attempt_starts_the_same_live_message_again():
    log = numbered([*user(), *attempt("he"), *answer("h", "i", aid="a2")])
    person, said, _ = play_nested(log, ops.live_messages())
    assert [m.text for m in person[:-1]] == ["hi", "hi"]
    assert [m.text for m in said[:-1]] == ["", "he", "", "h", "hi", "hi"]


def test_parallel_calls_have_streams_side_by_side():
    log = numbered([start("c1"), start("c2"), update("c1"), end("c2"), update("c1", 2), end("c1")])
    first, second, last = play_nested(log, ops.tool_executions())
    assert [type(x) for x in first[:-1]] == [e.ToolStart, e.ToolUpdate, e.ToolUpdate, e.ToolEnd]
    assert [type(x) for x in second[:-1]] == [e.ToolStart, e.ToolEnd]
    assert last == END


def test_a_call_that_is_run_again_by_a_resumed_run_has_a_stream_of_its_own():
    log = numbered([start("c1"), e.ToolEnd("c1", "add", interrupted=True), e.AgentStart(), start("c1"), end("c1")])
    assert [len(items) for items in play_nested(log, ops.tool_executions())[:-1]] == [3, 3]


def test_what_a_run_leaves_open_is_completed_with_it():
    said = answer("cut")[:-1]
    log = numbered([start("c1"), *said, e.AgentEnd(), *user()])
    assert [items[-1] for items in play_nested(log, ops.tool_executions())[:-1]] == [END]
    assert [items[-1] for items in play_nested(log, ops.live_messages())[:-1]] == [END, END]


def test_the_end_of_a_child_closes_nothing_of_its_parent():
    log = numbered([start("c1"), e.AgentStart(origin=CHILD), e.AgentEnd(origin=CHILD), update("c1"), end("c1")])
    assert [len(items) for items in play_nested(log, ops.tool_executions())[:-1]] == [4]


def test_open_streams_end_as_the_source_does():
    boom = ValueError("boom")
    events = numbered([start("c1"), *answer("x")[:-1]])
    for operator in (ops.tool_executions(), ops.live_messages()):
        got = []
        source = rx.concat(rx.from_iterable(events), rx.throw(boom))
        source.pipe(operator).subscribe(lambda inner, got=got: inner.subscribe(got.append, got.append), got.append)
        assert got[-2:] == [boom, boom]
        assert play_nested(events, operator)[0][-1] == END


def test_an_inner_stream_goes_on_when_the_outer_one_is_disposed():
    source, got = hub(), []
    source.pipe(ops.tool_executions(), rxops.take(1), rxops.flat_map(lambda inner: inner)).subscribe(
        got.append, got.append, lambda: got.append(END)
    )
    for event in numbered([start("c1"), start("c2"), update("c1"), end("c1")]):
        source.on_next(event)
    assert [getattr(x, "call_id", x) for x in got] == ["c1", "c1", "c1", END]
    assert not source.observed


def test_a_hold_on_an_inner_item_holds_the_event():
    source, releases = hub(), []
    source.pipe(ops.tool_executions()).subscribe(lambda inner: inner.subscribe(lambda _: releases.append(hold())))
    for event in numbered([start("c1"), update("c1"), end("c1")]):
        pending = publish(source.on_next, event)
        assert pending is not None
        assert pending.held
        releases.pop()()
        assert not pending.held


def test_what_an_inner_observer_raises_is_reported_by_the_source_like_any_other_fault():
    faults, got = [], []
    source = Hub(faults.append)
    source.pipe(ops.tool_executions()).subscribe(lambda inner: inner.subscribe(lambda item: 1 / 0))
    source.subscribe(got.append)
    events = numbered([start("c1"), update("c1"), end("c1")])
    for event in events:
        source.on_next(event)
    assert [type(fault.error) for fault in faults] == [ZeroDivisionError]
    assert got == events


def test_an_observer_that_raises_on_what_it_missed_is_reported_and_breaks_nothing(capsys):
    streams = play(numbered([start("c1"), end("c1")]), ops.tool_executions())[:-1]
    streams[0].subscribe(lambda item: 1 / 0)
    assert "ZeroDivisionError" in capsys.readouterr().err


def test_updates_read_one_by_one_add_nothing_to_a_live_message():
    bare = [replace(x, message=None) if isinstance(x, e.MessageUpdate) else x for x in numbered(answer("he", "y"))]
    assert [m.text for m in play_nested(bare, ops.live_messages())[0][:-1]] == ["", "hey"]
