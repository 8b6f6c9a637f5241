"""text_deltas, thinking_deltas, tool_call_deltas: every piece once, a withdrawal never silent."""

import pickle
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from operator_harness import CHILD, END, answer, attempt, numbered, play
from pydantic_core import from_json
from strategies import logs, runs

from rxagent import events as e
from rxagent import operators as ops
from rxagent.messages import AssistantMessage

KINDS = {"text": (ops.text_deltas, e.TextDelta), "thinking": (ops.thinking_deltas, e.ThinkingDelta)}
both = pytest.mark.parametrize("kind", KINDS)


def own(log):
    return [event for event in log if not event.origin.call_id]


def answers(log, kind):
    return [
        getattr(event.message, kind)
        for event in own(log)
        if isinstance(event, e.MessageEnd) and isinstance(event.message, AssistantMessage)
    ]


def shown(items):
    """What stands on a screen that takes withdrawn text back."""
    screen = ""
    for item in items:
        screen = screen[: len(screen) - item.characters] if isinstance(item, ops.Withdrawn) else screen + item
    return screen


@both
@given(log=logs())
def test_a_consumer_that_takes_back_what_is_withdrawn_shows_every_answer_once(kind, log):
    operator, _ = KINDS[kind]
    assert shown(play(log, operator())[:-1]) == "".join(answers(log, kind))


@both
@given(log=logs())
def test_every_streamed_piece_comes_as_it_was_cut(kind, log):
    operator, delta = KINDS[kind]
    pieces = [x.delta.text for x in own(log) if isinstance(x, e.MessageUpdate) and isinstance(x.delta, delta)]
    whole = []
    streamed = False
    for x in own(log):
        if isinstance(x, e.MessageStart):
            streamed = False
        elif isinstance(x, e.MessageUpdate):
            streamed = True
            if isinstance(x.delta, delta):
                whole.append(x.delta.text)
        elif isinstance(x, e.MessageEnd) and isinstance(x.message, AssistantMessage) and not streamed:
            whole += [t for t in [getattr(x.message, kind)] if t]
    got = [item for item in play(log, operator())[:-1] if not isinstance(item, ops.Withdrawn)]
    assert got == whole
    assert [p for p in pieces if p in got] == pieces


@both
@given(log=logs())
def test_a_plain_consumer_sees_a_remark_exactly_where_text_is_void(kind, log):
    operator, delta = KINDS[kind]
    void, count = [], {}
    for x in own(log):
        key = x.origin.run_id
        if isinstance(x, e.MessageUpdate) and isinstance(x.delta, delta):
            count[key] = count.get(key, 0) + len(x.delta.text)
        elif isinstance(x, e.ModelRetry) and count.get(key):
            void.append(count.pop(key))
        elif isinstance(x, e.MessageEnd | e.ModelRetry):
            count.pop(key, None)
    remarks = [item for item in play(log, operator(withdrawn="[!]")) if isinstance(item, ops.Withdrawn)]
    assert [r.characters for r in remarks] == void
    assert all(r == "[!]" for r in remarks)


def test_a_failed_attempt_of_a_thousand_deltas_is_taken_back_in_one_piece():
    log = numbered([e.AgentStart(), e.TurnStart(), *attempt(*["x"] * 1000), *answer("good")])
    got = play(log, ops.text_deltas())
    assert got[:1000] == ["x"] * 1000
    assert got[1000].characters == 1000
    assert "withdrawn" in got[1000]
    assert got[1001:] == ["good", END]


def test_a_retry_that_showed_nothing_says_nothing():
    log = numbered([*attempt(e.ThinkingDelta("hm")), e.ModelRetry(2, 1.0, e.ErrorInfo("busy")), *answer("good")])
    assert play(log, ops.text_deltas()) == ["good", END]


def test_an_answer_that_was_cut_off_by_a_crash_is_withdrawn_by_the_next_run():
    log = numbered([*answer("lost")[:-1], e.AgentStart(), *answer("found")])
    assert shown(play(log, ops.text_deltas())[:-1]) == "found"


def test_an_attempt_that_nobody_ended_is_withdrawn_by_the_next_answer():
    log = numbered([*answer("lost")[:-1], *answer("found", aid="a2")])
    assert shown(play(log, ops.text_deltas())[:-1]) == "found"


def test_an_unstreamed_answer_comes_in_one_piece_and_needs_no_second_branch():
    log = numbered([e.AgentStart(), *answer("he", "y", unstreamed=True)])
    assert play(log, ops.text_deltas()) == ["hey", END]


def test_an_agent_that_runs_as_a_tool_does_not_talk_into_the_answer():
    child = answer("secret", aid="a9", origin=CHILD)
    log = numbered([*answer("I ask", aid="a1"), *child, *answer("he says", aid="a2")])
    assert play(log, ops.text_deltas()) == ["I ask", "he says", END]
    assert play([x for x in log if x.origin == CHILD], ops.text_deltas()) == ["secret", END]


def test_a_child_that_streams_unstreamed_parents_does_not_confuse_them():
    mother = answer("all of it", aid="a1", unstreamed=True)
    log = numbered([mother[0], *answer("x", aid="a9", origin=CHILD), mother[1]])
    assert play(log, ops.text_deltas()) == ["all of it", END]


def test_two_agents_side_by_side_are_told_apart_in_one_merged_stream():
    other = e.Origin("s2", "r5", "other", ("other",))
    a, b = attempt("a1", "a2", aid="x"), answer("b1", "b2", aid="y", origin=other)
    log = numbered([a[0], b[0], a[1], b[1], a[2], a[3], b[2], b[3]])
    got = play(log, ops.text_deltas())
    assert got == ["a1", "b1", "a2", got[3], "b2", END]
    assert got[3].characters == 4


def test_a_separator_stands_between_answers_only():
    log = numbered(
        [*answer("one", aid="a1"), *answer(e.ThinkingDelta("hm"), aid="a2"), *attempt("tw", aid="a3"), *answer("two", aid="a4")]
    )
    got = play(log, ops.text_deltas(between="\n", withdrawn=""))
    assert got == ["one", "\n", "tw", "", "two", END]
    assert shown(got[:-1]) == "one\ntwo"
    assert play(
        numbered([*answer("one", aid="a1", unstreamed=True), *answer("two", aid="a2", unstreamed=True)]),
        ops.text_deltas(between=" "),
    ) == [
        "one",
        " ",
        "two",
        END,
    ]


def test_an_answer_of_empty_pieces_is_none_to_be_set_apart():
    log = numbered([*answer("one", aid="a1"), *answer("", e.ToolCallStart("c1", "add", 1), aid="a2", stop="tool_use")])
    assert play(log, ops.text_deltas(between="\n")) == ["one", "", END]


@given(runs())
def test_updates_read_one_by_one_give_the_same_text(run):
    bare = [replace(x, message=None) if isinstance(x, e.MessageUpdate) else x for x in run]
    assert play(bare, ops.text_deltas()) == play(run, ops.text_deltas())


@given(runs())
def test_origins_need_not_be_shared(run):
    copies = [replace(x, origin=replace(x.origin)) for x in run]
    assert play(copies, ops.text_deltas()) == play(run, ops.text_deltas())


@given(st.text(), st.integers(0, 10**6))
def test_a_withdrawal_is_text_and_keeps_its_count_when_copied(text, count):
    remark = ops.Withdrawn(text, count)
    assert remark == text
    assert pickle.loads(pickle.dumps(remark)).characters == count
    assert repr(remark) == f"Withdrawn({text!r}, {count})"


# -- calls


def calls_of(items):
    """The calls that the deltas spell: [id, name, arguments], withdrawn ones left out."""
    spelt = []
    for item in items:
        if item.withdrawn:
            spelt = [call for call in spelt if call[0] != item.call_id]
        elif not item.arguments:
            spelt.append([item.call_id, item.tool_name, ""])
        else:
            next(call for call in reversed(spelt) if call[0] == item.call_id)[2] += item.arguments
    return spelt


@given(logs())
def test_the_deltas_spell_the_calls_of_the_transcript(log):
    expected = [
        (call.id, call.name)
        for x in own(log)
        if isinstance(x, e.MessageEnd) and isinstance(x.message, AssistantMessage)
        for call in x.message.tool_calls
    ]
    spelt = calls_of(play(log, ops.tool_call_deltas())[:-1])
    assert [(c, name) for c, name, _ in spelt] == expected


def test_a_call_is_opened_then_filled_piece_by_piece():
    pieces = [e.ToolCallStart("c1", "add"), e.ToolCallDelta('{"a"'), e.ToolCallDelta(":1}"), e.ToolCallEnd()]
    assert play(numbered(answer(*pieces)), ops.tool_call_deltas()) == [
        ops.CallDelta("c1", "add"),
        ops.CallDelta("c1", "add", '{"a"'),
        ops.CallDelta("c1", "add", ":1}"),
        END,
    ]


def test_a_call_whose_arguments_come_whole_at_its_end_is_filled_then():
    pieces = [e.ToolCallStart("c1", "add"), e.ToolCallEnd(arguments={"a": 1})]
    got = play(numbered(answer(*pieces)), ops.tool_call_deltas())
    assert [from_json(x.arguments) for x in got[1:-1]] == [{"a": 1}]


def test_an_unstreamed_call_is_spelt_all_the_same():
    pieces = [e.ToolCallStart("c1", "add"), e.ToolCallDelta('{"a": 1}'), e.ToolCallEnd()]
    got = play(numbered(answer(*pieces, unstreamed=True)), ops.tool_call_deltas())
    assert [(x.call_id, x.tool_name) for x in got[:-1]] == [("c1", "add")] * 2
    assert from_json(got[1].arguments) == {"a": 1}


def test_interleaved_calls_are_told_apart_by_their_block():
    pieces = [
        e.ToolCallStart("", "add", 0),
        e.ToolCallStart("", "mul", 1),
        e.ToolCallDelta("{", 0),
        e.ToolCallDelta("[", 1),
        e.ToolCallDelta("}", 0),
    ]
    got = play(numbered(answer(*pieces)), ops.tool_call_deltas())[:-1]
    assert [(x.tool_name, x.block, x.arguments) for x in got[2:]] == [("add", 0, "{"), ("mul", 1, "["), ("add", 0, "}")]


def test_a_delta_opens_its_call_where_the_start_is_missing():
    got = play(numbered(answer(e.ToolCallDelta("{}", 3))), ops.tool_call_deltas())
    assert got == [ops.CallDelta("", "", block=3), ops.CallDelta("", "", "{}", 3), END]


def test_withdrawn_calls_are_named():
    log = numbered(
        [*attempt(e.ToolCallStart("c1", "add"), e.ToolCallStart("c2", "add", 1)), *answer(e.ToolCallStart("c3", "add"))]
    )
    got = play(log, ops.tool_call_deltas())[:-1]
    assert [(x.call_id, x.withdrawn) for x in got] == [("c1", False), ("c2", False), ("c1", True), ("c2", True), ("c3", False)]
