"""Streams of three wires, cut and damaged anywhere: one terminal event, no crash, nothing lost that came before."""
# ruff: noqa: E501 - one answer, one line

import model_streams as streams
import pytest
from hypothesis import given
from hypothesis import strategies as st
from models import test_anthropic_stream as an
from models import test_gemini_stream as gm
from models import test_openai_responses_stream as rs

from rxagent.events.model import ModelError, ResponseEnd
from rxagent.models.anthropic_stream import AnthropicDecoder
from rxagent.models.gemini_stream import GeminiDecoder
from rxagent.models.openai_responses_stream import ResponsesDecoder

THINK = (
    an.block(0, type="thinking", thinking="", signature=""),
    an.delta(0, thinking="hm ö"),
    an.delta(0, signature="S"),
    an.stop(0),
)
ANSWERS = {
    "anthropic": (AnthropicDecoder, streams.sse(an.start(), *THINK, *an.TEXT, *an.CALL, an.ended("tool_use"), an.END)),
    "openai-responses": (
        ResponsesDecoder,
        streams.sse(rs.added(0, **rs.reasoning()), rs.summary("hm ö"), rs.done(0, **rs.reasoning("hm ö", encrypted_content="E")), rs.text("Hel", 1), rs.text("lo", 1), *rs.CALL, rs.completed()),
    ),
    "gemini": (GeminiDecoder, streams.sse(gm.chunk(gm.thought("hm ö")), gm.chunk(gm.text("Hel")), gm.chunk(gm.text("lo")), gm.chunk(gm.call()), gm.STOP)),
}  # fmt: skip
wires = pytest.mark.parametrize("wire", ANSWERS)


def texts(events):
    return "".join(e.text for e in events if e.type == "text_delta"), "".join(
        e.text for e in events if e.type == "thinking_delta"
    )


def terminals(events):
    return [e for e in events if isinstance(e, ResponseEnd | ModelError)]


@wires
@given(st.data())
def test_a_cut_answer_is_an_error_that_keeps_what_came_before(wire, data):
    make, chunks = ANSWERS[wire]
    whole = b"".join(chunks)
    at = data.draw(st.integers(0, len(whole) - 1))
    full = texts(streams.events_of(make, chunks))
    events = streams.events_of(make, [whole[:at]], data.draw(st.sampled_from([0, 1, 7])))
    assert len(terminals(events)) == 1
    cut = texts(events)
    assert full[0].startswith(cut[0])
    assert full[1].startswith(cut[1])
    complete, seen = [], 0
    for chunk in chunks:
        seen += len(chunk)
        if seen <= at:
            complete.append(chunk)
    arrived = texts(streams.events_of(make, complete))
    assert cut[0].startswith(arrived[0])
    assert cut[1].startswith(arrived[1])
    if at < len(whole.rstrip()):
        assert isinstance(events[-1], ModelError)
        assert events[-1].retryable


@wires
@given(st.data())
def test_damaged_bytes_are_no_crash_and_end_once(wire, data):
    make, chunks = ANSWERS[wire]
    raw = bytearray(b"".join(chunks))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(raw) - 1))
        match data.draw(st.sampled_from(["drop", "double", "flip"])):
            case "drop":
                del raw[at]
            case "double":
                raw.insert(at, raw[at])
            case _:
                raw[at] ^= 1 << data.draw(st.integers(0, 7))
    events = streams.events_of(make, [bytes(raw)], data.draw(st.sampled_from([0, 1, 7])))
    assert len(terminals(events)) == 1
    assert terminals(events)[0] is events[-1]
    streams.shared_cases.as_actual(events)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from(["", "x", "0"]),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["type", "text", "id", "index"]), inner, max_size=2)
    ),
    max_leaves=5,
)


def places(value, path=()):
    yield path
    if isinstance(value, dict):
        for key, nested in value.items():
            yield from places(nested, (*path, key))
    elif isinstance(value, list):
        for number, nested in enumerate(value):
            yield from places(nested, (*path, number))


def with_value(value, path, new):
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = with_value(value[path[0]], path[1:], new)
    return copy


EVENTS = {
    "anthropic": (AnthropicDecoder, [an.start(), *THINK, *an.TEXT, *an.CALL, an.ended("tool_use"), an.END]),
    "openai-responses": (ResponsesDecoder, [*rs.TEXT, rs.summary("a"), *rs.CALL, rs.completed(rs.reasoning("a", encrypted_content="E"), rs.message(), rs.call())]),
    "gemini": (GeminiDecoder, [gm.chunk(gm.thought("a")), gm.chunk(gm.text("b", thoughtSignature="S")), gm.chunk(gm.call(id="i")), gm.STOP]),
}  # fmt: skip


@wires
@given(st.data())
def test_a_field_of_any_type_is_no_crash(wire, data):
    make, events = EVENTS[wire]
    events = [*events]
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(events) - 1))
        path = data.draw(st.sampled_from(sorted(places(events[at]), key=repr)))
        events[at] = with_value(events[at], path, data.draw(VALUES))
    found = streams.events_of(make, streams.sse(*events))
    assert len(terminals(found)) == 1
    streams.shared_cases.as_actual(found)


@wires
@given(st.data())
def test_a_lost_or_repeated_event_is_no_crash(wire, data):
    make, events = EVENTS[wire]
    order = data.draw(st.lists(st.integers(0, len(events) - 1), max_size=len(events) + 3))
    found = streams.events_of(make, streams.sse(*[events[i] for i in order]))
    assert len(terminals(found)) == 1
    streams.shared_cases.as_actual(found)
