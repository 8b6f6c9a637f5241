"""`Signal`: whether something was cancelled, and a way to wait for it, from coroutines and threads alike."""

import asyncio
import threading
from collections.abc import Callable
from functools import partial

from rxagent.errors import RunAborted


class Signal:
    """A one-way switch: not cancelled, then cancelled with a reason. Safe from any thread.

    A tool polls ``cancelled``, awaits ``wait()``, or registers a callback; ``child()`` is cancelled with its parent.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._callbacks: dict[object, Callable[[], object]] = {}
        self.cancelled = False
        self.reason: str | None = None

    def __repr__(self) -> str:
        return f"Signal(cancelled={self.cancelled}, reason={self.reason!r})"

    def cancel(self, reason: str | None = None) -> bool:
        """Cancels; False if it already was. Callbacks run on the calling thread."""
        with self._lock:
            if self.cancelled:
                return False
            self.reason = reason
            self.cancelled = True
            callbacks = list(self._callbacks.values())
            self._callbacks.clear()
        for callback in callbacks:
            callback()
        return True

    def on_cancel(self, callback: Callable[[], object]) -> Callable[[], None]:
        """Calls back once when cancelled, now if it already is; returns a function that takes it back."""
        key = object()
        with self._lock:
            if not self.cancelled:
                self._callbacks[key] = callback
                return partial(self._forget, key)
        callback()
        return lambda: None

    def _forget(self, key: object) -> None:
        with self._lock:
            self._callbacks.pop(key, None)

    def child(self) -> "Signal":
        """A signal that is cancelled with this one, and can be cancelled alone."""
        child = Signal()
        forget = self.on_cancel(lambda: child.cancel(self.reason))
        child.on_cancel(forget)
        return child

    def raise_if_cancelled(self) -> None:
        """Raises `RunAborted` once cancelled."""
        if self.cancelled:
            raise RunAborted(self.reason or "aborted", "aborted")

    async def wait(self) -> None:
        """Returns when cancelled."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()

        def settle() -> None:
            if not done.done():
                done.set_result(None)

        def wake() -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(settle)

        forget = self.on_cancel(wake)
        try:
            await done
        finally:
            forget()

    def wait_blocking(self, timeout: float | None = None) -> bool:
        """For threads: waits at most ``timeout`` seconds and returns ``cancelled``."""
        event = threading.Event()
        forget = self.on_cancel(event.set)
        try:
            return event.wait(timeout)
        finally:
            forget()
