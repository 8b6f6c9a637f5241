"""Event streams however they are cut."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rxagent.models.sse import DamagedLine, EventTooLarge, SseDecoder

DATA = st.binary(max_size=30).filter(lambda b: not set(b) & {10, 13})
NAME = st.sampled_from(["", "", "message", "content_block_delta", "ünïcode"])
END = st.sampled_from([b"\n", b"\r\n", b"\r"])


def decode(chunks, cap=1 << 20):
    decoder, out = SseDecoder(cap), []
    for chunk in chunks:
        decoder.feed(chunk, out)
    decoder.end(out)
    return each(out)


def each(events):
    return [(name, one) for name, data, between in events for one in (data.split(between) if between else [data])]


def cut(raw, at):
    edges = [0, *sorted(at), len(raw)]
    return [raw[a:b] for a, b in itertools.pairwise(edges)]


@st.composite
def streams(draw):
    """Events, and their bytes in one of the many spellings."""
    events, raw = [], draw(st.sampled_from([b"", b"\xef\xbb\xbf"]))
    end = draw(END)
    for _ in range(draw(st.integers(0, 6))):
        name, lines = draw(NAME), draw(st.lists(DATA, min_size=1, max_size=3))
        # a line that ends with } before one that begins with { is two events; that has a test of its own
        lines = [line.replace(b"}", b"").replace(b"{", b"").replace(b"[DONE]", b"") for line in lines]
        events.append((name, b"\n".join(lines)))
        if name:
            raw += f"event: {name}".encode() + end
        for line in lines:
            raw += b"data:" + (b" " if line[:1] == b" " else draw(st.sampled_from([b"", b" "]))) + line + end
        raw += draw(st.sampled_from([b"", b": a comment" + end, b"id: 7" + end, b"retry: 5" + end])) + end
        raw += draw(st.sampled_from([b"", end, b":" + end + end]))
    return events, raw


@given(streams(), st.data())
def test_no_cut_changes_anything(stream, data):
    events, raw = stream
    at = data.draw(st.lists(st.integers(0, len(raw)), max_size=8))
    assert decode([raw]) == events
    assert decode(cut(raw, at)) == events
    assert decode([raw[i : i + 1] for i in range(len(raw))]) == events


def test_whole_events_and_pieces_mix():
    raw = b"data: 1\n\ndata: 2\n\nevent: e\ndata: 3\n\ndata: 4\ndata: 5\n\n: c\n\ndata: 6\n\n"
    expected = [("", b"1"), ("", b"2"), ("e", b"3"), ("", b"4\n5"), ("", b"6")]
    for size in range(1, len(raw) + 1):
        assert decode([raw[i : i + size] for i in range(0, len(raw), size)]) == expected


def test_json_after_json_is_another_event():
    assert decode([b'data: {"a":1}\ndata: {"b":2}\ndata: [DONE]\n\n']) == [("", b'{"a":1}'), ("", b'{"b":2}'), ("", b"[DONE]")]


def test_a_name_belongs_to_its_event_only():
    assert decode([b"event: a\n\ndata: 1\n\nevent: b\ndata: 2\n\ndata: 3\n\n"]) == [("", b"1"), ("b", b"2"), ("", b"3")]


def test_a_last_event_without_its_blank_line():
    assert decode([b"data: 1\n\ndata: 2\n"]) == [("", b"1"), ("", b"2")]
    assert decode([b"data: 1\n\ndata: 2"]) == [("", b"1"), ("", b"2")]


@pytest.mark.parametrize("size", [1, 7, 100_000])
def test_an_event_over_the_cap_is_refused_and_those_before_it_are_kept(size):
    raw = b"data: 1\n\ndata: " + b"x" * 2000 + b"\n\n"
    decoder, out = SseDecoder(1000), []
    with pytest.raises(EventTooLarge):
        for i in range(0, len(raw), size):
            decoder.feed(raw[i : i + size], out)
    assert each(out) == [("", b"1")]


def test_many_lines_of_one_event_count_together():
    with pytest.raises(EventTooLarge):
        decode([b"data: xxxxxxxxxx\n" * 200], cap=1000)


def test_many_small_events_in_one_read_are_no_large_one():
    assert len(decode([b"data: xxxxxxxxxx\n\n" * 200], cap=1000)) == 200


def test_a_changed_field_name_is_damage():
    for raw in (b'dat: {"a":1}\n\n', b'xata: {"a":1}\n\n', b'data; {"a":1}\n\n'):
        with pytest.raises(DamagedLine):
            decode([b"data: 1\n\n", raw])


def test_unknown_fields_without_data_are_skipped():
    assert decode([b"x-request-id: 5\nfoo\ndata: 1\n\n"]) == [("", b"1")]


def test_bare_json_over_many_lines_is_one_event():
    bare = b'{\n  "error": {\n    "code": 503,\n    "message": "no"\n  }\n}'
    raw = b"data: 1\n\n" + bare + b"\n\ndata: 2\n\n"
    for size in (1, 7, len(raw)):
        assert decode([raw[i : i + size] for i in range(0, len(raw), size)]) == [("", b"1"), ("", bare), ("", b"2")]


@pytest.mark.parametrize("width", [1, 7, 1000])
def test_streams_that_were_joined_have_byte_order_marks_inside(width):
    raw = b'\xef\xbb\xbfdata: {"n":1}\n\ndata: {"n":2}\n\n\xef\xbb\xbfdata: {"n":3}\n\n'
    assert decode([raw[i : i + width] for i in range(0, len(raw), width)]) == [("", b'{"n":%d}' % n) for n in (1, 2, 3)]
