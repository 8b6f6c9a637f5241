"""`Place`: where an agent's events may be published: on the loop of its running run, or anywhere while none runs."""

import asyncio
import threading
from collections.abc import Callable

from rxagent.flow.loops import on_loop


class Place:
    """The loop of the running run, if there is one. While no run goes, events may come from any thread, one at a time."""

    def __init__(self) -> None:
        self.loop: asyncio.AbstractEventLoop | None = None
        self.lock = threading.RLock()  # whoever gives it a loop holds this

    def do(self, work: Callable[[], object]) -> None:
        """Does it there: at once if it is here, or if there is no run; soon otherwise."""
        with self.lock:
            loop = self.loop
            if loop is None or on_loop(loop):
                work()
                return
            try:
                loop.call_soon_threadsafe(self._alone, work)
            except RuntimeError:  # it was closed with the run in it
                work()

    def _alone(self, work: Callable[[], object]) -> None:
        with self.lock:
            work()
