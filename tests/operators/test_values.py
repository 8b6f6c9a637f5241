"""messages, transcript, final_text, states, turns, usage, pending_tool_calls, by_agent, of_type against plain lists."""

from functools import reduce as fold
from itertools import pairwise
from typing import Annotated

import pytest
from hypothesis import given
from hypothesis import strategies as st
from operator_harness import CHILD, END, MAIN, answer, attempt, numbered, play, user
from strategies import logs

from rxagent import events as e
from rxagent import operators as ops
from rxagent.errors import UsageError
from rxagent.messages import AssistantMessage, Transcript, Usage, UserMessage
from rxagent.state import AgentState, reduce


def own(log):
    return [event for event in log if not event.origin.call_id]


def final_state(log):
    return fold(reduce, log, AgentState(("main",)))


@given(logs())
def test_messages_are_those_that_ended(log):
    assert play(log, ops.messages()) == [*(x.message for x in own(log) if isinstance(x, e.MessageEnd)), END]


@given(logs())
def test_the_transcript_is_that_of_the_state_after_every_change(log):
    got = play(log, ops.transcript())[:-1]
    state, expected = AgentState(("main",)), []
    for event in log:
        state = reduce(state, event)
        if isinstance(event, e.SessionStart | e.SessionReset) or (isinstance(event, e.MessageEnd) and not event.origin.call_id):
            expected.append(state.messages)
    assert got == expected


def test_a_transcript_joined_late_goes_on_from_what_it_is_given():
    before = UserMessage("before", id="u0")
    got = play(numbered(user()), ops.transcript([before]))
    assert [len(t) for t in got[:-1]] == [2]
    assert got[0][0] == before


def test_transcripts_already_given_never_change():
    got = play(numbered([*user(uid="u1"), *user(uid="u2")]), ops.transcript())
    assert [len(t) for t in got[:-1]] == [1, 2]
    assert isinstance(got[0], Transcript)


@given(logs())
def test_final_text_comes_once_per_run_and_is_its_last_answer(log):
    expected, texts = [], []
    for x in own(log):
        if isinstance(x, e.AgentStart):
            texts = [""]
        elif isinstance(x, e.MessageEnd) and isinstance(x.message, AssistantMessage) and x.message.text:
            texts.append(x.message.text)
        elif isinstance(x, e.AgentEnd):
            expected.append(texts[-1])
    assert play(log, ops.final_text()) == [*expected, END]


def test_final_text_shows_a_repeated_answer_once():
    said = answer("he", "y", aid="a2")
    log = numbered([e.AgentStart(), e.TurnStart(), *attempt("he"), *said, e.AgentEnd((said[-1].message,))])
    assert play(log, ops.final_text()) == ["hey", END]


@given(logs())
def test_states_is_the_initial_state_and_then_the_fold(log):
    initial = AgentState(("main",))
    expected = [initial]
    for event in log:
        expected.append(reduce(expected[-1], event))
    assert play(log, ops.states(initial)) == [*expected, END]


def test_states_takes_the_initial_state_it_is_given_and_never_changes_it():
    initial = AgentState(("main",), system_prompt="be nice", turn=7)
    got = play(numbered(answer("x")), ops.states(initial))
    assert got[0] is initial
    assert got[-2].system_prompt == "be nice"
    assert initial.messages == ()


@given(logs())
def test_turns_are_the_turn_ends_of_the_agent_itself(log):
    assert play(log, ops.turns()) == [*(x for x in own(log) if isinstance(x, e.TurnEnd)), END]


@given(logs())
def test_usage_sums_what_the_state_sums_children_included(log):
    got = play(log, ops.usage())[:-1]
    assert (got[-1] if got else Usage()) == final_state(log).usage
    assert all((b.total or 0) >= (a.total or 0) for a, b in pairwise(got))


def test_usage_goes_on_from_what_it_is_given():
    got = play(numbered(answer("x", usage=Usage(1, 2))), ops.usage(Usage(10, 20)))
    assert got == [Usage(11, 22), END]


@given(logs())
def test_pending_calls_are_those_of_the_state_after_every_change(log):
    got = [tuple(call.call_id for call in calls) for calls in play(log, ops.pending_tool_calls())[:-1]]
    state, expected = AgentState(("main",)), [()]
    for event in log:
        state = reduce(state, event)
        if state.pending_tool_calls != expected[-1]:
            expected.append(state.pending_tool_calls)
    assert got == expected[1:]


def test_a_run_that_ends_leaves_no_call_pending_whatever_happened():
    log = numbered([e.ToolStart("c1", "add"), e.ToolStart("c9", "add", origin=CHILD), e.AgentEnd()])
    assert [len(calls) for calls in play(log, ops.pending_tool_calls())[:-1]] == [1, 0]


# -- selections


@given(logs())
def test_by_agent_gives_the_events_of_that_agent_by_name_or_by_path(log):
    for name, path in [("main", ("main",)), ("expert", ("main", "expert"))]:
        assert play(log, ops.by_agent(name)) == [*(x for x in log if x.origin.agent == name), END]
        assert play(log, ops.by_agent(path)) == [*(x for x in log if x.origin.path == path), END]
        assert play(log, ops.by_agent(list(path))) == play(log, ops.by_agent(path))


@pytest.mark.parametrize("agent", ["", (), 3, None])
def test_what_is_no_agent_is_refused(agent):
    with pytest.raises(UsageError, match="name, or its path"):
        ops.by_agent(agent)


@given(logs())
def test_every_operator_speaks_of_a_child_once_the_child_is_selected(log):
    picked = [x for x in log if x.origin.path == ("main", "expert")]
    expected = [x.message for x in picked if isinstance(x, e.MessageEnd)]
    got = []
    assert play(picked, ops.messages()) == [*expected, END]
    assert play(log, lambda source: source.pipe(ops.by_agent("expert"), ops.messages())) == [*expected, END]
    assert got == []


def test_by_agent_needs_a_name():
    for nothing in ("", ()):
        with pytest.raises(UsageError, match="needs an agent's name"):
            ops.by_agent(nothing)


LEVELS = [
    e.ToolLevel,
    e.MessageLevel,
    e.TurnLevel,
    e.AgentLevel,
    e.ToolStart,
    Annotated[e.ToolStart | e.ToolEnd, "x"],
    e.KnownEvent,
]


@given(logs(), st.lists(st.sampled_from(LEVELS), min_size=1, max_size=3))
def test_of_type_gives_the_events_of_any_of_the_kinds(log, kinds):
    plain = [k if not hasattr(k, "__metadata__") else k.__origin__ for k in kinds]
    assert play(log, ops.of_type(*kinds)) == [*(x for x in log if any(isinstance(x, k) for k in plain)), END]


def test_of_type_refuses_what_is_no_kind():
    with pytest.raises(UsageError, match="at least one"):
        ops.of_type()
    for wrong in ("tool_start", 3, MAIN):
        with pytest.raises(UsageError, match="not "):
            ops.of_type(wrong)


def joined_late():
    """What is heard of a run from its second call on, which an agent works for."""
    said = answer("it is 4", aid="a2")
    body = [
        e.ToolStart("c1", "expert"),
        *(e.AgentStart(origin=CHILD), e.TurnStart(origin=CHILD), *answer("four", aid="x1", origin=CHILD)),
        *(e.TurnEnd(origin=CHILD), e.AgentEnd(origin=CHILD)),
        e.ToolEnd("c1", "expert"),
        *said,
        e.TurnEnd(said[-1].message),
        e.AgentEnd((said[-1].message,)),
    ]
    return numbered(body)


def test_in_a_stream_that_is_joined_late_an_agent_that_works_for_a_call_is_still_no_part_of_the_answer():
    log = joined_late()
    assert play(log, ops.final_text()) == ["it is 4", END]
    assert [m.text for m in play(log, ops.messages())[:-1]] == ["it is 4"]
    assert [[m.text for m in t] for t in play(log, ops.transcript())[:-1]] == [["it is 4"]]
    assert [turn.origin for turn in play(log, ops.turns())[:-1]] == [MAIN]
    assert play(log, ops.until_idle()) == [*log, END]
    assert len(play(log, ops.live_messages())[:-1]) == 1
