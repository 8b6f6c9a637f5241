"""What is going on while nothing else is shown: a line on a terminal, a remark now and then elsewhere."""

import asyncio

from rxagent.cli.terminal import Terminal
from rxagent.cli.wording import seconds
from rxagent.engine import Agent
from rxagent.events import AnyEvent, ToolEnd, ToolStart, TurnStart

_TICK = 0.5  # seconds
_QUIET = 1.0  # seconds without an event, from which on a terminal tells
_LONG = 10.0  # the same elsewhere, twice as long each time


class Progress:
    """Tells what a run waits for when it takes long. Use as an async context manager around the run."""

    def __init__(self, agent: Agent, terminal: Terminal) -> None:
        self._terminal = terminal
        self._model = agent.model.name
        self._running: dict[str, str] = {}
        self._clock = asyncio.get_running_loop().time
        self._last = self._clock()
        self._next_remark = _LONG
        self._task: asyncio.Task[None] | None = None
        agent.events.subscribe(self._event)

    async def __aenter__(self) -> None:
        self._task = asyncio.create_task(self._watch())

    async def __aexit__(self, *_: object) -> None:
        assert self._task is not None
        self._task.cancel()
        await asyncio.wait([self._task])

    def _event(self, event: AnyEvent) -> None:
        self._last = self._clock()
        self._next_remark = _LONG
        match event:
            case ToolStart():
                self._running[event.call_id] = event.tool_name
            case ToolEnd():
                self._running.pop(event.call_id, None)
            case TurnStart():
                self._running.clear()
            case _:
                pass

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(_TICK)
            idle = self._clock() - self._last
            what = f"{', '.join(self._running.values())} running" if self._running else f"waiting for {self._model}"
            if self._terminal.remarks.is_terminal:
                if idle >= _QUIET:
                    self._terminal.status(f"… {what}, {seconds(idle)}")
            elif idle >= self._next_remark:
                self._next_remark *= 2
                self._terminal.note(f"… {what}, {seconds(idle)}")
