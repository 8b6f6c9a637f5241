"""Ctrl-C: the first aborts the run cleanly, the second leaves at once."""

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from types import FrameType

from rxagent.cli import exits


@contextmanager
def aborting(abort: Callable[[], None], loop: asyncio.AbstractEventLoop) -> Generator[None]:
    """Calls ``abort`` on the loop at the first SIGINT or SIGTERM; a second ends the process.

    A plain signal handler, not the loop's own: it also works while a write to a slow reader blocks the loop.
    """
    asked = 0

    def handle(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        asked += 1
        if asked > 1:
            with suppress(OSError, ValueError):
                sys.stderr.flush()
            os._exit(exits.ABORTED)  # a tool that does not end can't keep us either
        loop.call_soon_threadsafe(abort)

    signals = [signal.SIGINT, signal.SIGTERM]
    before = [signal.signal(number, handle) for number in signals]
    try:
        yield
    finally:
        for number, handler in zip(signals, before, strict=True):
            signal.signal(number, handler)
