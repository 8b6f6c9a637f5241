"""What a run keeps for late subscribers equals what it sent, and needs no object for each delta."""

import gc
import sys
import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rxagent.engine import Run, Session
from rxagent.engine.kept import Kept
from rxagent.events import (
    AgentEnd,
    AgentStart,
    Draft,
    MessageStart,
    MessageUpdate,
    Origin,
    TextEnd,
    TextStart,
    ThinkingDelta,
    ToolCallDelta,
    ToolCallStart,
    TurnStart,
    message_update,
    text_delta,
)
from rxagent.signals import Signal
from rxagent.state import AgentState

ORIGINS = (Origin("s", "r1", "a", ("a",)), Origin("s", "r2", "b", ("a", "b"), "c1"))
deltas = st.one_of(
    st.builds(text_delta, st.text(max_size=3), st.integers(0, 1)),
    st.builds(ThinkingDelta, st.text(max_size=3), st.integers(0, 1)),
    st.builds(ToolCallDelta, st.text(max_size=3), st.integers(0, 1)),
    st.builds(TextStart, st.integers(0, 1)),
    st.builds(TextEnd, st.integers(0, 1)),
    st.just(ToolCallStart("c", "t", 0)),
)
steps = st.lists(st.one_of(st.tuples(st.integers(0, 1), deltas), st.sampled_from(["other", "gap", "new answer"])), max_size=40)


@given(steps)
def test_what_is_read_equals_what_was_kept(steps):
    drafts = [Draft("m0", 1.0, "model"), Draft("m1", 1.0, "model")]
    sent, kept, seq = [], Kept(), 0
    for step in steps:
        if step == "gap":
            seq += 1
            continue
        if step == "new answer":
            drafts[0] = Draft("m2", 2.0, "model")
            event = MessageStart(drafts[0].message(), origin=ORIGINS[0], seq=seq)
        elif step == "other":
            event = TurnStart(seq, origin=ORIGINS[0], seq=seq)
        else:
            speaker, delta = step
            event = message_update(delta, drafts[speaker].add(delta), seq, ORIGINS[speaker])
        seq += 1
        sent.append(event)
        kept.append(event)
    assert len(kept) == len(sent)
    for index in (*range(len(sent)), *range(-len(sent), 0)):
        assert told(kept[index]) == told(sent[index])
    assert [told(event) for event in kept] == [told(event) for event in sent]


def told(event):
    if isinstance(event, MessageUpdate):
        return event.delta, event.message.content, event.message.text, event.seq, event.origin
    return event


def test_there_is_no_event_beyond_the_last():
    kept = Kept()
    kept.append(TurnStart(0))
    for index in (1, -2):
        with pytest.raises(IndexError):
            kept[index]


def test_a_thousand_deltas_leave_no_object_for_each():
    draft, kept = Draft("m", 1.0, "model"), Kept()
    gc.collect()
    before = len(gc.get_objects())
    for seq in range(1_000):
        delta = text_delta("word ", 0)
        kept.append(message_update(delta, draft.add(delta), seq, ORIGINS[0]))
    assert len(gc.get_objects()) - before < 50
    assert kept[999].message.text == "word " * 1_000


@pytest.fixture
def switching():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def test_threads_that_subscribe_in_the_middle_of_deltas_miss_none_and_see_none_twice(switching):
    count = 5_000
    session = Session(AgentState(("agent",)))
    origin = session.origin("run", "agent")
    run = Run(origin, Signal(), None)
    session.recorder = run.on_next
    seen = []

    def join():
        for _ in range(15):
            seqs = []
            seen.append(seqs)
            subscription = run.subscribe(lambda event, seqs=seqs: seqs.append(event.seq))
            time.sleep(0.0005)
            if len(seen) % 3:  # some leave again, so that now and then nobody listens
                subscription.dispose()

    threads = [threading.Thread(target=join) for _ in range(3)]
    session.publish(AgentStart(origin=origin))
    draft = Draft("m", 1.0, "model")
    for thread in threads:
        thread.start()
    for n in range(count):
        session.update(text_delta(f"{n} ", 0), draft.add(text_delta(f"{n} ", 0)), origin)
    for thread in threads:
        thread.join()
    session.publish(AgentEnd(origin=origin))
    for seqs in seen:
        assert seqs == list(range(len(seqs)))
    assert sum(len(seqs) == count + 2 for seqs in seen) >= 10
    assert [event.seq for event in run.values] == list(range(count + 2))
