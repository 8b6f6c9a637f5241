"""`Watch`: one timer that ends a wait between a model's events, at no cost per event but a clock reading."""

import asyncio
import time
from types import TracebackType
from typing import Self


class Watch:
    """Cancels the present task when nothing happened for too long; ``async with`` turns that into ``expired``.

    Args:
        first: seconds until the first event, or None.
        idle: seconds between events, or None.
    """

    __slots__ = ("_handle", "_idle", "_limit", "_loop", "_task", "at", "expired", "now")

    def __init__(self, first: float | None, idle: float | None) -> None:
        self._loop = asyncio.get_running_loop()
        # the stock loops' time() is a Python wrapper around this
        stock = type(self._loop).time is asyncio.BaseEventLoop.time
        self.now = time.monotonic if stock else self._loop.time
        self._task = asyncio.current_task()
        self._limit = first
        self._idle = idle
        self._handle: asyncio.TimerHandle | None = None
        self.at: float | None = None
        self.expired: float | None = None

    def __enter__(self) -> Self:
        self.at = self.now()
        self._arm(self._limit)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._disarm()

    def started(self) -> None:
        """The first event came: from now on the idle limit holds."""
        self._disarm()
        self._limit = self._idle
        self._arm(self._limit)

    def seen(self) -> None:
        """An event came."""
        self.at = self.now()

    def pause(self) -> None:
        """The consumer needs time: that is not the model's fault."""
        self.at = None

    def _arm(self, seconds: float | None) -> None:
        if seconds is not None:
            self._handle = self._loop.call_later(seconds, self._check)

    def _disarm(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def _check(self) -> None:
        limit = self._limit
        if limit is None:
            return
        idle = 0.0 if self.at is None else self.now() - self.at
        if idle + 1e-9 < limit:
            self._arm(limit - idle)
        elif self._task is not None:
            self.expired = limit
            self._task.cancel()
