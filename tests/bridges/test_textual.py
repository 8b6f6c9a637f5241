"""The Textual port on a real app, driven by a pilot."""

import asyncio

import pytest

from rxagent import Agent
from rxagent.bridges import AgentHost, TextualPort, on_textual
from rxagent.errors import NoRunningLoop
from rxagent.models import ScriptedModel
from rxagent.operators import text_deltas

textual = pytest.importorskip("textual", reason="needs Textual: pip install 'rxagent[textual]'")

from textual.app import App  # noqa: E402 - after the check
from textual.widgets import Static  # noqa: E402


class Window(App):
    """A label that shows the answer."""

    def __init__(self, agent, *, hosted):
        super().__init__()
        self.agent, self.hosted = agent, hosted
        self.text, self.done = [], asyncio.Event()

    def compose(self):
        yield Static(id="answer")

    def on_mount(self):
        self.host = AgentHost(self.agent) if self.hosted else None
        events = (self.host or self.agent).events
        events.pipe(text_deltas(), on_textual(self)).subscribe(self.show)
        (self.host or self.agent).prompt("hi")

    def show(self, frame):
        self.text += frame
        self.query_one("#answer", Static).update("".join(self.text))  # finds the app by its context
        if "".join(self.text).endswith("end"):
            self.done.set()


async def show_answer(hosted):
    window = Window(Agent(ScriptedModel(["hello there, " * 300 + "end"])), hosted=hosted)
    async with window.run_test() as pilot:
        await asyncio.wait_for(window.done.wait(), 20)
        await pilot.pause()
    if window.host:
        await asyncio.to_thread(window.host.close)
    return "".join(window.text)


@pytest.mark.parametrize("hosted", [True, False], ids=["own thread", "the app's own loop"])
def test_an_answer_streams_into_a_widget(hosted):
    assert asyncio.run(show_answer(hosted)) == "hello there, " * 300 + "end"


def test_a_bridge_made_too_early_says_when():
    with pytest.raises(NoRunningLoop, match="on_mount"):
        TextualPort(App())


def test_a_bridge_made_too_early_on_a_running_loop_says_so_too():
    async def main():
        for node in (App(), Static()):
            with pytest.raises(NoRunningLoop, match="on_mount"):
                on_textual(node)

    asyncio.run(main())


def test_an_app_that_exits_lets_the_run_go_on():
    async def main():
        agent = Agent(ScriptedModel(["word " * 5000]))
        host = AgentHost(agent)

        class Leaving(App):
            def on_mount(self):
                host.events.pipe(on_textual(self, capacity=8)).subscribe(lambda frame: self.exit())
                host.prompt("hi")

        app = Leaving()
        async with app.run_test():
            pass
        result = await asyncio.to_thread(host.wait, 20)
        host.close()
        return result

    assert asyncio.run(main()).outcome == "completed"
