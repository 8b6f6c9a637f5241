"""``emit_blocking``: emit from a thread, and wait there."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from rxagent.errors import UsageError, WouldDeadlock
from rxagent.flow.emission import Gate, emit
from rxagent.flow.loops import on_loop

T = TypeVar("T")


def emit_blocking(send: Callable[[T], object], value: T, loop: asyncio.AbstractEventLoop, gate: Gate | None = None) -> None:
    """``emit`` on ``loop``, called from another thread, which blocks until every hold is released.

    What ``send`` raises is raised here. Raises ``WouldDeadlock`` on the loop's own thread (use
    ``await emit`` there), and ``UsageError`` when the loop isn't running.
    """
    if on_loop(loop):
        raise WouldDeadlock("emit_blocking on the loop's own thread would stop the loop for ever; use `await emit(…)`")
    if not loop.is_running():
        raise UsageError("emit_blocking: the loop isn't running, nobody would deliver the value")
    # The context goes along, and with it what waits for this thread: a value sent into a run that
    # waits for the sender is delivered without waiting.
    asyncio.run_coroutine_threadsafe(emit(send, value, gate), loop).result()
