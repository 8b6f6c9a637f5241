"""Reading the next event by the last one gives what parsing it would give."""

import json
import re

import model_streams as streams
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rxagent.events import model as m
from rxagent.models.body import BodyReader
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


def three_ways(raw):
    """Event by event, all at once, and with every event parsed."""
    chunks = [f"data: {text}\n\n".encode("utf-8", "surrogatepass") for text in raw] + [b"data: [DONE]\n\n"]
    whole = [b"".join(chunks)]
    return streams.events_of(ChatDecoder, chunks), streams.events_of(ChatDecoder, whole), streams.events_of(Plain, chunks)


@given(st.lists(events(), max_size=12))
def test_any_stream_reads_the_same_however_it_is_read(raw):
    fast, at_once, plain = three_ways(raw)
    assert fast == at_once == plain


@given(st.lists(events(), max_size=4), st.lists(st.integers(0, 3), max_size=40))
def test_events_that_come_again_read_the_same_however_they_are_read(kinds, order):
    fast, at_once, plain = three_ways([kinds[i] for i in order if i < len(kinds)])
    assert fast == at_once == plain


@given(st.lists(TEXT, max_size=12), st.booleans())
def test_any_text_reads_the_same_however_it_is_read(texts, ascii_only):
    raw = [json.dumps({"choices": [{"index": 0, "delta": {"content": text}}]}, ensure_ascii=ascii_only) for text in texts]
    fast, at_once, plain = three_ways(raw)
    assert fast == at_once == plain
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
    assert one(stencil, data) == text
    assert stencil.read("other", data) == ([], 0)


def one(stencil, data):
    texts, at = stencil.read("", data)
    assert at == (len(data) if texts else 0)
    return texts[0] if texts else None


EVENT = b'{"id":1,"content":"%b","n":2}'
SEPARATOR = b"\n\ndata: "


@pytest.mark.parametrize(
    ("data", "texts"),
    [
        ([EVENT % b"b", EVENT % b"c", EVENT % rb"\n"], ["b", "c", "\n"]),
        ([EVENT % b"b", b"[DONE]"], ["b"]),
        ([b"[DONE]", EVENT % b"b"], []),
        ([EVENT % b"b", b'{"id":2,"content":"c","n":2}', EVENT % b"d"], ["b"]),
        ([EVENT % b"b", b'{"id":1,"content":"c","n":3}'], ["b"]),
        ([EVENT % b"b", b'{"id":1,"content":"c","n":3}', EVENT % b"d"], ["b"]),
        ([EVENT % b"b", b'{"id":1,"content":"c","n":3}', b'{"id":1,"content":"c","n":2'], ["b"]),
        ([EVENT % b"b", EVENT % b"", EVENT % b"d"], ["b"]),
        ([EVENT % b"", EVENT % b"d"], []),
        ([EVENT % b"b", EVENT % b"\xff", EVENT % b"d"], ["b"]),
        ([EVENT % b"\xc3", EVENT % b"\xa9"], []),
        ([EVENT % b"b", EVENT % rb"\ud83d", EVENT % b"d"], ["b"]),
        ([EVENT % b"b", EVENT % b'","x":"', EVENT % b"d"], ["b"]),
        ([EVENT % b"b" for _ in range(2000)], ["b"] * 2000),
    ],
)
def test_many_events_are_read_up_to_the_first_that_differs(data, texts):
    stencil = learnt(EVENT % b"a", "a")
    joined = SEPARATOR.join(data)
    read, at = [], 0
    while (more := stencil.read("", joined, at, SEPARATOR))[0]:
        read, at = read + more[0], more[1]
    assert read == texts
    assert at == min(len(joined), sum(len(one) + len(SEPARATOR) for one in data[: len(texts)]))
    for size, text in enumerate(texts[:3]):  # and one by one
        assert one(stencil, data[size]) == text


def test_a_running_number_may_differ_too():
    stencil = learnt(b'{"sequence_number": 9,"content":"a","n":2}', "a")
    assert one(stencil, b'{"sequence_number": 10,"content":"b","n":2}') == "b"
    assert one(stencil, b'{"sequence_number": x,"content":"b","n":2}') is None
    assert one(stencil, b'{"sequence_number": 10,"other":"b","n":2}') is None
    many = SEPARATOR.join([b'{"sequence_number": %d,"content":"b%d","n":2}' % (n, n) for n in range(9, 12)] + [b"[DONE]"])
    assert stencil.read("", many, 0, SEPARATOR) == (["b9", "b10", "b11"], many.index(b"[DONE]"))


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


def told(*deltas):
    return [json.dumps({"choices": [{"index": 0, "delta": delta}]}) for delta in deltas]


def argued(index, arguments, **named):
    return {"tool_calls": [{"index": index, **named, "function": {**named, "arguments": arguments}}]}


@pytest.mark.parametrize(
    "raw",
    [
        # broken JSON of a server that doesn't escape a newline and frames it well
        [*told({"content": "a"}, {"content": "a"}), '{"choices": [{"index": 0, "delta": {"content": "b\ndata: c"}}]}'],
        # two chunks in one event, whose first says more than the text of the second
        [
            json.dumps([{"choices": [{"delta": argued(0, "1", id="a", name="f")}]}, {"choices": [{"delta": {"content": text}}]}])
            for text in "uvwx"
        ],
        # a call that is begun by the next one's start, and a placeholder before its arguments
        told(argued(0, "", id="a", name="f"), argued(1, "", id="b", name="f"), argued(0, "{}"), argued(0, '{"n":1}')),
    ],
)
def test_streams_of_odd_servers_read_the_same_however_they_are_read(raw):
    fast, at_once, plain = three_ways(raw)
    assert fast == at_once == plain


def test_arguments_after_a_placeholder_are_the_calls():
    chunks = [*told(argued(0, "", id="a", name="f"), argued(1, "", id="b", name="f"), argued(0, "{}"), argued(0, '{"n":1}'))]
    read = streams.answer(ChatDecoder, [f"data: {raw}\n\n".encode() for raw in chunks] + [b"data: [DONE]\n\n"])
    assert [call["arguments"] for call in read["tool_calls"]] == [{"n": 1}, {}]


@pytest.mark.parametrize("pad", range(0, 90, 9))
def test_nothing_is_read_after_a_failure(pad):
    more = f"data: {told({'content': 'a'})[0]}\n\n".encode()
    body = more * 300 + b'dxta: {"n":1}\n\n:' + b"x" * pad + b"\n\n" + more * 900
    reader = BodyReader(ChatDecoder(), 1 << 24)
    read = [event for at in range(0, len(body), 1 << 15) for event in reader.feed(body[at : at + (1 << 15)])]
    assert isinstance(read[-1], m.ModelError)
    assert sum(isinstance(event, m.ModelError) for event in read) == 1
