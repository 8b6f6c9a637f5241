"""HTTP sessions: one for each event loop, closed with it, without anybody having to ask."""

import asyncio
import contextlib
import weakref
from collections.abc import AsyncGenerator

import aiohttp

_READ_BUFFER = 32 * 1024  # reading pauses at twice that


class _Held:
    """A session and the async generator that closes it when the loop shuts its generators down, as `asyncio.run` does."""

    __slots__ = ("__weakref__", "_keeper", "session")

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self.session = session
        self._keeper = _keep(session)
        # its first step does not wait for anything, so it can be taken without a task
        with contextlib.suppress(StopIteration):
            self._keeper.__anext__().send(None)  # pyright: ignore[reportAttributeAccessIssue] an async generator's awaitable has send

    async def aclose(self) -> None:
        await self._keeper.aclose()


async def _keep(session: aiohttp.ClientSession) -> AsyncGenerator[None]:
    try:
        yield
    finally:
        await session.close()


class Sessions:
    """Makes a session for the running loop at the first request."""

    def __init__(self, *, connect_timeout: float) -> None:
        self._timeout = connect_timeout
        self._by_loop: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Held] = weakref.WeakKeyDictionary()

    def get(self) -> aiohttp.ClientSession:
        """The running loop's session."""
        loop = asyncio.get_running_loop()
        held = self._by_loop.get(loop)
        if held is None or held.session.closed:
            session = self._make()
            held = self._by_loop[loop] = _Held(session)
            # a loop that is closed without shutting its generators down: the sockets go with it
            weakref.finalize(held, _drop, session)
        return held.session

    async def aclose(self) -> None:
        """Closes the running loop's session."""
        held = self._by_loop.pop(asyncio.get_running_loop(), None)
        if held is not None:
            await held.aclose()

    def _make(self) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=self._timeout),
            auto_decompress=False,
            cookie_jar=aiohttp.DummyCookieJar(),
            read_bufsize=_READ_BUFFER,
            trust_env=True,
        )


def _drop(session: aiohttp.ClientSession) -> None:
    connector = session.connector
    if connector is None or session.closed:
        return
    session.detach()
    with contextlib.suppress(RuntimeError):
        connector.close()
