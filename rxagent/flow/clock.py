"""A scheduler on the running loop's own clock, for stock and own time operators alike."""

import asyncio
import threading
from datetime import datetime
from typing import TypeVar

from reactivex import abc, typing
from reactivex.disposable import Disposable
from reactivex.scheduler.periodicscheduler import PeriodicScheduler

from rxagent.flow.loops import call_later, current_loop

S = TypeVar("S")


class LoopClock(PeriodicScheduler):
    """Schedules on an asyncio loop and tells its time: ``now`` is ``loop.time()``.

    The loop is the given one, or the one that runs where the clock is made. Works on a virtual
    loop and across steps of the wall clock. ``schedule*`` and dispose are safe from any thread.
    Raises ``NoRunningLoop`` when made without a loop outside of one.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop | None = None) -> None:
        super().__init__()
        self._loop = loop or current_loop("LoopClock()")

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The loop this clock belongs to."""
        return self._loop

    @property
    def now(self) -> datetime:
        """The loop's time as a datetime; its zero is the epoch, not a date."""
        return self.to_datetime(self._loop.time())

    def schedule(self, action: typing.ScheduledAction[S], state: S | None = None) -> abc.DisposableBase:
        """Run ``action`` on the loop, as soon as it gets to it."""
        return self._later(0.0, action, state)

    def schedule_relative(
        self,
        duetime: typing.RelativeTime,
        action: typing.ScheduledAction[S],
        state: S | None = None,
    ) -> abc.DisposableBase:
        """Run ``action`` on the loop in ``duetime`` (seconds or timedelta)."""
        return self._later(self.to_seconds(duetime), action, state)

    def schedule_absolute(
        self,
        duetime: typing.AbsoluteTime,
        action: typing.ScheduledAction[S],
        state: S | None = None,
    ) -> abc.DisposableBase:
        """Run ``action`` on the loop at ``duetime``, on the scale of ``now``."""
        return self._later(self.to_seconds(duetime) - self._loop.time(), action, state)

    def _later(self, seconds: float, action: typing.ScheduledAction[S], state: S | None) -> abc.DisposableBase:
        inner: list[abc.DisposableBase] = []
        stopped = threading.Event()

        def run() -> None:
            if not stopped.is_set():
                inner.append(self.invoke_action(action, state))
                if stopped.is_set():  # disposed by its own action
                    inner.pop().dispose()

        timer = call_later(self._loop, max(seconds, 0.0), run)

        def dispose() -> None:
            stopped.set()
            timer()
            if inner:
                inner.pop().dispose()

        return Disposable(dispose)
