"""`BackgroundLoop`: an asyncio loop on a daemon thread of its own."""

import asyncio
import concurrent.futures
import threading
from collections.abc import Callable, Coroutine
from typing import TypeVar

R = TypeVar("R")


class BackgroundLoop:
    """Runs from the start until ``stop``; whatever is left then is cancelled."""

    def __init__(self, name: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._main, name=name, daemon=True)
        self._last: asyncio.Task[None] | None = None
        self._thread.start()

    def is_current(self) -> bool:
        """Whether the calling code runs on this loop's thread."""
        return threading.current_thread() is self._thread

    def post(self, work: Callable[[], object]) -> None:
        """Call ``work`` on the loop, in the order of posting; from any thread."""
        self._loop.call_soon_threadsafe(work)

    def submit(self, work: Coroutine[object, object, R]) -> concurrent.futures.Future[R]:
        """Run a coroutine on the loop; from any other thread."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def stop(self, last: Callable[[], Coroutine[object, object, None]], timeout: float) -> None:
        """Run ``last()``, then end; waits for the thread at most ``timeout`` seconds, on its own thread not at all."""

        async def end() -> None:
            try:
                await last()
            finally:
                self._loop.stop()

        def begin() -> None:
            self._last = self._loop.create_task(end())  # kept: the loop has only weak references

        self.post(begin)
        if not self.is_current():
            self._thread.join(timeout)

    def _main(self) -> None:
        loop = self._loop
        asyncio.set_event_loop(loop)
        try:
            loop.run_forever()
            left = asyncio.all_tasks(loop)
            for task in left:
                task.cancel()
            loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
            loop.run_until_complete(loop.shutdown_asyncgens())
        finally:
            asyncio.set_event_loop(None)
            loop.close()
