"""The transcript's promises: what a frame costs, and that what streamed in looks like what was there all along."""

import asyncio

import pytest

pytest.importorskip("textual", reason="needs Textual: pip install 'rxagent[chat]'")

from chat_harness import run, talk, text_of
from hypothesis import given, settings
from hypothesis import strategies as st

from rxagent.chat.cells import BlockCell, Cell, NoticeCell, TailCell, UserCell
from rxagent.chat.look import DARK, LIGHT, Look
from rxagent.chat.text import clean, count, cut, one_line, seconds, words, wrapped
from rxagent.events.model import ResponseEnd, TextDelta

SECTION = """## Part {n}

Words of part {n}, enough of them to be wrapped in a window of eighty columns, as paragraphs are.

```python
def part_{n}():
    return {n}
```

| a | b |
|---|---|
| {n} | two |

"""
LOOK = Look(DARK, 80)


def texts(cell: Cell, look=LOOK):
    return [text_of(line) for line in cell.lines(look)]


def paced(text, piece=40):
    """A turn whose pieces come one per turn of the event loop."""

    async def turn(_):
        for at in range(0, len(text), piece):
            yield TextDelta(text[at : at + piece])
            await asyncio.sleep(0)
        yield ResponseEnd()

    return turn


def long_answer(sections):
    return "".join(SECTION.format(n=n) for n in range(1, sections + 1))


@run
async def test_a_finished_block_is_drawn_once_and_frames_draw_the_tail_alone():
    text = long_answer(60)
    async with talk([paced(text)], size=(90, 30)) as t:
        frames = []
        fold = t.app.story.play

        def play(events):
            fold(events)
            t.app.transcript.flush()
            frames.append(t.app.transcript.drawn)

        t.app.story.play = play
        await t.type("go")
        await t.until("Part 60")
        await t.idle()
        blocks = [cell for cell in t.app.transcript.cells if isinstance(cell, BlockCell)]
        assert len(blocks) == 60 * 4
        assert "".join(cell.source for cell in blocks) == text
        # every block once, each frame's open tail once, the prompt, the welcome and what little else there is
        assert t.app.transcript.drawn <= len(blocks) + 2 * len(frames) + 10


@run
async def test_a_flood_draws_a_window_at_a_time():
    text = long_answer(200)

    async def turn(_):
        for at in range(0, len(text), 10):
            yield TextDelta(text[at : at + 10])
        yield ResponseEnd()

    async with talk([turn], size=(90, 30)) as t:
        view, flush, most = t.app.transcript, t.app.transcript.flush, []

        def counted():
            before = view.drawn
            flush()
            most.append(view.drawn - before)

        view.flush = counted
        await t.type("go")
        await t.until("part_200")
        await t.idle()
        assert max(most) <= 20
        await t.until(lambda: not view._stale, timeout=60)
        assert all(cell.is_drawn(view._look) for cell in view.cells)
        assert sum(view._gap(cell) + cell.height for cell in view.cells) + 1 == view.virtual_size.height
        assert view.scroll_offset.y == view.max_scroll_y


@run
async def test_streamed_and_replayed_look_the_same():
    text = "Before.\n\n" + long_answer(3) + "- one\n- two\n\n> quoted\n\nthe end"
    async with talk([paced(text, 7)]) as t:
        await t.type("go")
        await t.until("the end")
        await t.idle()
        streamed = t.text
        await t.app.open(t.agent.session_id)
        await t.pilot.pause()
        assert t.text == streamed.partition("▌ go")[1] + streamed.partition("▌ go")[2]


@run
async def test_another_width_draws_the_window_first_and_keeps_the_readers_place():
    async with talk([long_answer(80)], size=(80, 24)) as t:
        await t.type("go")
        await t.until("part_80")
        await t.idle()
        view = t.app.transcript
        view.scroll_to(y=view.max_scroll_y // 2, animate=False, immediate=True)
        await t.pilot.pause()
        place = view._anchor()[0]
        drawn = view.drawn
        view._new_look(Look(DARK, 60))
        assert view.drawn - drawn < 40
        assert view._anchor()[0] is place
        await t.until(lambda: not view._stale)
        assert view._anchor()[0] is place
        assert all(cell.is_drawn(view._look) for cell in view.cells)
        heights = sum(view._gap(cell) + cell.height for cell in view.cells)
        assert view.virtual_size.height == heights + 1


@run
async def test_it_follows_the_end_until_the_reader_scrolls_away():
    async with talk([long_answer(20), paced(long_answer(20))], size=(80, 20)) as t:
        view = t.app.transcript
        await t.type("one")
        await t.until("part_20")
        await t.idle()
        assert view.follows
        assert view.scroll_offset.y == view.max_scroll_y
        t.app.prompt.put("two")
        await t.press("enter")
        await t.press("pageup", "pageup")
        away = view.scroll_offset.y
        assert not view.follows
        await t.idle()
        assert view.scroll_offset.y == away
        await t.press("ctrl+end")
        assert view.follows
        assert view.scroll_offset.y == view.max_scroll_y


@run
async def test_another_palette_draws_everything_anew():
    async with talk(["some text"]) as t:
        await t.type("go")
        await t.until("some text")
        await t.press("ctrl+g")
        assert t.app.palette is LIGHT
        await t.until(lambda: t.app.transcript.styles.background.hex.lower() == LIGHT.background)
        strip = next(cell for cell in t.app.transcript.cells if isinstance(cell, BlockCell)).lines(t.app.transcript._look)[0]
        assert all(segment.style.bgcolor.triplet.hex == LIGHT.background for segment in strip if segment.style)


@run
async def test_a_drag_selects_text_without_the_blanks_that_fill_lines():
    async with talk(["alpha beta\n\ngamma"]) as t:
        await t.type("go")
        await t.until("gamma")
        await t.idle()
        view = t.app.transcript
        line = next(y for y in range(view.virtual_size.height) if "alpha" in view.line(y).text)
        y = line - view.scroll_offset.y
        await t.pilot.mouse_down(view, offset=(2, y))
        await t.pilot.hover(view, offset=(7, y + 2))
        await t.pilot.mouse_up(view, offset=(7, y + 2))
        await t.pilot.pause()
        assert t.app.screen.get_selected_text() == "alpha beta\n\n  gamma"


@run
async def test_a_click_unfolds_and_the_marker_goes_by_keys():
    from rxagent.messages import ThinkingPart

    async with talk([[ThinkingPart("deep\nthoughts"), "ok"]]) as t:
        await t.type("go")
        await t.until("Thought")
        await t.idle()
        view = t.app.transcript
        line = next(y for y in range(view.virtual_size.height) if "Thought" in view.line(y).text)
        await t.pilot.click(view, offset=(4, line - view.scroll_offset.y))
        await t.until("│ thoughts")
        await t.press("tab")
        assert t.app.focused is view
        await t.until("❯ ▾ Thought")
        await t.press("enter")
        await t.until(lambda: "│ thoughts" not in t.text)
        await t.press("h")
        assert t.app.focused is t.app.prompt
        assert t.app.prompt.text == "h"


def test_an_open_fence_is_plain_text_until_it_closes():
    cell = TailCell()
    cell.show("```python\nx = [1,\n     2]\ny")
    assert texts(cell) == ["   x = [1,", "        2]", "   y"]
    assert len({segment.style.color for strip in cell.lines(LOOK) for segment in strip if segment.text.strip()}) == 1
    finished = BlockCell("```python\nx = [1,\n     2]\n```\n")
    assert texts(finished) == ["   x = [1,", "        2]"]
    assert len({segment.style.color for strip in finished.lines(LOOK) for segment in strip if segment.text.strip()}) > 1


@settings(max_examples=60)
@given(st.lists(st.text(st.sampled_from("ab \n\t漢"), max_size=30), max_size=8))
def test_a_growing_fence_shows_what_it_would_show_at_once(pieces):
    growing, source = TailCell(), "```\n"
    for piece in pieces:
        source += piece
        growing.show(source)
        growing.lines(LOOK)
    at_once = TailCell()
    at_once.show(source)
    assert texts(growing) == texts(at_once)


@settings(max_examples=150)
@given(st.text(max_size=200), st.integers(8, 120))
def test_every_line_is_exactly_as_wide_as_the_window(text, width):
    look = Look(LIGHT, width)
    for cell in (BlockCell(text), UserCell(text, "note"), NoticeCell("✗", text, colour="error", hint="hint")):
        for line in cell.lines(look):
            assert sum(segment.cell_length for segment in line) == width
            assert not any(ord(char) < 32 or 0x7F <= ord(char) < 0xA0 for segment in line for char in segment.text)


def test_markdown_is_drawn_as_such():
    drawn = texts(BlockCell("1. one\n2. *two*\n\n| a | b |\n|---|--:|\n| 1 | 2 |\n"))
    assert "   1 one" in drawn
    assert any("│ a │ b │" in line for line in drawn)
    assert texts(BlockCell("# Head\n")) == ["  Head"]
    assert texts(BlockCell("---\n"))[0].strip("─ ") == ""
    link = BlockCell("[here](https://example.org)\n").lines(LOOK)[0]
    assert any(segment.style and segment.style.link == "https://example.org" for segment in link)


def test_text_is_made_fit():
    assert clean("a\tb\r\nc\x1b\u202e") == "a   b\nc␛�"
    assert one_line("a\n b", 10) == "a b"
    assert cut("abcdef", 4) == "abc…"
    assert cut("漢字漢字", 5) == "漢字…"
    assert list(wrapped("漢字漢", 4)) == ["漢字", "漢"]
    assert list(words("  some words  here", 10)) == ["  some", "words", "here"]
    assert list(words("a longerword", 5)) == ["a", "longe", "rword"]
    assert [count(n) for n in (None, 7, 1234, 2_500_000)] == ["?", "7", "1.2k", "2.5M"]
    assert [seconds(s) for s in (0.04, 12.3, 185.0)] == ["0.0s", "12s", "3m05s"]
