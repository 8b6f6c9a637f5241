"""HTTP sessions: one for each event loop, closed with it, without anybody having to ask."""

import asyncio
import contextlib
import weakref
from collections.abc import AsyncGenerator, Awaitable, Callable
from functools import cached_property
from typing import NamedTuple
from urllib.request import getproxies, proxy_bypass

import aiohttp
from yarl import URL

_READ_BUFFER = 32 * 1024  # reading pauses at twice that


class _Held(NamedTuple):
    session: aiohttp.ClientSession
    keeper: AsyncGenerator[None]
    let_go: Callable[[], object]


class Sessions:
    """Makes a session for the running loop at the first request."""

    def __init__(self, *, connect_timeout: float) -> None:
        self._timeout = connect_timeout
        self._by_loop: dict[asyncio.AbstractEventLoop, _Held] = {}

    def get(self) -> aiohttp.ClientSession:
        """The running loop's session."""
        loop = asyncio.get_running_loop()
        held = self._by_loop.get(loop)
        if held is not None and not held.session.closed:
            return held.session
        for other in [other for other in self._by_loop if other.is_closed()]:
            self.forget(other)
        session = self._make()
        keeper = _keep(session, weakref.ref(self), loop)
        # Started, the generator is known to the loop, which closes it when it shuts its generators down, as
        # `asyncio.run` does. Its first step waits for nothing: no task.
        _step(keeper.__anext__())
        # Who uses the model may be collected with it, in any order: session and keeper are held from outside.
        finalizer = weakref.finalize(self, _abandon, loop, session, keeper)
        finalizer.atexit = False
        self._by_loop[loop] = _Held(session, keeper, finalizer.detach)
        return session

    @cached_property
    def _proxies(self) -> dict[str, str]:
        return getproxies()

    def proxy_for(self, url: URL) -> str | None:
        """The proxy that the environment names for a URL, read once.

        aiohttp's ``trust_env`` does the same on a worker thread for each request, at a fifth of a
        short run's cost.
        """
        proxy = self._proxies.get(url.scheme) or self._proxies.get("all")
        if not proxy or proxy_bypass(f"{url.host}:{url.port}"):
            return None
        return proxy if "://" in proxy else f"http://{proxy}"

    async def aclose(self) -> None:
        """Closes the running loop's session."""
        held = self._by_loop.get(asyncio.get_running_loop())
        if held is not None:
            await held.keeper.aclose()

    def forget(self, loop: asyncio.AbstractEventLoop) -> None:
        """The loop's session is closed, or the loop is."""
        held = self._by_loop.pop(loop, None)
        if held is not None:
            held.let_go()

    def _make(self) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=self._timeout),
            auto_decompress=False,
            cookie_jar=aiohttp.DummyCookieJar(),
            read_bufsize=_READ_BUFFER,
        )


async def _keep(
    session: aiohttp.ClientSession, owner: weakref.ref[Sessions], loop: asyncio.AbstractEventLoop
) -> AsyncGenerator[None]:
    try:
        yield
    finally:
        if (sessions := owner()) is not None:
            sessions.forget(loop)
        await session.close()


def _abandon(loop: asyncio.AbstractEventLoop, session: aiohttp.ClientSession, keeper: AsyncGenerator[None]) -> None:
    """The model is gone. This may run on any thread, wherever garbage is collected."""
    with contextlib.suppress(RuntimeError):  # a closed loop
        loop.call_soon_threadsafe(_close_now, session, keeper)


def _close_now(session: aiohttp.ClientSession, keeper: AsyncGenerator[None]) -> None:
    """Closes without a task: the sockets go with the first step, the rest would only wait for them."""
    _step(session.close())
    _step(keeper.aclose())


def _step(awaitable: Awaitable[object]) -> None:
    steps = awaitable.__await__()
    with contextlib.suppress(StopIteration, StopAsyncIteration):
        next(steps)
    steps.close()  # pyright: ignore[reportAttributeAccessIssue] awaitables of coroutines and generators have it
