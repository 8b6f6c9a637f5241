"""lines, sentences, markdown_blocks: the same whatever the cuts, early where certain, never wrong."""

import re
from itertools import pairwise

import pytest
import reactivex as rx
from hypothesis import assume, example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from operator_harness import END, answer, attempt, numbered, play
from strategies import logs

from rxagent import events as e
from rxagent import operators as ops
from rxagent.errors import UsageError
from rxagent.flow import Hub, hold, publish
from rxagent.messages import AssistantMessage

READERS = {"lines": ops.lines, "sentences": ops.sentences, "markdown_blocks": ops.markdown_blocks}
every = pytest.mark.parametrize("name", READERS)
WORDS = st.text(alphabet="ab .!?\n\r。」1)-#`~>*_$<é", max_size=40)


@st.composite
def pieces(draw, texts=WORDS):
    """A text and the pieces it was cut into."""
    text = draw(texts)
    cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=8)))
    return text, [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]


# -- all three


@every
def test_an_error_comes_after_what_was_kept_back(name):
    boom, got = ValueError("boom"), []
    rx.concat(rx.of("kept"), rx.throw(boom)).pipe(READERS[name]()).subscribe(got.append, got.append)
    assert got[-1] is boom
    assert "kept" in repr(got[-2])


@every
def test_a_hold_reaches_the_source(name):
    source, releases = Hub[str](), []
    source.pipe(READERS[name]()).subscribe(lambda _: releases.append(hold()))
    pending = publish(source.on_next, "one. \n\n")
    assert pending is not None
    assert pending.held
    for release in releases:
        release()
    assert not pending.held


@every
@given(log=logs())
def test_events_are_read_as_their_text_with_an_end_after_each_answer(name, log):
    answers = [x for x in log if isinstance(x, e.MessageEnd) and isinstance(x.message, AssistantMessage) and not x.origin.call_id]
    assume(all(isinstance(x, str) for x in play(log, ops.text_deltas())))
    got = [x for x in play(log, READERS[name]())[:-1] if not isinstance(x, ops.Withdrawn)]
    if name == "markdown_blocks":
        expected = "".join(x.message.text for x in answers)
        assert (got[-1].text if got else "") == expected
    else:
        expected = [item for x in answers for item in play([x.message.text], READERS[name]())[:-1]]
        if not any(isinstance(x, e.ModelRetry) for x in log):
            assert got == expected


# -- lines


@given(pieces())
def test_lines_are_those_of_the_whole_text(cut):
    text, parts = cut
    whole = text.split("\n")
    expected = [line.removesuffix("\r") for line in whole[:-1]] + ([whole[-1]] if whole[-1] else [])
    assert play(parts, ops.lines()) == [*expected, END]


def test_a_line_comes_with_its_end_and_not_later():
    got, source = [], Hub[str]()
    source.pipe(ops.lines()).subscribe(got.append)
    source.on_next("a")
    assert got == []
    source.on_next("b\nc")
    assert got == ["ab"]


def test_withdrawn_text_that_was_no_line_yet_vanishes_unseen():
    log = numbered([*attempt("he", "llo"), *answer("hi", "\nyou", aid="a2")])
    assert play(log, ops.lines()) == ["hi", "you", END]


def test_withdrawn_lines_are_told_with_their_length():
    got = play(numbered([*attempt("one\ntwo\nth"), *answer("1\n", aid="a2")]), ops.lines())
    assert got[:2] == ["one", "two"]
    assert got[2].characters == len("one\ntwo\n")
    assert got[3:] == ["1", END]


def test_a_line_that_was_begun_before_the_withdrawn_text_is_kept():
    assert play(["be", "gun", ops.Withdrawn("x", 3), "tter\n"], ops.lines()) == ["better", END]


# -- sentences


@given(pieces())
def test_sentences_are_the_same_whatever_the_cuts(cut):
    text, parts = cut
    assert play(parts, ops.sentences()) == play([text], ops.sentences())


@given(pieces(), st.integers(1, 50))
def test_sentences_lose_nothing_and_are_never_too_long(cut, longest):
    text, parts = cut
    got = play(parts, ops.sentences(longest=longest))[:-1]
    assert re.sub(r"\s", "", "".join(got)) == re.sub(r"\s", "", text)
    assert all(s and s == s.strip() and len(s) <= longest for s in got)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Hi there. How are you? Fine!", ["Hi there.", "How are you?", "Fine!"]),
        ("Dr. J. Smith paid 3.50, e.g. for tea. Good.", ["Dr. J. Smith paid 3.50, e.g. for tea.", "Good."]),
        ("You and I. Then we left.", ["You and I.", "Then we left."]),
        ("Wait... what?! “Yes.” (Really.) Ok", ["Wait...", "what?!", "“Yes.”", "(Really.)", "Ok"]),
        ("你好。「是！」再见", ["你好。", "「是！」", "再见"]),
        ("# Title\nText follows", ["# Title", "Text follows"]),
        ("Do this:\n1. First\n2. Second\n\nDone", ["Do this:", "1. First", "2. Second", "Done"]),
        ("a line\nand its second", ["a line\nand its second"]),
        ("**Bold end.** Next", ["**Bold end.**", "Next"]),
        ("see v1.2.3 at http://a.b/c?d=e.f now", ["see v1.2.3 at http://a.b/c?d=e.f now"]),
        ("  \n \n", []),
    ],
)
def test_sentences_end_where_a_speaker_would_pause(text, expected):
    assert play([text], ops.sentences())[:-1] == expected
    assert play(list(text), ops.sentences())[:-1] == expected


def test_a_sentence_comes_as_soon_as_the_space_after_it_does():
    got, source = [], Hub[str]()
    source.pipe(ops.sentences()).subscribe(got.append)
    for piece in ("Hi.", " "):
        source.on_next(piece)
    assert got == ["Hi."]


def test_the_end_of_an_answer_ends_its_sentence():
    got, source = [], Hub[e.AnyEvent]()
    source.pipe(ops.sentences()).subscribe(got.append)
    for event in numbered(answer("Let me check.")):
        source.on_next(event)
    assert got == ["Let me check."]


def test_what_never_ends_is_cut_at_a_space():
    assert play(["one two three four"], ops.sentences(longest=10))[:-1] == ["one two", "three four"]


def test_a_withdrawn_sentence_that_was_said_is_told():
    got = play(numbered([*attempt("Said. Un"), *answer("Again.", aid="a2")]), ops.sentences())
    assert got[0] == "Said."
    assert isinstance(got[1], ops.Withdrawn)
    assert got[2:] == ["Again.", END]


def test_sentences_need_a_length():
    with pytest.raises(UsageError, match="longest"):
        ops.sentences(longest=0)


# -- markdown


PLAIN = ["", "", "text", "more *text*", "# head", "- item", "  cont", "    deep", "1. one", "2) two", "```", "```py", "~~~"]
QUOTES = [
    "> quote",
    "| a | b |",
    "|---|---|",
    "---",
    "===",
    "* x",
    "  - sub",
    "    ```",
    "   ```",
    "\ttab",
    "- ```",
    "-",
    "> - q",
]
HTML = ["<!-- c", "-->", "<pre>", "</pre>", "<div>", "<b>", "a <i>b</i>", "+ <!-- x", "- <div>", "</b>", "<?php"]
ODD = [
    "````",
    "10. ten",
    "   para",
    "```x`y",
    "> ```",
    "  ```",
    "      six",
    "- - -",
    "-   wide",
    "-      far",
    "-\ttab",
    "* - 1. deep",
]
LINES = st.sampled_from([*PLAIN, *QUOTES, *HTML, *ODD])
MARKDOWN = st.lists(LINES, max_size=14).map("\n".join)


def html(text):
    return MarkdownIt("commonmark").enable("table").render(text)


def final(parts):
    got = play(parts, ops.markdown_blocks())[:-1]
    return list(got[-1].blocks) if got else []


@given(MARKDOWN)
@example("- a\n\n- b\n\npara\n")
@example("text\n```py\n\nx\n```\nmore\n")
@example("    code\n\n    more\n\ntext")
@example("- ```\n\n  x\n  ```\n\nafter")
def test_blocks_drawn_one_by_one_look_like_the_whole(text):
    blocks = final([text])
    assert "".join(blocks) == text
    assert "".join(html(block) for block in blocks) == html(text)


@given(pieces(MARKDOWN))
def test_blocks_are_the_same_whatever_the_cuts(cut):
    text, parts = cut
    assert final(parts) == final([text])


@given(pieces(MARKDOWN))
def test_every_value_is_the_text_so_far_and_never_changes_afterwards(cut):
    _, parts = cut
    source, values, seen = Hub[str](), [], []
    source.pipe(ops.markdown_blocks()).subscribe(lambda v: (values.append(v), seen.append((v.text, list(v.blocks)))))
    so_far = ""
    for part in parts:
        source.on_next(part)
        so_far += part
        if part:
            assert values[-1].text == so_far
    source.on_completed()
    assert [(v.text, list(v.blocks)) for v in values] == seen
    for a, b in pairwise(values):
        assert list(b.blocks)[: len(a.blocks)] == list(a.blocks)


@given(pieces(MARKDOWN), pieces(MARKDOWN), st.data())
def test_withdrawn_text_is_gone_from_the_next_value(before, void, data):
    text, parts = before
    gone, lost = void
    remark = [ops.Withdrawn("!", len(gone))] if gone else []
    got = play([*parts, *lost, *remark, "x"], ops.markdown_blocks())[:-1]
    assert got[-1].text == text + "x"
    assert list(got[-1].blocks) == final([text + "x"])


def test_paragraphs_fences_and_headings_are_finished_at_once():
    got = play(["# Hi\n", "so", "me\n", "\n", "```py\n\na\n", "```\n", "- a\n\n", "- b\n"], ops.markdown_blocks())
    assert [(len(v.blocks), v.tail) for v in got[:-1]] == [
        (1, ""),
        (1, "so"),
        (1, "some\n"),
        (2, ""),
        (2, "```py\n\na\n"),
        (3, ""),
        (3, "- a\n\n"),
        (3, "- a\n\n- b\n"),
        (4, ""),
    ]


def test_an_answer_that_is_asked_again_shows_once():
    got = play(numbered([*attempt("one\n\ntw"), *answer("1\n\n2", aid="a2")]), ops.markdown_blocks())
    assert got[-2].text == "1\n\n2"


@pytest.mark.parametrize("unit", [".", "\n", "a ", "- ", "`", "<!--", "。", "1", "\n ", "# ", "<a "])
@every
def test_long_runs_of_anything_are_read_the_same_in_pieces(name, unit):
    text = unit * 20_000
    whole = play([text], READERS[name]())[:-1]
    piecewise = play([text[i : i + 7] for i in range(0, len(text), 7)], READERS[name]())[:-1]
    if name == "markdown_blocks":
        assert piecewise[-1] == whole[-1]
        assert whole[-1].text == text
    else:
        assert piecewise == whole
