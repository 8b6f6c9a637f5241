"""Five pictures of the app, in the states a person meets; RXAGENT_SCREENSHOTS=DIRECTORY keeps them (docs/chat has them)."""

import os
import pathlib
import re

import pytest

pytest.importorskip("textual", reason="needs Textual: pip install 'rxagent[chat]'")

from chat_harness import run, talk

from rxagent.chat.look import LIGHT
from rxagent.cli.demo_tools import ASKING, DEMO_TOOLS
from rxagent.models.demo import DemoModel


def shoot(t, folder, name, *texts):
    """Takes a picture of a screen that holds the texts."""
    svg = t.app.export_screenshot(title="rxagent chat")
    assert "rich-terminal" in svg
    for text in texts:
        assert text in t.screen
    folder.mkdir(parents=True, exist_ok=True)
    alone = re.sub(r"@font-face \{.*?\}", "", svg, flags=re.DOTALL)  # no font from somebody's server
    (folder / f"{name}.svg").write_text(alone, encoding="utf-8")


@run
async def take_all(folder, palette, suffix):
    options = {"is_demo": True}
    if palette is not None:
        options["palette"] = palette
    async with talk(DemoModel(delay=0.03), tools=DEMO_TOOLS, asking=ASKING, size=(90, 28), options=options) as t:
        await t.until("● ready")
        shoot(t, folder, f"idle{suffix}", "agents as reactive streams", "Ask anything")

        await t.type("write a long sample")
        await t.until("ToolStart")
        shoot(t, folder, f"streaming{suffix}", "writing", "steer it")
        await t.idle()

        await t.type("add 2 and 40, and count to 30")
        await t.until("3 of 30")
        await t.type("then multiply 6 and 7")
        await t.type("say goodbye at the end", "tab")
        await t.until("⋯ later")
        shoot(t, folder, f"tools{suffix}", "count", "to=30", "42", "then multiply 6 and 7")
        await t.press("escape")
        await t.idle()
        await t.press("up", "ctrl+c")

        await t.type('publish "a note for everyone"')
        await t.until("Run publish?")
        shoot(t, folder, f"approval{suffix}", "Approve", "needs you", "always here")
        await t.press("n")
        await t.until("denied by the user")
        await t.idle()

        await t.type("fail please")
        await t.until("✗ server")
        shoot(t, folder, f"error{suffix}", "the demo model fails", "ctrl+r asks again")


@pytest.mark.parametrize(("palette", "suffix"), [(None, ""), (LIGHT, "-light")], ids=["dark", "light"])
def test_five_states_are_worth_a_picture(tmp_path, palette, suffix):
    take_all(pathlib.Path(os.environ.get("RXAGENT_SCREENSHOTS", tmp_path)), palette, suffix)
