"""Every shared case with its bytes cut anywhere and damaged: never a hang, a crash, a lost delta, a call that came broken."""

import json
import random

import pytest
import shared_cases as shared

from rxagent.events import model as m
from rxagent.models.anthropic_stream import AnthropicDecoder
from rxagent.models.body import BodyReader
from rxagent.models.gemini_stream import GeminiDecoder
from rxagent.models.openai_chat_stream import ChatDecoder
from rxagent.models.openai_responses_stream import ResponsesDecoder

DECODERS = {
    "openai-chat": ChatDecoder,
    "openai-responses": ResponsesDecoder,
    "anthropic": AnthropicDecoder,
    "gemini": GeminiDecoder,
}
CASES = shared.all_cases()
STREAMS = [case_id for case_id, case in CASES.items() if case["http"]["status"] == 200]
RUNS = 60


def bytes_of(case_id):
    return b"".join(shared.module("serve").expand(CASES[case_id]["http"]["body_chunks"]))


def play(case_id, chunks, failure=None):
    reader = BodyReader(DECODERS[CASES[case_id]["api"]](), 1 << 24)
    events = []
    for chunk in chunks:
        events += reader.feed(chunk)
        if reader.done:
            return events
    return [*events, *reader.broken(failure)]


def pieces(raw, rng, most=12):
    edges = sorted(rng.randrange(len(raw) + 1) for _ in range(rng.randrange(most)))
    return [raw[a:b] for a, b in zip([0, *edges], [*edges, len(raw)], strict=True)]


def terminal(events):
    ends = [e for e in events if isinstance(e, m.ResponseEnd | m.ModelError)]
    assert len(ends) == 1
    assert events[-1] is ends[0]
    return ends[0]


def text_of(events):
    return "".join(e.text for e in events if isinstance(e, m.TextDelta))


@pytest.mark.parametrize("case_id", STREAMS)
def test_cuts_change_nothing(case_id):
    raw, rng = bytes_of(case_id), random.Random(case_id)
    whole = play(case_id, [raw])
    for _ in range(RUNS):
        assert play(case_id, pieces(raw, rng)) == whole


@pytest.mark.parametrize("case_id", STREAMS)
@pytest.mark.parametrize("failure", [None, m.ModelError("transport", "reset", retryable=True)])
def test_a_stream_that_ends_anywhere_keeps_its_beginning(case_id, failure):
    raw, rng = bytes_of(case_id), random.Random(case_id)
    whole = play(case_id, [raw])
    for _ in range(RUNS):
        events = play(case_id, pieces(raw[: rng.randrange(len(raw) + 1)], rng), failure)
        end = terminal(events)
        assert text_of(whole).startswith(text_of(events))
        if isinstance(end, m.ModelError) and events[:-1]:
            assert events[:-1] == whole[: len(events) - 1] or end.retryable
        if isinstance(end, m.ResponseEnd) and end.stop_reason == "tool_use":
            # only what came whole is run
            assert shared.as_actual(events)["tool_calls"] == shared.as_actual(whole)["tool_calls"]


def damage(raw, rng):
    at = rng.randrange(len(raw))
    kind = rng.choice(("drop", "double", "flip"))
    if kind == "drop":
        return raw[:at] + raw[at + 1 :]
    if kind == "double":
        return raw[: at + 1] + raw[at:]
    return raw[:at] + bytes([raw[at] ^ (1 << rng.randrange(8))]) + raw[at + 1 :]


@pytest.mark.parametrize("case_id", STREAMS)
def test_one_damaged_byte_neither_crashes_nor_loses_what_came_before(case_id):
    raw, rng = bytes_of(case_id), random.Random(case_id)
    for _ in range(RUNS * 5):
        broken = damage(raw, rng)
        events = play(case_id, pieces(broken, rng))
        terminal(events)
        shared.as_actual(events)
        same = next((i for i, (a, b) in enumerate(zip(raw, broken, strict=False)) if a != b), len(raw))
        before = [e for chunk in [raw[:same].rpartition(b"\n\n")[0]] for e in play(case_id, [chunk + b"\n\n"] if chunk else [])]
        assert text_of(events).startswith(text_of([e for e in before if isinstance(e, m.TextDelta)]))


def whole_events(raw):
    return [event for event in raw.replace(b"\r\n", b"\n").split(b"\n\n") if event.strip()]


@pytest.mark.parametrize("case_id", [c for c in STREAMS if b"function" in bytes_of(c) or b"tool_use" in bytes_of(c)])
def test_no_call_is_run_from_a_frame_that_is_no_json(case_id):
    raw, rng = bytes_of(case_id), random.Random(case_id)
    events = whole_events(raw)
    for _ in range(RUNS):
        at = rng.randrange(len(events))
        data = events[at].rpartition(b"data:")[2]
        if data.strip() == b"[DONE]" or not data.strip().startswith(b"{"):
            continue
        keep = rng.randrange(2, len(data))  # a blank frame is a keep-alive
        broken = [*events[:at], events[at][: len(events[at]) - len(data) + keep], *events[at + 1 :]]
        try:
            json.loads(broken[at].rpartition(b"data:")[2])
        except ValueError:
            end = terminal(play(case_id, [b"\n\n".join(broken) + b"\n\n"]))
            assert isinstance(end, m.ModelError) or end.stop_reason != "tool_use" or at > last_of_the_answer(events)


def last_of_the_answer(events):
    finish = [i for i, e in enumerate(events) if b"finish_reason" in e and b'"finish_reason":null' not in e]
    return finish[-1] if finish else len(events) - 2


def test_any_bytes_give_one_terminal_event():
    rng = random.Random(7)
    alphabet = [b"data: ", b"data:", b"event: error", b"[DONE]", b"null", b'"error"', b'{"choices":[{"delta":{"content":"a"}}]}']
    alphabet += [b"\n", b"\n\n", b"\r", b"{", b"}", b'"', b":", b"<", b"[", b"]"]
    alphabet += [b"\xf0\x9f", b"\x1f\x8b", b"\x78\x9c", b"\xef\xbb\xbf", b"\x00"]
    for make in DECODERS.values():
        for _ in range(400):
            raw = b"".join(rng.choice(alphabet) for _ in range(rng.randrange(20)))
            reader, events = BodyReader(make(), 1 << 20), []
            for chunk in pieces(raw, rng):
                events += reader.feed(chunk)
                if reader.done:
                    break
            else:
                events += reader.end()
            terminal(events)
