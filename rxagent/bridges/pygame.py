"""The port of pygame, and of any other program with a frame loop of its own."""

import heapq
import itertools
import threading
import time
from collections import deque
from collections.abc import Callable

from rxagent.bridges.port import Closing
from rxagent.errors import LoopGone, UsageError

BUDGET = 0.004


class FrameLoopPort(Closing):
    """A `Port` that is emptied once a frame: call ``pump`` in the loop, and ``close`` after it.

    ``on_loop(port)`` and ``host.frames(port)`` take it. Nothing of pygame is used: its own event queue
    is full at 65,535 events and would have to be emptied in the same place.
    """

    def __init__(self) -> None:
        super().__init__()
        self._thread = threading.get_ident()
        self._queue: deque[Callable[[], None]] = deque()
        self._timers: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()

    def post(self, fn: Callable[[], None]) -> None:
        """See `Port`."""
        if self.closed:
            raise LoopGone("the frame loop of this bridge has ended")
        self._queue.append(fn)

    def later(self, seconds: float, fn: Callable[[], None]) -> None:
        """See `Port`."""
        if self.closed:
            raise LoopGone("the frame loop of this bridge has ended")
        heapq.heappush(self._timers, (time.monotonic() + seconds, next(self._order), fn))

    def is_current(self) -> bool:
        """See `Port`."""
        return threading.get_ident() == self._thread

    def pump(self, budget: float = BUDGET) -> None:
        """Calls what is due, for about ``budget`` seconds; once per frame, on the thread that made the port.

        Raises:
            UsageError: called on another thread.
        """
        if not self.is_current():
            raise UsageError("pump() is called on the thread that the port was made on, in the frame loop")
        until = time.monotonic() + budget
        now = until - budget
        while self._timers and self._timers[0][0] <= now:
            self._queue.append(heapq.heappop(self._timers)[2])
        for _ in range(len(self._queue)):
            if not self._queue:  # closed by one of them
                return
            self._queue.popleft()()
            if time.monotonic() >= until:
                return

    def close(self) -> None:
        """The frame loop has ended: nothing is called any more, and nothing waits for it."""
        super().close()
        self._queue.clear()
        self._timers.clear()
