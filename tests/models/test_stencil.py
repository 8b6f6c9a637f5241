"""Reading the next event by the last one gives what parsing it would give."""

import json
import re

import model_streams as streams
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rxagent.events import model as m
from rxagent.models.openai_chat_stream import ChatDecoder
from rxagent.models.stencil import Stencil

ODD = ['"', "\\", '","x":"', "}", "data: ", "[DONE]", '"content":"', "\\u0041", "é", "\U0001f600", "{", ""]
TEXT = st.text(max_size=12) | st.sampled_from(ODD)
FIELDS = st.dictionaries(
    st.sampled_from(["id", "created", "sequence_number", "content", "usage"]), st.none() | st.integers(0, 3) | TEXT, max_size=2
)


class Plain(ChatDecoder):
    """Parses every event."""

    def same(self, *args):
        pass


@st.composite
def events(draw):
    kind = draw(st.sampled_from(["text", "text", "text", "args", "both", "role", "finish", "reasoning", "thinking"]))
    delta = {
        "text": lambda: {"content": draw(TEXT)},
        "args": lambda: {"tool_calls": [{"index": draw(st.integers(0, 1)), "function": {"arguments": draw(TEXT)}}]},
        "both": lambda: {"content": draw(TEXT), "tool_calls": [{"index": 0, "id": "a", "function": {"name": "f"}}]},
        "role": lambda: {"role": "assistant", "content": draw(TEXT), "reasoning_content": None},
        "reasoning": lambda: {"reasoning": draw(TEXT)},
        "thinking": lambda: {"reasoning_content": draw(TEXT), "content": draw(st.sampled_from([None, "", "x"]))},
        "finish": dict,
    }[kind]()
    finish = "stop" if kind == "finish" else None
    value = {**draw(FIELDS), "choices": [{"index": draw(st.sampled_from([0, 0, 0, 1])), "delta": delta, "finish_reason": finish}]}
    return json.dumps(value, ensure_ascii=draw(st.booleans()), separators=draw(st.sampled_from([(",", ":"), (", ", ": ")])))


def both_ways(raw):
    chunks = [f"data: {text}\n\n".encode("utf-8", "surrogatepass") for text in raw] + [b"data: [DONE]\n\n"]
    return streams.events_of(ChatDecoder, chunks), streams.events_of(Plain, chunks)


@given(st.lists(events(), max_size=12))
def test_any_stream_reads_the_same_both_ways(raw):
    fast, plain = both_ways(raw)
    assert fast == plain


@given(st.lists(TEXT, max_size=12), st.booleans())
def test_any_text_reads_the_same_both_ways(texts, ascii_only):
    raw = [json.dumps({"choices": [{"index": 0, "delta": {"content": text}}]}, ensure_ascii=ascii_only) for text in texts]
    fast, plain = both_ways(raw)
    assert fast == plain
    assert "".join(e.text for e in fast if isinstance(e, m.TextDelta)) == "".join(texts)


KEY = re.compile(rb'"content"\s*:\s*"')


def learnt(data, text):
    stencil = Stencil()
    assert stencil.learn("", data, KEY, text)
    return stencil


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b'{"id":1,"content":"b","n":2}', "b"),
        (b'{"id":1,"content":"a longer one","n":2}', "a longer one"),
        (rb'{"id":1,"content":"\"q\" \\ \n","n":2}', '"q" \\ \n'),
        (rb'{"id":1,"content":"\ud83d\ude00","n":2}', "\U0001f600"),
        ('{"id":1,"content":"é","n":2}'.encode(), "é"),
        (b'{"id":1,"content":"","n":2}', None),
        (b'{"id":2,"content":"b","n":2}', None),
        (b'{"id":1,"content":"b","n":3}', None),
        (b'{"id":1,"content":"b","x":"c","n":2}', None),
        (b'{"id":1,"content":null,"n":2}', None),
        (rb'{"id":1,"content":"\ud83d","n":2}', None),
        (b'{"id":1,"content":"\xff","n":2}', None),
        (b'{"id":1,"content":"a\\","n":2}', None),
        (b'{"id":1,"content":"","n":2', None),
        (b"", None),
    ],
)
def test_only_the_text_may_differ(data, text):
    stencil = learnt(b'{"id":1,"content":"a","n":2}', "a")
    assert stencil.read("", data) == text
    assert stencil.read("other", data) is None


def test_a_running_number_may_differ_too():
    stencil = learnt(b'{"sequence_number": 9,"content":"a","n":2}', "a")
    assert stencil.read("", b'{"sequence_number": 10,"content":"b","n":2}') == "b"
    assert stencil.read("", b'{"sequence_number": x,"content":"b","n":2}') is None
    assert stencil.read("", b'{"sequence_number": 10,"other":"b","n":2}') is None


@pytest.mark.parametrize(
    ("data", "text"),
    [(b'{"content":"a","x":{"content":"a"}}', "a"), (b'{"content":"b"}', "a"), (b'{"text":"a"}', "a"), (b'{"content":"a', "a")],
)
def test_where_the_text_stands_must_be_sure(data, text):
    assert not Stencil().learn("", data, KEY, text)


def test_events_that_all_differ_are_not_learnt_from_for_ever():
    stencil = Stencil()
    learnt_from = [stencil.learn("", b'{"id":%d,"content":"a"}' % n, KEY, "a") for n in range(100)]
    assert any(learnt_from[:5])
    assert not any(learnt_from[50:])
