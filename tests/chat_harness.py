"""The terminal app under a pilot, with a scripted model and a store in memory."""

import asyncio
import functools
from contextlib import asynccontextmanager

from rxagent import Agent
from rxagent.chat.app import ChatApp
from rxagent.chat.desk import Approvals, Desk
from rxagent.chat.window import Options
from rxagent.errors import UnknownModel
from rxagent.models import ScriptedModel
from rxagent.stores import MemoryStore


def no_model(name):
    raise UnknownModel(f"no provider serves {name!r}")


def drawn(cell, look):
    """A cell's lines, without a trace in the cell."""
    return cell.lines(look) if cell.is_drawn(look) else cell.draw(look)


def text_of(line):
    """A line's text, without the blanks that fill it."""
    return "".join(segment.text for segment in line).rstrip()


class Talk:
    """The app and its pilot."""

    def __init__(self, app, pilot):
        self.app, self.pilot = app, pilot

    @property
    def agent(self):
        return self.app.agent

    @property
    def text(self):
        """All lines of the transcript, as they are drawn."""
        view = self.app.transcript
        return "\n".join(text_of(line) for cell in view.cells for line in drawn(cell, view._look))

    @property
    def screen(self):
        """What is on the screen."""
        size = self.app.size
        lines = self.app.screen._compositor.render_strips()
        return "\n".join(strip.text.rstrip() for strip in lines[: size.height])

    async def press(self, *keys):
        await self.pilot.press(*keys)

    async def type(self, text, key="enter"):
        self.app.prompt.put(text)
        await self.pilot.press(key)

    async def until(self, what, timeout=10.0):
        """Waits until something holds, or is in the transcript or on the screen."""

        def holds():
            return what() if callable(what) else what in self.text or what in self.screen

        for _ in range(int(timeout / 0.01)):
            if holds():
                await self.pilot.pause()
                return
            await self.pilot.pause(0.01)
        raise AssertionError(f"{what!r} did not come about:\n{self.screen}\n--- all:\n{self.text}")

    async def idle(self):
        await self.until(lambda: not self.agent.is_running)
        await self.pilot.pause(0.12)  # the last frame


@asynccontextmanager
async def talk(model, *, tools=(), asking=(), store=None, size=(80, 24), resolve=no_model, options=None, **agent):
    """The app over a model; a list is a script."""
    async with MemoryStore() if store is None else store as kept:
        made = Agent(ScriptedModel(model) if isinstance(model, list) else model, tools=tools, **agent)
        app = ChatApp(Desk(made, kept, Approvals(asking)), Options(resolve=resolve, **(options or {})))
        async with app.run_test(size=size) as pilot:
            await pilot.pause()
            yield Talk(app, pilot)


def run(test):
    """Runs a coroutine test."""

    @functools.wraps(test)
    def runner(*arguments, **more):
        asyncio.run(test(*arguments, **more))

    return runner
