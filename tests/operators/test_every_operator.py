"""What every operator over events promises: holds get through, ends pass, nothing is kept between subscriptions."""

import pytest
import reactivex as rx
from hypothesis import assume, given
from hypothesis import strategies as st
from operator_harness import END, answer, hub, numbered, play, user
from reactivex import Observable
from reactivex import operators as rxops
from strategies import logs

from rxagent import events as e
from rxagent import operators as ops
from rxagent.flow import hold, publish
from rxagent.messages import ToolCall, ToolResultMessage, Usage
from rxagent.state import AgentState

OPERATORS = {
    "text_deltas": ops.text_deltas,
    "thinking_deltas": ops.thinking_deltas,
    "tool_call_deltas": ops.tool_call_deltas,
    "messages": ops.messages,
    "transcript": ops.transcript,
    "final_text": ops.final_text,
    "pending_tool_calls": ops.pending_tool_calls,
    "tool_executions": ops.tool_executions,
    "live_messages": ops.live_messages,
    "turns": ops.turns,
    "usage": ops.usage,
    "states": lambda: ops.states(AgentState(("main",))),
    "by_agent": lambda: ops.by_agent("main"),
    "of_type": lambda: ops.of_type(e.ToolLevel, e.MessageEnd),
    "verify": ops.verify,
}
every = pytest.mark.parametrize("name", OPERATORS)


def session():
    """A little of everything, so that each operator has something to say."""
    asked = answer(
        e.ThinkingDelta("hm"), "let me see", e.ToolCallStart("c1", "add", 2), aid="a1", stop="tool_use", usage=Usage(3, 2)
    )
    result = ToolResultMessage("c1", "add", "4", id="t1", timestamp=1.0)
    said = answer("it is", " 4", aid="a2", usage=Usage(5, 1))
    body = [
        e.TurnStart(0),
        *user(),
        *asked,
        e.ToolStart("c1", "add"),
        e.ToolUpdate("c1", "add"),
        e.ToolEnd("c1", "add"),
        e.MessageStart(result),
        e.MessageEnd(result),
        e.TurnEnd(asked[-1].message, (result,)),
        e.TurnStart(1),
        *said,
        e.TurnEnd(said[-1].message),
    ]
    assert asked[-1].message.tool_calls == (ToolCall("c1", "add", {}),)
    messages = tuple(x.message for x in body if isinstance(x, e.MessageEnd))
    return numbered([e.SessionStart(), e.AgentStart(), *body, e.AgentEnd(messages, usage=Usage(8, 3))])


def flat(name, events):
    """An operator's items with inner streams played out, in order of their opening."""
    items = play(events, OPERATORS[name]())
    played = []
    for item in items:
        if isinstance(item, Observable):
            item.subscribe(played.append, played.append)
        else:
            played.append(item)
    return played


@every
def test_whoever_holds_an_item_holds_the_event_it_came_from(name):
    source, releases, live = hub(), [], []
    source.pipe(OPERATORS[name]()).subscribe(lambda item: releases.append(hold()) if live else None)
    live.append(True)
    held = 0
    for event in session():
        before = len(releases)
        pending = publish(source.on_next, event)
        came = len(releases) - before
        assert bool(pending and pending.held) == bool(came)
        held += came
        for release in releases[before:]:
            assert release.active
            release()
    assert held


@every
def test_completion_and_errors_pass_through_at_once(name):
    assert play(session(), OPERATORS[name]())[-1] == END
    boom, got = ValueError("boom"), []
    source = hub()
    source.pipe(OPERATORS[name]()).subscribe(lambda _: None, got.append, lambda: got.append(END))
    for event in session():
        source.on_next(event)
    source.on_error(boom)
    assert got == [boom]


@every
def test_disposing_leaves_the_source_and_nothing_comes_any_more(name):
    source, got = hub(), []
    subscription = source.pipe(OPERATORS[name]()).subscribe(got.append)
    events = session()
    for event in events[:8]:
        source.on_next(event)
    assert source.observed
    subscription.dispose()
    assert not source.observed
    count = len(got)
    for event in events[8:]:
        source.on_next(event)
    assert len(got) == count


@every
def test_two_subscriptions_know_nothing_of_one_another(name):
    operator = OPERATORS[name]()
    source = hub()
    first = []
    chained = source.pipe(operator)
    chained.subscribe(first.append)
    events = session()
    for event in events[:9]:
        source.on_next(event)
    chained.subscribe(lambda _: None)
    for event in events[9:]:
        source.on_next(event)
    alone = play(events, OPERATORS[name]())[:-1]
    if name not in ("tool_executions", "live_messages"):
        assert first == alone


@every
def test_an_observer_that_stops_early_is_left_in_peace(name):
    got = []
    source = hub()
    source.pipe(OPERATORS[name](), rxops.take(1)).subscribe(got.append, got.append, lambda: got.append(END))
    for event in session():
        source.on_next(event)
    assert len(got) == 2
    assert got[-1] == END


@given(logs(), st.data())
def test_a_stream_joined_anywhere_breaks_no_operator_and_gives_the_same_each_time(log, data):
    joined = log[data.draw(st.integers(0, len(log))) :]
    for name in OPERATORS:
        if name != "verify":
            assert play(joined, OPERATORS[name]())[-1] == END
            assert [repr(x) for x in flat(name, joined)] == [repr(x) for x in flat(name, joined)]


@given(logs(), st.data())
def test_an_answer_joined_in_the_middle_goes_on_from_there(log, data):
    updates = [i for i, x in enumerate(log) if isinstance(x, e.MessageUpdate) and not x.origin.call_id]
    assume(updates)
    cut = data.draw(st.sampled_from(updates)) + 1
    whole, rest = ([x for x in play(events, ops.text_deltas()) if type(x) is str] for events in (log, log[cut:]))
    assert rest == whole[len(whole) - len(rest) :]


@every
def test_an_empty_stream_gives_nothing_but_its_end(name):
    got = play([], OPERATORS[name]())
    if name == "verify":
        assert "empty" in str(got[0])
    else:
        assert got[-1] == END
        assert len(got) == (2 if name == "states" else 1)


def test_operators_may_be_applied_many_times_and_to_many_sources():
    text = ops.text_deltas()
    for _ in range(2):
        assert play(session(), text) == ["let me see", "it is", " 4", END]
    assert rx.from_iterable(session()).pipe(text, rxops.reduce(lambda a, b: a + b)).run() == "let me seeit is 4"
