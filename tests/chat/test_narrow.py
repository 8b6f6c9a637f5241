"""The terminal app in a small window, and in one that changes."""

import pytest

pytest.importorskip("textual", reason="needs Textual: pip install 'rxagent[chat]'")

from chat_harness import run, talk

from rxagent.events import model as m
from rxagent.messages import ToolCall, Usage
from rxagent.models import ScriptedModel
from rxagent.tools import tool


@tool
async def publish(text: str) -> str:
    """Publishes."""
    return f"published {text}"


def status(t):
    return t.screen.splitlines()[-1]


@run
async def test_the_state_is_told_in_a_narrow_window():
    answer = [m.TextDelta("hello"), m.ResponseEnd("stop", Usage(25_700, 291, cost=0.001))]
    async with talk([answer], size=(40, 10)) as t:
        assert status(t).split() == ["●", "ready", "?", "keys"]
        await t.type("hi")
        await t.idle()
        assert "● ready  " in status(t)
        assert "↑25.7k ↓291" in status(t)
        assert status(t).endswith("? keys")


@run
async def test_the_lines_around_the_transcript_take_the_width_there_is_after_a_resize():
    async with talk(["hello"]) as t:
        await t.type("a title that is long enough to be cut")
        await t.idle()
        top, bottom = t.screen.splitlines()[0], status(t)
        for size in (10, 3), (80, 24), (1, 1), (200, 60), (2, 1), (80, 24):
            await t.pilot.resize_terminal(*size)
            await t.pilot.pause()
        assert (t.screen.splitlines()[0], status(t)) == (top, bottom)
        assert "● ready" in bottom


@run
async def test_an_approval_shows_its_keys_in_a_low_window():
    call = ToolCall("c1", "publish", {"text": "line\n" * 20})
    async with talk(ScriptedModel([[call], "done"]), tools=[publish], asking=("publish",), size=(40, 10)) as t:
        await t.type("go")
        await t.until("Approve")
        assert "y yes" in t.screen
        assert "esc later" in t.screen
        assert "publish" in t.screen
        await t.press("y")
        await t.until("done")
