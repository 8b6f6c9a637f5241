"""The port of an asyncio loop: Jupyter, NiceGUI, qasync, any program that lives on one."""

import asyncio
from collections.abc import Callable
from contextvars import Context, copy_context
from typing import TypeVar

from reactivex import Observable

from rxagent.bridges.frame import Frame
from rxagent.bridges.loop import CAPACITY, PERIOD, on_loop
from rxagent.errors import LoopGone, NoRunningLoop
from rxagent.state import AgentState

T = TypeVar("T")


class AsyncioPort:
    """A `Port` into an asyncio loop: the given one, or the one that runs where the port is made.

    What it calls runs in a copy of the context the port was made in.

    Raises:
        NoRunningLoop: none is given, and none is running.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop | None = None) -> None:
        if loop is None:
            try:
                loop = asyncio.get_running_loop()
            except RuntimeError:
                raise NoRunningLoop("AsyncioPort() outside of a running loop: pass the loop that the GUI lives on") from None
        self.loop = loop
        self._context: Context = copy_context()

    def post(self, fn: Callable[[], None]) -> None:
        """See `Port`."""
        if not self.loop.is_closed():  # asked first: not every loop refuses a call when it is
            try:
                if self.is_current():
                    self.loop.call_soon(fn, context=self._context)
                else:
                    self.loop.call_soon_threadsafe(fn, context=self._context)
            except RuntimeError:
                if not self.loop.is_closed():
                    raise
            else:
                return
        raise LoopGone("the asyncio loop of this bridge is closed")

    def later(self, seconds: float, fn: Callable[[], None]) -> None:
        """See `Port`."""
        self.loop.call_later(seconds, fn, context=self._context)

    def is_current(self) -> bool:
        """See `Port`."""
        try:
            return asyncio.get_running_loop() is self.loop
        except RuntimeError:
            return False


def on_asyncio(
    loop: asyncio.AbstractEventLoop | None = None,
    *,
    period: float = PERIOD,
    capacity: int = CAPACITY,
    state: Callable[[], AgentState] | None = None,
) -> Callable[[Observable[T]], Observable[Frame[T]]]:
    """Frames on an asyncio loop, the running one if none is given; see `on_loop`.

    Raises:
        NoRunningLoop: none is given, and none is running.
    """
    return on_loop(AsyncioPort(loop), period=period, capacity=capacity, state=state)
