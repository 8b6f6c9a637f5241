"""Playing and judging blocks: values, times, subscriptions, holds, leftovers, and what the report says."""

import asyncio

import pytest

from rxagent.marble.faults import MarbleSyntaxError, Place
from rxagent.marble.markdown import Fenced
from rxagent.marble.play import play
from rxagent.marble.reading import read_block
from rxagent.marble.update import CannotUpdate, updated_block, updated_text
from rxagent.marble.verdict import Verdict, judge, misaligned
from rxagent.marble.vocabulary import WORDS
from rxagent.testing.world import world


def judged(text: str) -> Verdict:
    block = read_block(text, Place("x.md", 1), "title", WORDS)
    return judge(block, play(block, world()))


def problems(text: str) -> str:
    return "\n".join(judged(text).problems)


def holds(text: str) -> bool:
    verdict = judged(text)
    assert verdict.problems == []
    return verdict.holds


SYMBOLS = "\nwhere abcde = symbol  ABC = symbol"


def test_a_cold_input_begins_when_it_is_subscribed():
    assert holds("a -a|\nb -b|\n> rx.concat(a, b)\nout -a-b|\na ^-!\nb ..^-!".replace("..^", "--^") + "\nwhere ab = symbol")


async def numbers():
    for n in (1, 2):
        await asyncio.sleep(0.01)
        yield n
    await asyncio.sleep(0.01)


def test_a_hot_input_goes_on_whoever_listens():
    assert holds("h a-^-b-c|\nobserve --^---!\n> h\nout ----c|\nh --^--!\nwhere abc = symbol")


def test_events_of_a_hot_input_before_time_zero_are_missed():
    assert holds("h ab-^-c|\n> h\nout --c|\nwhere abc = symbol")


def test_a_late_observer_of_an_ended_hot_input_gets_the_end():
    assert holds("h ^a|\nobserve ----^\n> h\nout ----|\nh ----G\nwhere a = 1  G = ^ !")


def test_numbered_lines_are_for_further_subscribers_and_the_last_line_repeats():
    assert holds("s a|\ns.2 b|\n> s.pipe(rxops.repeat(3))\nout abb|\ns ^!\ns.2 -^!\ns.3 --^!\nwhere ab = symbol")


def test_stock_time_operators_run_on_the_virtual_clock():
    assert holds("s -a-b----c|\n> s.pipe(rxops.debounce(0.03))\nout ------b--G\nwhere abc = symbol  G = c |")


def test_a_ten_minute_interval_is_cut_where_the_block_says():
    assert holds("scale 1m\nuntil 10m\n> rx.interval(120)\nout --0-1-2-3-4\nwhere 01234 = number")


def test_coroutines_and_async_iterators_can_be_observed():
    text = "> {'one': asyncio.sleep(0.03, 'x'), 'two': (await_ async for await_ in numbers())}\n"
    block = read_block(text + "one ---X\ntwo -12|\nwhere X = x |  12 = number  x = symbol", Place("x.md", 1), "", WORDS)
    assert judge(block, play(block, {**world(), "numbers": numbers})).problems == []


def test_an_error_is_compared_by_type_and_text():
    raising = "s a#\n> s\nout a#\nwhere a = 1  # = "
    assert holds(raising + "ValueError('boom')")
    assert holds("s a|\n> s.pipe(rxops.map(lambda _: 1 / 0))\nout #\nwhere a = 1  # = ZeroDivisionError")
    text = problems("s a|\n> s.pipe(rxops.map(lambda _: 1 / 0))\nout #\nwhere a = 1  # = ValueError")
    assert "wanted # (ValueError), got ZeroDivisionError: division by zero" in text


def test_a_difference_is_drawn_under_a_ruler_with_a_caret():
    text = problems("s -a-b|\n> s\nout -a--b|" + "\nwhere ab = symbol")
    assert text.splitlines() == [
        "x.md:3:1:",
        "            0ms",
        "            |....:",
        "out   want  -a--b|",
        "      got   -a-b|-",
        "               ^",
        "out at 30ms: nothing was wanted, but there came 'b' (it was wanted at 40ms, so it came 1 frame early)",
    ]


def test_an_unknown_value_is_named_below_the_drawing():
    text = problems("s -a|\n> s.pipe(rxops.map(lambda _: {'k': 1}))\nout -a|\nwhere a = 1")
    assert "got   -k|" in text
    assert "k = {'k': 1}" in text
    assert "out at 10ms: wanted a (1), got {'k': 1}" in text


def test_the_right_events_in_the_wrong_order_are_called_that():
    text = problems("s -G|\n> s\nout -H|\nwhere a = 1  b = 2  G = a b  H = b a")
    assert "the right events in another order" in text


def test_long_quiet_stretches_are_folded():
    text = problems("s a 2s b|\n> s\nout a 3s b|\nwhere ab = symbol")
    assert any("2s" in line and line.strip().startswith("got") for line in text.splitlines())
    assert max(map(len, text.splitlines())) < 130


def test_one_is_not_true_and_text_is_not_a_number():
    assert not judged("s a|\n> s.pipe(rxops.map(lambda _: True))\nout a|\nwhere a = 1").holds
    assert not judged("s a|\n> s.pipe(rxops.map(lambda _: '1'))\nout a|\nwhere a = 1").holds


TOOL_END = (
    "s a|\n> s.pipe(rxops.map(lambda _: events.ToolEnd('c1', 'add', {'a': 2}, messages.ToolResult('4'))))\nout x|\n"
    "where a = 1  x = "
)


@pytest.mark.parametrize(
    "term",
    [
        "tool_end 4",
        "tool_end add 4",
        "tool_end '4'",
        "tool_end call_id=c1",
        "tool_end ~ /^4$/",
        "tool_end result ~ /4/",
        "tool_end add result ~ /4/",
        "tool_end * is_error=False",
        "tool_end args.a=2",
        "tool_end add 4 call_id=*",
        "result 4",
        "*",
        "~ /ToolEnd/",
    ],
)
def test_a_partial_match_accepts_what_it_names(term: str):
    assert holds(TOOL_END + term)


@pytest.mark.parametrize(
    "term",
    [
        "tool_end 5",
        "tool_end sub 4",
        "tool_start add",
        "tool_end is_error=True",
        "tool_end call_id=c2",
        "result 5",
        "text '4'",
        "4",
    ],
)
def test_a_partial_match_accepts_nothing_else(term: str):
    assert not judged(TOOL_END + term).holds


def test_a_field_that_an_event_does_not_have_is_an_error():
    with pytest.raises(MarbleSyntaxError, match=r"x.md:4:14: tool_end has no field 'nonsense'; expected one of origin, call_id"):
        judged("s a|\n> s\nout x|\nwhere a = 1  x = tool_end 4 nonsense=1")


def test_a_call_is_matched_with_its_arguments():
    source = "s a|\n> s.pipe(rxops.map(lambda _: events.ToolStart('c1', 'add', {'a': 2, 'b': 3})))\nout x|\n"
    source += "where a = 1  x = tool_start "
    for good in ["add", "add(2, 3)", "add(a=2, b=3)", "add(2, b=3)", "add(b=3, a=2)"]:
        assert holds(source + good), good
    for bad in ["add(3, 2)", "add(2)", "add(a=2, b=4)", "add()x", "mul"]:
        try:
            assert not judged(source + bad).holds, bad
        except MarbleSyntaxError:
            assert bad == "add()x"


def test_a_pattern_can_not_stand_in_an_input():
    with pytest.raises(MarbleSyntaxError, match=r"x.md:1:3: a can't stand in an input"):
        judged("s a|\n> s\nout a|\nwhere a = *")


def test_a_pipeline_that_raises_is_shown_as_that():
    text = problems("s a|\n> s.pipe(nonsense)\nout a|\nwhere a = 1")
    assert "the pipeline raised" in text
    assert "NameError: name 'nonsense' is not defined" in text
    assert "rxagent/marble" not in text


def test_an_observer_that_raises_is_shown_with_its_own_frames():
    text = problems("s a|\n> s.pipe(rxops.do_action(on_next=lambda v: v.missing))\nout #\nwhere a = 1  # = AttributeError")
    assert text == ""  # do_action turns it into an error of the stream
    text = problems("s a|\n> rx.create(lambda o, _: s.subscribe(lambda v: v.missing))\nout a|\nwhere a = 1")
    assert "'int' object has no attribute 'missing'" in text
    assert "rxagent/marble" not in text


def test_an_expression_that_gives_no_stream_is_refused():
    assert "gives int; expected an Observable" in problems("> 3\nout a|\nwhere a = 1")


def test_a_name_that_nothing_has_is_an_error_with_the_known_ones():
    with pytest.raises(MarbleSyntaxError, match=r"x.md:3:1: nothing is called owt; expected one of out, s, text"):
        judged("s a|\n> s\nowt a|\nwhere a = 1")


def test_a_block_that_never_ends_is_cut_at_a_stated_time():
    text = problems("scale 10m\n> rx.interval(600)\nout -012345\nwhere 012345 = number")
    assert "the block never ended and was cut at 1h of virtual time" in text


def test_a_block_whose_clock_races_is_cut_too():
    assert "never ended and was cut at" in problems("> rx.interval(0.001)\nout 0\nwhere 0 = number")


async def racing():
    while True:
        await asyncio.sleep(0)


def test_a_block_in_which_no_time_passes_is_cut_and_says_so():
    block = read_block("> racing()\nout -|", Place("x.md", 1), "", WORDS)
    (problem,) = judge(block, play(block, {**world(), "racing": racing})).problems
    assert "the clock stands still at 0ms" in problem


def test_a_block_in_which_everything_waits_says_what_waits():
    text = problems("import asyncio\n> asyncio.Event().wait()\nout -a|\nwhere a = True")
    assert "nothing is left to happen after 0ms; still waiting" in text
    assert "Event.wait" in text


def test_what_is_left_over_fails_a_block_unless_it_says_so():
    leak = "s -a-b-c|\nobserve --!\n> rx.create(lambda o, _: (s.subscribe(o), None)[1])\nout -a\nwhere abc = symbol"
    assert "left over after everything was disposed: wanted nothing, got 3 timers, 1 subscription" in problems(leak)
    task = "import asyncio\ns a|\n> (asyncio.ensure_future(asyncio.sleep(9)), s)[1]\nout a|\nwhere a = 1"
    assert "wanted nothing, got 1 timer, 1 task" in problems(task)
    assert holds(task.replace("\nwhere", "\nleft 1 timer, 1 task\nwhere"))
    assert holds(task.replace("\nwhere", "\nleft anything\nwhere"))
    assert not judged(task.replace("\nwhere", "\nleft nothing\nwhere")).holds


def test_a_producer_held_by_its_consumer_shows_it():
    setup = (
        "import asyncio\nfrom rxagent.flow import hold\n"
        "s -a-b--c|\n> s.pipe(rxops.do_action(lambda _: asyncio.get_running_loop().call_later(0.03, hold())))\n"
    )
    assert holds(setup + "out -a--b--c--|\ns ^=========!\nwhere abc = symbol")


def test_the_final_state_is_asserted_by_path():
    state = "{'n': 1, 'list': [1, {'k': 'x'}]}"
    source = f"s a|\n> type('R', (rx.Observable,), {{'state': {state}}})(lambda o, _: s.subscribe(o))\nout a|\nstate "
    assert holds(source + "n=1  list[1].k=x\nwhere a = 1")
    assert holds(source + "list[1].k ~ /^x/  n=*\nwhere a = 1")
    assert "state: wanted n = 2, got 1" in problems(source + "n=2\nwhere a = 1")
    assert "there is no nope" in problems(source + "nope=2\nwhere a = 1")


def test_an_input_and_a_result_of_one_name_are_told_apart_by_an_error():
    with pytest.raises(MarbleSyntaxError, match=r"x.md:3:1: s is an input and a result"):
        judged("s a|\n> {'s': s}\ns ^!\nwhere a = 1")


def test_a_failure_that_no_line_is_about_fails_the_block():
    text = problems("s a#\n> {'one': s, 'two': s}\none a#\nwhere a = 1  # = KeyError('k')")
    assert text == "x.md:2:3: two failed at 10ms: KeyError: 'k'"


def test_a_block_that_expects_nothing_fails():
    assert "nothing is expected" in problems("s -|\n> s")


# -- update --------------------------------------------------------------------------------------


def mended(text: str) -> str:
    new = updated_block(judged(text))
    assert judged(new).problems == []
    return new


def test_update_rewrites_what_differs_and_keeps_the_rest():
    assert mended("s    -a-b|\n> s\nout  -a--b|   \ns    ^---!\nwhere ab = symbol") == (
        "s    -a-b|\n> s\nout  -a-b|\ns    ^---!\nwhere ab = symbol"
    )


def test_update_gives_symbols_to_new_values_and_groups():
    new = mended("s -a|\n> s.pipe(rxops.map(lambda _: 'hello'), rxops.take(1))\nout -a|\nwhere a = 1")
    assert new.endswith("out -G\nwhere a = 1\n         h = 'hello'   G = h |")


def test_update_fills_in_a_block_without_expectations():
    new = mended("s -a|\n> s.pipe(rxops.map(lambda _: [1, 2]))\nwhere a = 1")
    assert "out      -l|" in new or "out      -A|" in new or "out" in new


def test_update_describes_events_in_the_words_of_the_legend():
    new = mended("s -a|\n> s.pipe(rxops.map(lambda _: events.ToolStart('c', 'add', {'a': 1})))\nwhere a = 1")
    assert "= tool_start add" in new


def test_update_mends_errors():
    failing = "s a|\n> s.pipe(rxops.map(lambda _: 1 / 0))\nout a|\nwhere "
    error = r"# = ~ /ZeroDivisionError: division by zero/"
    assert mended(failing + "a = 1  # = ValueError('x')").endswith(f"out #\nwhere a = 1  {error}")
    assert mended(failing + "# = ValueError('x')  a = 1").endswith(f"out #\nwhere {error}  a = 1")
    assert mended(failing + "a = 1").endswith(f"out #\nwhere a = 1\n         {error}")


def test_an_unnamed_failure_is_the_failure_of_an_input_only():
    assert holds("s a#\n> s\nout a#\nwhere a = 1")
    assert not judged("s a|\n> s.pipe(rxops.map(lambda _: 1 / 0))\nout #\nwhere a = 1").holds


def test_update_refuses_what_it_can_not_write():
    fast = "s ab|\n> s.pipe(rxops.flat_map(lambda x: rx.timer(0.001, 0.002).pipe(rxops.take(2))))\nout a|\nwhere ab = symbol"
    with pytest.raises(CannotUpdate, match="two instants within one column of 10ms"):
        updated_block(judged(fast))
    with pytest.raises(CannotUpdate, match="not updated"):
        updated_block(judged("> 1 / 0\nout a|\nwhere a = 1"))


def test_update_aligns_an_input_that_is_drawn_elsewhere_than_where_it_begins():
    text = "a -a|\nb ....b|\n> rx.concat(a, b)\nout -ab|\nwhere ab = symbol"
    verdict = judged(text)
    assert verdict.holds
    assert [(given.name, begins) for given, begins in misaligned(verdict.block, verdict.played)] == [("b", 20_000_000)]
    assert updated_block(verdict) == text.replace("....b", "..b")


def test_nothing_is_said_of_alignment_where_a_gap_makes_columns_meaningless():
    verdict = judged("a a 250ms b|\nb ..........c|\n> rx.concat(a, b)\nout a 250ms bc|\nwhere abc = symbol")
    assert verdict.holds
    assert misaligned(verdict.block, verdict.played) == []


def test_update_leaves_the_rest_of_the_file_alone():
    text = "# T\r\n\r\n```marble\r\n> a\r\nout b\r\n```\r\n\r\nprose  \r\n"
    fenced = Fenced("T", Place("x.md", 4), "> a\nout b")
    assert updated_text(text, [(fenced, "> a\nout c\nwhere c = 1")]) == text.replace("out b\r\n", "out c\r\nwhere c = 1\r\n")


def test_a_bare_word_behind_the_end_of_a_tool_is_the_tools_name():
    ran = "model c|\nmodel.2 |\nadd R|\n> run('x', model=model, tools=[add])\ntools -@\n"
    legend = "where c = call add()  R = result 'sum'  s = tool_start add  @ = s r  r = "
    assert problems(ran + legend + "tool_end add") == ""
    assert problems(ran + legend + "tool_end sub") != ""
    assert problems(ran + legend + 'tool_end "sum"') == ""


def test_a_field_that_an_input_does_not_have_is_an_error_that_names_those_it_has():
    with pytest.raises(
        MarbleSyntaxError, match=r"x.md:1:7: a can't stand in an input: text has no field 'foo'; expected one of text"
    ):
        judged("model a|\n> model\nout a|\nwhere a = text 'He' foo=3")


def test_an_import_that_fails_is_shown_at_its_line_without_the_frames_of_the_plugin():
    with pytest.raises(MarbleSyntaxError, match=r"(?s)^x.md:1:1: ModuleNotFoundError: No module named 'no_such'") as caught:
        judged("from no_such import x\n> x\nout |")
    assert "play.py" not in str(caught.value)


@pytest.mark.parametrize(
    "expression",
    ["exit(3)", "source.pipe(rxops.map(lambda _: exit(3)))", "(asyncio.get_running_loop().call_soon(exit, 3), source)[1]"],
)
def test_code_that_exits_is_a_pipeline_that_raised(expression: str):
    verdict = judged(f"source a|\n> {expression}\nout a|\nwhere a = symbol")
    assert verdict.headline == "SystemExit: 3"
    assert "x.md:2:3: the pipeline raised" in verdict.problems[0]


def test_values_without_end_at_one_instant_are_cut_and_called_that():
    verdict = judged("> rx.repeat_value(1, -1)\nout 1\nwhere 1 = number")
    assert verdict.headline.startswith("the clock stands still at 0ms")
    assert "out gave 100000 values at once" in verdict.problems[0]


def test_update_keeps_a_blank_behind_the_name_of_an_empty_line():
    assert "\nout      -a|\n" in mended("source -a|\n> source\nout\nwhere a = symbol")


def test_update_of_a_failure_leaves_the_failing_input_as_it_is():
    text = mended("source a#\n> source.pipe(rxops.map(lambda _: 1 / 0))\nout a|\nwhere a = symbol")
    assert "# = ~ /ZeroDivisionError: division by zero/" in text
    assert holds(text)


def test_update_writes_no_address_of_an_object():
    text = mended("source a|\n> source.pipe(rxops.map(lambda _: object()))\nout a|\nwhere a = symbol")
    assert r"<object object at 0x\w+>" in text
    assert holds(text)


def test_a_refused_update_says_why_in_one_line():
    with pytest.raises(CannotUpdate, match=r"^x.md:1:1: not updated: the block never ended and was cut at 1000s[^\n]*$"):
        mended("> rx.interval(0.01)\nout |")
