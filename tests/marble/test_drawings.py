"""Drawings: every block of the specification, and recorded runs; nothing overlaps, nothing leaves the page."""

import asyncio
import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from rxagent import Agent, Limits, Retry, ToolContext, tool
from rxagent.errors import CorruptLog
from rxagent.events import AnyEvent, ModelError, to_json
from rxagent.marble.draw import draw_file
from rxagent.marble.loop import run_virtual
from rxagent.marble.svg import width_of
from rxagent.marble.timeline import timeline
from rxagent.marble.trace import read_run, trace_html, trace_svg
from rxagent.messages import ThinkingPart, ToolCall
from rxagent.models import ScriptedModel

SPECS = sorted((Path(__file__).parents[2] / "marbles").glob("*.md"))
DRAWN = [(path.name, title, svg) for path in SPECS for title, svg in draw_file(path.read_text(encoding="utf-8"), path.name)]

Box = tuple[float, float, float, float]


def boxes(svg: str) -> tuple[Box, list[tuple[str, Box]]]:
    """The page, and each text with the room it takes."""
    root = ET.fromstring(svg)
    texts: list[tuple[str, Box]] = []
    for text in root.iter("{http://www.w3.org/2000/svg}text"):
        words, size = text.text or "", float(text.get("font-size", "12"))
        width = width_of(words.rstrip(), size)
        x, y = float(text.get("x", "0")), float(text.get("y", "0"))
        left = x - {"start": 0.0, "middle": width / 2, "end": width}[text.get("text-anchor", "start")]
        if words.strip():
            texts.append((words, (left, y - size * 0.8, left + width, y + size * 0.2)))
    return (0.0, 0.0, float(root.get("width", "0")), float(root.get("height", "0"))), texts


def faults(svg: str) -> list[str]:
    page, texts = boxes(svg)
    found = [f"{words!r} leaves the page" for words, b in texts if b[0] < 0 or b[2] > page[2] + 0.5 or b[3] > page[3]]
    for n, (words, a) in enumerate(texts):
        for other, b in texts[n + 1 :]:
            if a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]:
                found.append(f"{words!r} overlaps {other!r}")
    return found


@pytest.mark.parametrize(("file", "title", "svg"), DRAWN, ids=[f"{f}: {t}" for f, t, _ in DRAWN])
def test_a_block_is_drawn_without_overlaps(file: str, title: str, svg: str):
    assert faults(svg) == []
    assert title in "".join(words for words, _ in boxes(svg)[1])


def test_long_lines_wrap_and_long_waits_fold():
    line = "a--b" * 60
    (_, svg), *_ = draw_file(f"# T\n```marble\ns {line} 3s a|\n> s\nout {line} 3s a|\nwhere ab = symbol\n```\n", "x.md")
    (_, _, width, height), texts = boxes(svg)
    assert width < 1200
    assert height > 400
    assert any("3s" in words for words, _ in texts)
    assert faults(svg) == []


def test_a_line_that_has_ended_is_not_drawn_in_further_rows():
    block = "# T\n```marble\ns -a|\n> s.pipe(rxops.delay(1))\nout " + "a" * 60 + "|\nwhere a = symbol\n```"
    (_, svg), *_ = draw_file(block, "x.md")
    words = [w for w, _ in boxes(svg)[1]]
    assert (words.count("s"), words.count("out")) == (1, 2)


def test_every_symbol_and_every_word_of_the_legend_is_drawn():
    (_, svg), *_ = draw_file(
        "# T\n```marble\ns -a-b#\n> s\nout -a-b#\nwhere a = [1, '<&>']  b = text 'hi'  # = KeyError\n```", "x.md"
    )
    words = [w for w, _ in boxes(svg)[1]]
    assert {"a", "b", "[1, '<&>']", "text 'hi'", "KeyError", "s", "out"} <= set(words)


# -- traces --------------------------------------------------------------------------------------


@tool
async def search(query: str, ctx: ToolContext) -> str:
    """Search."""
    for n in range(3):
        await asyncio.sleep(0.15)
        ctx.update(f"{n} of 3")
    return f"results for {query}"


@tool
async def weather(city: str) -> str:
    """Weather."""
    await asyncio.sleep(0.25)
    if city == "Atlantis":
        raise ValueError("no such city")
    return "sunny"


def recorded(**options: object) -> list[AnyEvent]:
    turns = [
        [
            ThinkingPart("Three calls at once."),
            "Let me look.",
            ToolCall("a", "weather", {"city": "Paris"}),
            ToolCall("b", "weather", {"city": "Atlantis"}),
            ToolCall("c", "search", {"query": "the news " * 20}),
        ],
        ["Partial", ModelError("overloaded", "busy", retryable=True, retry_after=0.3)],
        "In Paris it is sunny. " * 20,
        "And more.",
    ]

    async def main() -> list[AnyEvent]:
        agent = Agent(ScriptedModel(turns, delay=0.01), tools=[search, weather], retry=Retry(), limits=Limits())
        lines: list[bytes] = []
        agent.events.subscribe(lambda event: lines.append(to_json(event)))
        run = agent.prompt("Weather and news")
        asyncio.get_running_loop().call_later(0.4, agent.follow_up, "more")
        await run
        return read_run(lines)

    return run_virtual(main())


def test_a_recorded_run_has_a_lane_for_each_thing_that_goes_on():
    line = timeline(recorded())
    lanes = {lane.name: lane for lane in line.lanes}
    assert list(lanes) == ["run", "turns", "thinking", "text", "weather", "weather 2", "search", "queue", "notes", "state"]
    assert [bar.label for bar in lanes["turns"].bars] == ["turn 0", "turn 1", "turn 2"]
    assert lanes["weather"].bars[0].label == "weather(city='Paris') → sunny"
    assert "no such city" in lanes["weather 2"].bars[0].label
    assert lanes["weather 2"].bars[0].colour != lanes["weather"].bars[0].colour
    assert lanes["run"].bars[0].label == "completed"
    assert any(bar.tip.startswith("withdrawn: Partial") for bar in lanes["text"].bars)
    assert [bar.label for bar in lanes["queue"].bars] == ["1 waiting"]
    assert any(bar.label.startswith("retry 1 in 0.3s: busy") for bar in lanes["notes"].bars)
    assert len(lanes["search"].ticks) == 3


def test_bars_of_a_lane_do_not_overlap_and_stay_on_the_page():
    line = timeline(recorded())
    for lane in line.lanes:
        for bar, following in zip(lane.bars, lane.bars[1:], strict=False):
            assert bar.x0 <= bar.x1 <= following.x0 + 5
        assert all(bar.x1 <= line.width for bar in lane.bars)


def test_a_trace_is_drawn_without_overlaps():
    assert faults(trace_svg(recorded(), "a run")) == []


def test_a_long_trace_wraps_and_a_page_scrolls():
    events = recorded()
    page, _ = boxes(trace_svg(events, "a run"))
    assert page[2] < 1400
    html = trace_html(events, "<run>")
    svg = html[html.index("<svg") : html.index("</svg>") + 6]
    assert boxes(svg)[0][2] == pytest.approx(timeline(events).width, abs=200)
    assert "&lt;run&gt;" in html
    assert not re.search(r"(?:src|href)=|https?://(?!www\.w3\.org/2000/svg)", html)  # self-contained


def test_the_rows_of_a_long_trace_are_of_one_width_and_hold_only_what_goes_on_in_them():
    svg = trace_svg(recorded(), "a run")
    names = [words for words, _ in boxes(svg)[1] if words in ("run", "turns", "text", "thinking", "search", "queue")]
    assert names.count("run") > 1
    assert names.count("thinking") < names.count("run")
    assert faults(svg) == []


def test_the_names_of_the_lanes_stay_in_view_when_a_page_scrolls():
    html = trace_html(recorded(), "run")
    names = html[html.index('<g id="names">') : html.index("</g>")]
    assert ">search<" in names
    assert html.index("</g>") < html.index("</svg>") < html.index('getElementById("names")')


def test_a_log_that_was_cut_is_drawn_as_far_as_it_goes():
    events = recorded()
    for cut in range(0, len(events), 7):
        assert faults(trace_svg(events[:cut])) == []


def test_a_line_that_is_no_event_is_named():
    with pytest.raises(CorruptLog, match="line 2"):
        read_run(['{"type": "turn_start", "turn": 0, "seq": 1}', "nonsense"])
