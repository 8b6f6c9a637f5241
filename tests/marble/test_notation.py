"""Lines of marbles: what they say, and what is refused where."""

from itertools import pairwise

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from rxagent.marble.block import Block
from rxagent.marble.faults import MarbleSyntaxError, Place
from rxagent.marble.markdown import read_document
from rxagent.marble.notation import duration, read_line, write_line
from rxagent.marble.reading import read_block
from rxagent.marble.vocabulary import WORDS

HERE = Place("specs/x.md", 10)
MS = 1_000_000


def marks(text: str, frame_ms: int = 10) -> list[tuple[int, str]]:
    return [(mark.at // MS, mark.symbol) for mark in read_line(text, frame_ms * MS, HERE).marks]


def block(text: str) -> Block:
    return read_block(text, HERE, "title", WORDS)


def refusal(text: str) -> MarbleSyntaxError | None:
    try:
        block(text)
    except MarbleSyntaxError as error:
        return error
    return None


def fault(text: str) -> str:
    with pytest.raises(MarbleSyntaxError) as caught:
        block(text)
    return str(caught.value)


def test_every_column_is_one_frame():
    assert marks("-a-b|") == [(10, "a"), (30, "b"), (40, "|")]
    assert marks("ab#", 5) == [(0, "a"), (5, "b"), (10, "#")]


def test_dots_and_blanks_align_and_take_no_time():
    assert marks("..-a  -.b") == [(10, "a"), (30, "b")]


def test_a_gap_takes_the_time_it_says():
    assert marks("a 250ms b") == [(0, "a"), (260, "b")]
    assert marks("-1.5s-a") == [(1520, "a")]
    assert marks("2m a") == [(120_000, "a")]
    assert marks("1h|") == [(3_600_000, "|")]


def test_digits_that_are_no_duration_are_symbols():
    assert marks("1-2") == [(0, "1"), (20, "2")]
    assert marks("5x") == [(0, "5"), (10, "x")]


@given(
    st.dictionaries(st.integers(0, 400), st.sampled_from("abcXYZ089"), max_size=12),
    st.sampled_from([1, 5, 10, 1000]),
)
def test_what_is_written_is_read_back(events: dict[int, str], frame_ms: int):
    frame = frame_ms * MS
    wanted = [(at * frame, symbol) for at, symbol in sorted(events.items())]
    line = write_line(wanted, frame)
    assert [(m.at, m.symbol) for m in read_line(line, frame, HERE).marks] == wanted


@given(st.lists(st.tuples(st.integers(0, 10**9), st.sampled_from("ab")), max_size=6))
def test_instants_off_the_grid_are_written_exactly(events: list[tuple[int, str]]):
    frame = 10 * MS
    wanted = sorted(events)
    assume(all(b[0] - a[0] >= frame for a, b in pairwise(wanted)))
    wanted = [(at // 1000 * 1000, symbol) for at, symbol in wanted]
    assume(all(b[0] - a[0] >= frame for a, b in pairwise(wanted)))
    line = write_line(wanted, frame)
    assert [(m.at, m.symbol) for m in read_line(line, frame, HERE).marks] == wanted


def test_two_instants_within_a_frame_can_not_be_written():
    with pytest.raises(ValueError, match="two symbols"):
        write_line([(0, "a"), (5 * MS, "b")], 10 * MS)


@pytest.mark.parametrize("text", ["10", "ms", "10 ms", "1.ms", "-5ms", "10kg"])
def test_a_malformed_duration_is_refused(text: str):
    with pytest.raises(MarbleSyntaxError, match=r"specs/x.md:10:1: .* is not a duration"):
        duration(text, HERE)


GOOD = "source -a|\n> source\nout -a|\nwhere a = 1"


def test_a_block_knows_its_parts():
    parsed = block(
        "scale 5ms\nuntil 2s\nsource --^a|\nagain a|\nagain.2 aa|\nobserve -^--!\n> source.pipe(\n>   x)\n"
        "out -a|\nsource ^=!\nstate turn=2\nleft nothing\nwhere a = 1"
    )
    assert (parsed.scale, parsed.until) == (5 * MS, 2000 * MS)
    assert parsed.input_names == ("source", "again")
    assert (parsed.inputs["source"].hot, parsed.inputs["source"].zero) == (True, 10 * MS)
    assert not parsed.inputs["again.2"].hot
    assert (parsed.windows[""].subscribe, parsed.windows[""].dispose) == (5 * MS, 20 * MS)
    assert parsed.expression == "source.pipe(\nx)"
    assert [(e.name, e.of_input) for e in parsed.expected] == [("out", False), ("source", True)]
    assert parsed.left is not None
    assert parsed.left[0] == "nothing"


def test_several_events_at_one_instant_are_one_symbol():
    parsed = block("source -a|\n> source\nout -G\nwhere a = 1  G = a |")
    assert parsed.expand("G") == ("a", "|")


def test_an_unused_entry_of_the_legend_is_known():
    assert [e.symbol for e in block(GOOD + "  b = 2").unused()] == ["b"]
    assert block("source -a|\n> source\nout -G\nwhere a = 1  G = a |").unused() == []


@pytest.mark.parametrize(
    ("text", "where", "what"),
    [
        ("source -(ab)|\n> source\nout -a\nwhere a = 1", "10:9", "stray parenthesis '('"),
        ("source -q|\n> source\nout -|", "10:9", "unknown symbol 'q'"),
        ("source -a|a\n> source\nout -|\nwhere a = 1", "10:11", "'a' stands after the end of source"),
        ("source -a#|\n> source\nout -|\nwhere a = 1", "10:11", "'|' stands after the end of source"),
        ("source ^-^|\n> source\nout -|", "10:10", "a second ^"),
        ("source --|\n> source\nout -|\nsource ^-^", "13:10", "a second ^"),
        ("source --|\n> source\nout -|\nsource ^!!", "13:10", "'!' stands after the end (!)"),
        ("source -!\n> source\nout -|", "10:9", "belongs below the expression"),
        ("source -|\n> source\nout -|\nout -|", "13:1", "out is already expected"),
        ("source -|\nsource -|\n> source\nout -|", "11:1", "source is already given at specs/x.md:10:8"),
        ("source -|\n> source\nout -^|", "12:6", "'^' has no meaning in out"),
        ("source -a|\n> source\nout -|\nsource a\nwhere a = 1", "13:8", "'a' has no meaning in source"),
        ("source -|\nout -|", "10:1", "no expression"),
        ("> source.\nout -|", "10:", "not a Python expression"),
        ("> a +* b\nout -|", "10:", "not a Python expression"),
        (">\nout -|", "10:1", "an empty expression"),
        ("> a\nout -|\n> b", "12:1", "a second expression"),
        ("scale 10\n> a\nout -|", "10:7", "is not a duration"),
        ("scale 0ms\n> a\nout -|", "10:7", "more than nothing"),
        ("scale 1ms\nscale 2ms\n> a\nout -|", "11:1", "a second scale"),
        ("until soon\n> a\nout -|", "10:7", "is not a duration"),
        ("> a\nscale 1ms\nout -|", "11:1", "scale belongs above the expression"),
        ("state x=1\n> a\nout -|", "10:1", "state belongs below the expression"),
        ("left nothing\n> a", "10:1", "left belongs below the expression"),
        ("> a\nstate", "11:6", "expected  field=value"),
        ("> a\nleft", "11:1", "expected one  left  line"),
        ("a-b -|\n> x\nout -|", "10:1", "'a-b' is not a name"),
        ("a.0 -|\n> x\nout -|", "10:1", "'a.0' is not a name"),
        ("a -|\na.3 -|\n> x\nout -|", "11:5", "a.3 is given without a.2"),
        ("a.2 -|\n> x\nout -|", "10:5", "a.2 is given without a"),
        ("a ^-|\na.2 -|\n> x\nout -|", "11:5", "a is hot"),
        ("a -|\na.2 ^-|\n> x\nout -|", "11:1", "a.2 is hot"),
        ("> x\nout.2 -|", "11:1", "out is no input"),
        ("  a -|\n> x\nout -|", "10:1", "an indented line continues the legend only"),
        ("observe --!^\n> x\nout -|", "10:9", "disposed (!) before it is subscribed"),
        ("observe -a\n> x\nout -|\nwhere a = 1", "10:10", "has no meaning here; expected - ^ !"),
        ("from x import\n> x\nout -|", "10:1", "not an import"),
        (GOOD + "  a = 2", "13:14", "'a' already stands for something, at specs/x.md:13:7"),
        (GOOD + "  b =", "13:17", "nothing stands behind b ="),
        (GOOD + "  b = (1", "13:18", "not a Python expression"),
        (GOOD + '  b = text "x', "13:", "is not closed"),
        (GOOD + "  b = ~ /(/", "13:", "not a regular expression"),
        (GOOD + "  b = ~ abc", "13:", "expected a pattern"),
        (GOOD + "  - = 1", "13:14", "'-' can't be given a meaning"),
        (GOOD + "  | = 1", "13:14", "'|' can't be given a meaning"),
        (GOOD + "  G = a a  H = G a", "13:23", "'G' is itself a group"),
        (GOOD + "  G = | a", "13:14", "after the end"),
        (GOOD + "  x = number", "13:18", "'x' is no digit"),
        (GOOD + "  G = q a", "13:18", "unknown symbol 'q'"),
        (GOOD + "  b = txt 'x'", "13:", "did you mean the word text?"),
        (GOOD + "  b = 1 c = 2", "13:", "two blanks or more apart"),
        (GOOD + "  b = text 'x' c = 2", "13:", "two blanks or more apart"),
        ("source -G\n> source\nout -a|\nwhere a = 1  b = 2  G = a b\nwhere nonsense", "14:7", "expected  symbol = value"),
    ],
)
def test_malformed_blocks_are_refused_at_their_place(text: str, where: str, what: str):
    message = fault(text)
    assert message.startswith(f"specs/x.md:{where}")
    assert what in message


@given(st.text(alphabet="ab-|#^!=.> \n()0123ms~/'\"[*G", max_size=80))
def test_no_text_makes_the_parser_crash(text: str):
    refused = refusal(text)
    assert refused is None or (refused.place.file == "specs/x.md" and refused.place.line >= 10)


def test_blocks_are_found_under_every_kind_of_heading_and_whatever_their_fences_say_besides():
    text = """\
Underlined
==========

```marble title="a"
> a
```

## Part :: one

~~~ marble
> b
~~~

Inner
---

```marble
> c
```

* no heading
---

```marbles
> d
```
"""
    document = read_document(text, "x.md")
    assert [(b.title, b.section, b.text) for b in document.blocks] == [
        ("Underlined", "", "> a"),
        ("Part : one", "Underlined", "> b"),
        ("Inner", "Underlined", "> c"),
    ]
