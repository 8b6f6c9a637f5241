"""HTTP sessions: one for each event loop, closed with it, without anybody having to ask."""

import asyncio
import contextlib
import weakref
from collections.abc import AsyncGenerator
from functools import cached_property
from urllib.request import getproxies, proxy_bypass

import aiohttp
from yarl import URL

_READ_BUFFER = 32 * 1024  # reading pauses at twice that


class Sessions:
    """Makes a session for the running loop at the first request."""

    def __init__(self, *, connect_timeout: float) -> None:
        self._timeout = connect_timeout
        self._by_loop: dict[asyncio.AbstractEventLoop, tuple[aiohttp.ClientSession, AsyncGenerator[None]]] = {}

    def get(self) -> aiohttp.ClientSession:
        """The running loop's session."""
        loop = asyncio.get_running_loop()
        held = self._by_loop.get(loop)
        if held is not None and not held[0].closed:
            return held[0]
        for other in [other for other in self._by_loop if other.is_closed()]:
            del self._by_loop[other]
        session = self._make()
        keeper = _keep(session, weakref.ref(self), loop)
        # Started, the generator is known to the loop, which closes it when it shuts its generators down
        # (asyncio.run does) or when nobody holds it any more. Its first step waits for nothing: no task.
        with contextlib.suppress(StopIteration):
            keeper.__anext__().send(None)  # pyright: ignore[reportAttributeAccessIssue] the awaitable has it
        self._by_loop[loop] = session, keeper
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
            await held[1].aclose()

    def forget(self, loop: asyncio.AbstractEventLoop) -> None:
        """The loop's session is closed."""
        self._by_loop.pop(loop, None)

    def _make(self) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=self._timeout),
            auto_decompress=False,
            cookie_jar=aiohttp.DummyCookieJar(),
            read_bufsize=_READ_BUFFER,
        )


async def _keep(
    session: aiohttp.ClientSession, sessions: weakref.ref[Sessions], loop: asyncio.AbstractEventLoop
) -> AsyncGenerator[None]:
    # no strong reference to who holds this generator: it must go by counting, not by a collection in any order
    try:
        yield
    finally:
        if (owner := sessions()) is not None:
            owner.forget(loop)
        await session.close()
