"""Loops and threads: which loop runs here, and how another thread reaches it."""

import asyncio
from collections.abc import Callable

from rxagent.errors import NoRunningLoop

# Documented for loop implementations, and the only way to ask that doesn't raise outside a loop.
running_loop: Callable[[], asyncio.AbstractEventLoop | None] = asyncio._get_running_loop  # pyright: ignore[reportPrivateUsage]


def current_loop(what: str) -> asyncio.AbstractEventLoop:
    """The running loop; ``NoRunningLoop`` names ``what`` needed it."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        raise NoRunningLoop(f"{what} needs a running asyncio loop: call it from a coroutine, or pass a loop.") from None


def call_later(loop: asyncio.AbstractEventLoop, seconds: float, callback: Callable[[], None]) -> Callable[[], None]:
    """Call back on ``loop`` after ``seconds``, from any thread; returns the way to cancel it."""
    timers: list[asyncio.Handle] = []
    cancelled: list[bool] = []

    def start() -> None:
        if not cancelled:
            timers.append(loop.call_later(seconds, callback) if seconds > 0 else loop.call_soon(callback))

    def stop() -> None:
        while timers:
            timers.pop().cancel()

    def cancel() -> None:
        cancelled.append(True)
        if on_loop(loop):
            stop()
        elif timers or not started_here:
            call_on(loop, stop)

    started_here = on_loop(loop)
    if started_here:
        start()
    else:
        loop.call_soon_threadsafe(start)  # raises on a closed loop: the caller has to know
    return cancel


def on_loop(loop: asyncio.AbstractEventLoop) -> bool:
    """Whether the calling code runs on ``loop``."""
    return running_loop() is loop


def call_on(loop: asyncio.AbstractEventLoop, callback: Callable[[], object]) -> None:
    """Call back on ``loop`` soon, from any thread; a closed loop has nobody left to tell."""
    if on_loop(loop):
        loop.call_soon(callback)
        return
    try:
        loop.call_soon_threadsafe(callback)
    except RuntimeError:
        if not loop.is_closed():
            raise


class _Wakeup:
    """A future of the running loop that any thread can settle."""

    __slots__ = ("future", "loop")

    def __init__(self) -> None:
        self.loop = current_loop("waiting")
        self.future: asyncio.Future[None] = self.loop.create_future()

    def wake(self) -> None:
        """Settles it."""
        if on_loop(self.loop):
            self._settle()
        else:
            call_on(self.loop, self._settle)

    def _settle(self) -> None:
        if not self.future.done():
            self.future.set_result(None)


def wakeup() -> tuple[asyncio.Future[None], Callable[[], None]]:
    """A future of the running loop, and a function that settles it from any thread."""
    it = _Wakeup()
    return it.future, it.wake
