"""verify: every grammatical session passes, and whatever breaks the grammar is named."""

from dataclasses import replace

import pytest
import reactivex as rx
from hypothesis import given
from hypothesis import strategies as st
from operator_harness import CHILD, END, MAIN, answer, attempt, call_message, numbered, play, user
from strategies import logs, runs

from rxagent import events as e
from rxagent import operators as ops
from rxagent.errors import GrammarError
from rxagent.messages import AssistantMessage, ToolResult, ToolResultMessage, UserMessage
from rxagent.operators.grammar import TABLE, At, Sign

FREE = (e.Custom, e.QueueChanged, e.ConfigChanged, e.Handoff, e.UnknownEvent, e.MessageUpdate, e.ToolUpdate, e.SessionReset)


def renumbered(events):
    """Numbered without holes; what a resumed run points at moves along, so that nothing else is wrong."""
    moved = {event.seq: i for i, event in enumerate(events)}
    again = [replace(event, seq=i) for i, event in enumerate(events)]
    return [replace(x, resumes=moved.get(x.resumes)) if isinstance(x, e.AgentStart) and x.resumes else x for x in again]


def fails(events, match=None, **options):
    with pytest.raises(GrammarError, match=match) as caught:
        ops.check(events, **options)
    return str(caught.value)


def result(call="c1", mid="t1"):
    message = ToolResultMessage(call, "add", "4", id=mid, timestamp=1.0)
    return [e.MessageStart(message), e.MessageEnd(message)]


def tool(call="c1", name="add", **kw):
    return [e.ToolStart(call, name), e.ToolEnd(call, name, **kw)]


def session(*body):
    return numbered([e.SessionStart(), *body])


def end(*messages, outcome="completed"):
    return e.AgentEnd(tuple(messages), outcome)


def run_of(*body, messages=None, outcome="completed", resumes=None):
    """A run around the given turns; AgentEnd's messages are those that ended at the agent's own path."""
    own = [event.message for event in body if isinstance(event, e.MessageEnd) and event.origin.path in ((), ("main",))]
    return [e.AgentStart(resumes=resumes), *body, end(*(own if messages is None else messages), outcome=outcome)]


def simple(uid="u1", aid="a1"):
    said = answer("he", "y", aid=aid)
    return run_of(e.TurnStart(), *user(uid=uid), *said, e.TurnEnd(said[-1].message))


def with_tools(*calls, between=(), results=None, interrupted=()):
    """One turn that asks for calls, runs them one by one and writes their results."""
    message = call_message(*calls)
    ended = [event for c in calls for event in tool(c, interrupted=c in interrupted)]
    written = [m for i, c in enumerate(calls) for m in result(c, f"t{i}")] if results is None else results
    messages = tuple(m.message for m in written if isinstance(m, e.MessageEnd))
    return [
        e.TurnStart(),
        *user(),
        e.MessageStart(message),
        e.MessageEnd(message),
        *ended,
        *between,
        *written,
        e.TurnEnd(message, messages),
    ]


# -- what is grammatical passes


@given(logs())
def test_every_grammatical_session_passes(log):
    ops.check(log)
    assert play(log, ops.verify()) == [*log, END]


@given(runs())
def test_every_grammatical_run_passes_by_itself_and_as_a_joined_stream(run):
    ops.check_run(run)
    ops.check(run, joined=True)
    assert play(run, ops.verify_run()) == [*run, END]


@given(runs())
def test_a_run_that_is_in_no_log_yet_needs_no_numbers(run):
    ops.check_run([replace(event, seq=-1) for event in run])


@given(logs(), st.data())
def test_every_prefix_is_a_good_prefix_and_only_whole_runs_are_whole(log, data):
    cut = data.draw(st.integers(0, len(log)))
    prefix = log[:cut]
    ops.check(prefix, prefix=True)
    open_runs = sum(isinstance(x, e.AgentStart) for x in prefix) - sum(isinstance(x, e.AgentEnd) for x in prefix)
    if cut and not open_runs:
        ops.check(prefix)
    else:
        fails(prefix, "ended inside" if cut else "empty")


# -- what is not grammatical is found


@given(logs(), st.data())
def test_losing_any_event_that_must_stand_is_found(log, data):
    # A retry may be missing where attempts still count: it is checked by name below.
    needed = [i for i, event in enumerate(log) if not isinstance(event, (*FREE, e.ModelRetry)) and not _empty_attempt(log, i)]
    lost = data.draw(st.sampled_from(needed))
    fails(renumbered(log[:lost] + log[lost + 1 :]))


def _empty_attempt(log, at):
    """Whether an attempt begins here that says nothing before it is withdrawn: a retry may also come without one."""
    if not isinstance(log[at], e.MessageStart):
        return False
    own = [
        x for x in log[at + 1 :] if x.origin == log[at].origin and not isinstance(x, (e.Custom, e.QueueChanged, e.ConfigChanged))
    ]
    own = [x for x in own if not isinstance(x, e.UnknownEvent)]
    return bool(own) and isinstance(own[0], e.ModelRetry)


@given(logs(), st.data())
def test_a_hole_or_a_repetition_in_the_numbers_is_found(log, data):
    at = data.draw(st.integers(0, len(log) - 1))
    if at < len(log) - 1:
        fails(log[:at] + log[at + 1 :], f"expected seq {at}")
    fails([*log[: at + 1], log[at], *log[at + 1 :]], f"expected seq {at + 1}")


@given(logs(), st.data())
def test_repeating_any_event_that_stands_once_is_found(log, data):
    once = [i for i, event in enumerate(log) if not isinstance(event, FREE)]
    at = data.draw(st.sampled_from(once))
    fails(renumbered([*log[: at + 1], log[at], *log[at + 1 :]]))


@pytest.mark.parametrize("at", [at for at in At if at is not At.READY], ids=lambda at: at.name)
def test_the_table_lists_every_place_and_from_each_the_end_can_be_reached(at):
    reached, todo = set(), [at]
    while todo:
        place = todo.pop()
        if place not in reached:
            reached.add(place)
            todo += TABLE[place].values()
    assert At.DONE in reached
    assert any(at in after.values() for after in TABLE.values()) or at in (At.STARTED, At.FRESH)


def test_an_error_names_seq_event_and_what_was_expected():
    text = fails(session(e.AgentStart(), *user()))
    assert text == "seq 2: message_start of user message 'u1' at main: the run has begun: expected turn_start"


def test_the_operator_passes_what_was_good_and_then_fails_downstream():
    log = session(e.AgentStart(), *user())
    got = play(log, ops.verify())
    assert got[:2] == log[:2]
    assert isinstance(got[2], GrammarError)
    assert len(got) == 3


def test_the_operator_passes_an_error_of_its_source_through_unchecked():
    boom = ValueError("boom")
    source = rx.concat(rx.from_iterable(session(e.AgentStart())), rx.throw(boom))
    got = []
    source.pipe(ops.verify()).subscribe(got.append, got.append)
    assert got[-1] is boom


def test_the_operator_forgets_between_subscriptions():
    log = session(*simple())
    verified = rx.from_iterable(log).pipe(ops.verify())
    for _ in range(2):
        got = []
        verified.subscribe(got.append, got.append)
        assert got == log


CASES = {
    "a log without its first event": (lambda: numbered(simple()), "a log begins with session_start"),
    "numbers that begin elsewhere": (lambda: numbered([e.SessionStart()], start=3), "expected seq 0"),
    "a second session start": (lambda: session(e.SessionStart()), "only at the beginning"),
    "another session's event": (
        lambda: numbered([e.SessionStart(), e.QueueChanged(origin=replace(MAIN, session_id="other"))]),
        "of session 'other'",
    ),
    "a custom event outside a run": (lambda: session(e.Custom("x")), "only inside a run"),
    "a handoff outside a run": (lambda: session(e.Handoff("a", "b")), "only inside a run"),
    "a reset inside a run": (lambda: session(e.AgentStart(), e.SessionReset()), "only between runs"),
    "an event of a run that isn't open": (lambda: session(e.TurnStart()), "no run 'r' of this path is open"),
    "a run without a turn": (lambda: session(e.AgentStart(), end()), "expected turn_start"),
    "a run inside a run": (
        lambda: session(e.AgentStart(), e.AgentStart(origin=replace(MAIN, run_id="r9"))),
        "another run is open",
    ),
    "a run without a path": (lambda: numbered([e.SessionStart(), e.AgentStart()], origin=e.Origin("s")), "expected a path"),
    "turns that don't count": (lambda: session(e.AgentStart(), e.TurnStart(1)), "expected turn 0"),
    "an empty message id": (lambda: session(e.AgentStart(), e.TurnStart(), *user(uid="")), "id that is not empty"),
    "a message id used twice": (lambda: session(e.AgentStart(), e.TurnStart(), *user(), *user()), "new in the session"),
    "an id of the history used again": (
        lambda: numbered([e.SessionStart(messages=(UserMessage("x", id="u1"),)), e.AgentStart(), e.TurnStart(), *user()]),
        "new in the session",
    ),
    "another message's end": (
        lambda: session(e.AgentStart(), e.TurnStart(), user()[0], user(uid="u2")[1]),
        "expected the end of message 'u1'",
    ),
    "an update of another message": (
        lambda: session(e.AgentStart(), e.TurnStart(), *answer("x")[:1], *answer("x", aid="a9")[1:]),
        "belongs to message 'a9'",
    ),
    "an input after the answer": (lambda: session(e.AgentStart(), e.TurnStart(), *answer("x"), *user()), "answer is complete"),
    "a turn that ends while it retries": (
        lambda: session(e.AgentStart(), e.TurnStart(), *attempt("x"), e.TurnEnd()),
        "will be asked again",
    ),
    "attempts that don't count": (
        lambda: session(e.AgentStart(), e.TurnStart(), *attempt("x", number=2)),
        "expected attempt 1, not 2",
    ),
    "a call without an id": (lambda: session(e.AgentStart(), *with_tools("")), "expected an id for its call of add"),
    "a call id used twice": (lambda: session(e.AgentStart(), *with_tools("c1", "c1")), "call ids that are new"),
    "a call nobody asked for": (
        lambda: session(e.AgentStart(), *with_tools("c1")[:5], *tool("c7")),
        "asked for no such call",
    ),
    "calls that start out of order": (
        lambda: session(e.AgentStart(), *with_tools("c1", "c2")[:5], *tool("c2"), *tool("c1")),
        "call order",
    ),
    "a call that starts twice": (
        lambda: session(e.AgentStart(), *with_tools("c1", between=tool("c1"))),
        "has started before",
    ),
    "an update after the end": (
        lambda: session(e.AgentStart(), *with_tools("c1", between=[e.ToolUpdate("c1", "add")])),
        "is not open",
    ),
    "a call that changes its name": (
        lambda: session(e.AgentStart(), *with_tools("c1")[:5], e.ToolStart("c1", "add"), e.ToolEnd("c1", "mul")),
        "started as 'add'",
    ),
    "a result before the last end": (
        lambda: session(e.AgentStart(), *with_tools("c1")[:5], e.ToolStart("c1", "add"), *result()),
        "still open: c1",
    ),
    "results out of call order": (
        lambda: session(e.AgentStart(), *with_tools("c1", "c2", results=[*result("c2", "t2"), *result("c1", "t1")])),
        "expected the result of 'c1'",
    ),
    "a result that is missing": (
        lambda: session(e.AgentStart(), *with_tools("c1", "c2", results=result("c1"))),
        "result of 'c2'",
    ),
    "a second result of a call": (
        lambda: session(e.AgentStart(), *with_tools("c1", results=[*result("c1"), *result("c1", "t2")])),
        "no more results",
    ),
    "a turn that ends with open calls": (
        lambda: session(e.AgentStart(), *with_tools("c1")[:5], e.ToolStart("c1", "add"), e.TurnEnd(call_message("c1"))),
        "expected tool_end of c1",
    ),
    "a turn end without its results": (
        lambda: session(e.AgentStart(), *with_tools("c1")[:-1], e.TurnEnd(call_message("c1"))),
        "expected tool_results",
    ),
    "a turn end with another answer": (
        lambda: session(e.AgentStart(), e.TurnStart(), *answer("x"), e.TurnEnd(AssistantMessage(id="zz"))),
        "expected message 'a1' in it",
    ),
    "a turn end with an answer there was not": (
        lambda: session(e.AgentStart(), e.TurnStart(), *user(), e.TurnEnd(AssistantMessage(id="zz"))),
        "has no answer",
    ),
    "results of an interrupted batch": (
        lambda: session(e.AgentStart(), *with_tools("c1", "c2", interrupted=("c1",))),
        "wait for the resumed run",
    ),
    "a call of a broken answer that runs": (
        lambda: session(
            e.AgentStart(),
            e.TurnStart(),
            *answer(e.ToolCallStart("c1", "add"), stop="error"),
            *tool("c1", result=ToolResult("4")),
        ),
        "ended with 'error'",
    ),
    "an interrupt without a question": (
        lambda: session(e.AgentStart(), *with_tools("c1", results=[], interrupted=("c1",)), e.Interrupted(())),
        "at least one interrupt",
    ),
    "an interrupted outcome without an interrupt": (
        lambda: session(*run_of(*with_tools("c1"), outcome="interrupted")),
        "interrupted did not come",
    ),
    "an interrupt that the outcome doesn't tell": (
        lambda: session(
            *run_of(
                *with_tools("c1", results=[], interrupted=("c1",)), e.Interrupted((e.Interrupt("i", "?"),)), outcome="completed"
            )
        ),
        "interrupted came",
    ),
    "messages that the run did not append": (
        lambda: session(*run_of(*with_tools("c1"), messages=())),
        "exactly the messages",
    ),
    "an answer to an interrupt that never was": (
        lambda: session(*simple(), *run_of(e.TurnStart(), e.TurnEnd(), resumes=2)),
        "which 2 is not",
    ),
    "a tool in the first turn of a run that answers nothing": (
        lambda: session(e.AgentStart(), e.TurnStart(), *tool()),
        "the turn has begun",
    ),
    "a resumed call that waits for nothing": (
        lambda: session(
            *run_of(
                *with_tools("c1", results=[], interrupted=("c1",)), e.Interrupted((e.Interrupt("i", "?"),)), outcome="interrupted"
            ),
            e.AgentStart(resumes=10),
            e.TurnStart(),
            *tool("c5"),
        ),
        "waits for a resumed run",
    ),
    "a child outside a call": (
        lambda: session(e.AgentStart(), e.TurnStart(), e.AgentStart(origin=CHILD)),
        "which is not open",
    ),
    "a child of another call": (
        lambda: session(
            e.AgentStart(), *with_tools("c1")[:5], e.ToolStart("c1", "add"), e.AgentStart(origin=replace(CHILD, call_id="c2"))
        ),
        "call 'c2', which is not open",
    ),
    "a child that outlives its call": (
        lambda: session(
            e.AgentStart(), *with_tools("c1")[:5], e.ToolStart("c1", "add"), e.AgentStart(origin=CHILD), e.ToolEnd("c1", "add")
        ),
        "run of main.expert is open inside the call",
    ),
    "a child after its parent": (
        lambda: session(*simple(), e.AgentStart(origin=CHILD)),
        "stands between tool_start and tool_end",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_it_is_an_error(name):
    events, match = CASES[name]
    fails(events(), match)


def test_an_event_without_a_number_belongs_to_no_log():
    fails([replace(event, seq=-1) for event in numbered(simple())], "when it enters the log", joined=True)


def test_a_run_by_itself_is_exactly_one_run():
    one = numbered(simple())
    ops.check_run(one)
    for events, match in [
        ([], "before the run"),
        (one[:-1], "ended inside the run"),
        ([*one, *numbered(simple("u2", "a2"), start=len(one))], "nothing may follow agent_end"),
        (numbered([e.SessionStart(), *simple()]), "only at the beginning"),
        (numbered([e.QueueChanged(), *simple()]), "only inside a run"),
    ]:
        with pytest.raises(GrammarError, match=match):
            ops.check_run(events)


def test_a_stream_joined_between_runs_may_resume_calls_it_never_saw():
    run = [
        e.AgentStart(resumes=3),
        e.TurnStart(),
        *tool("c2"),
        *result("c1", "t1"),
        *result("c2", "t2"),
        e.TurnEnd(call_message("c1", "c2"), (result("c1", "t1")[0].message, result("c2", "t2")[0].message)),
    ]
    messages = [event.message for event in run if isinstance(event, e.MessageEnd)]
    ops.check(numbered([*run, end(*messages)], start=40), joined=True)


def test_an_interrupted_call_may_be_settled_as_an_error_within_its_run():
    settled = with_tools("c1", "c2", interrupted=("c1",), between=tool("c1", is_error=True))
    ops.check(session(*run_of(*settled, outcome="aborted")))


def test_a_result_that_the_application_brings_is_an_input():
    said = answer("thanks")
    ops.check(session(*run_of(e.TurnStart(), *result("from-the-page"), *said, e.TurnEnd(said[-1].message))))


def test_updates_read_one_by_one_are_placed_without_their_message():
    log = session(*simple())
    ops.check([replace(x, message=None) if isinstance(x, e.MessageUpdate) else x for x in log])


def test_every_sign_is_in_the_table():
    assert {sign for after in TABLE.values() for sign in after} == set(Sign)
