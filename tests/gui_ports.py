"""A port in virtual time, for the core of the bridges: the test is the GUI."""

import heapq
import itertools
import threading
from collections import deque

from rxagent.errors import LoopGone


class FakePort:
    """Posted functions wait for ``run``; ``later`` ones for ``advance``. The GUI thread is the one that made it."""

    def __init__(self):
        self.now = 0.0
        self.posted = deque()
        self.timers = []
        self.closed = False
        self.posts = 0
        self.callbacks = {}
        self._thread = threading.get_ident()
        self._order = itertools.count()

    def post(self, fn):
        if self.closed:
            raise LoopGone("closed")
        self.posts += 1
        self.posted.append(fn)

    def later(self, seconds, fn):
        heapq.heappush(self.timers, (self.now + seconds, next(self._order), fn))

    def is_current(self):
        return threading.get_ident() == self._thread

    def on_close(self, fn):
        key = object()
        self.callbacks[key] = fn
        return lambda: self.callbacks.pop(key, None)

    def run(self):
        """Everything that was posted."""
        while self.posted:
            self.posted.popleft()()

    def advance(self, seconds):
        """Time passes: what was posted, then timers as they come due."""
        until = self.now + seconds
        self.run()
        while self.timers and self.timers[0][0] <= until + 1e-9:
            self.now, _, fn = heapq.heappop(self.timers)
            fn()
            del fn
            self.run()
        self.now = until

    def close(self):
        """The window is gone: nothing is called any more."""
        self.closed = True
        self.posted.clear()
        self.timers.clear()
        for fn in list(self.callbacks.values()):
            fn()


class PlainPort(FakePort):
    """The same with no more than the three functions of a port."""

    on_close = None

    def close(self):
        self.closed = True
        self.posted.clear()
        self.timers.clear()
