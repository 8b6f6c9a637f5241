"""`HttpModel`: one model behind one HTTP endpoint, whatever its wire. All of the I/O of the wires is here.

One attempt per request; retries and time limits of the stream are the engine's. Closing the iterator
closes the connection at once.
"""

import asyncio
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import cast

import aiohttp
from pydantic import JsonValue
from pydantic_core import to_json
from yarl import URL

from rxagent.events.model import ModelError, ModelEvent
from rxagent.messages import JsonObject
from rxagent.models.base import ModelRequest
from rxagent.models.body import BodyReader
from rxagent.models.classify import error_of_bytes
from rxagent.models.sessions import Sessions
from rxagent.models.wire import HttpCall, Target, Wire

KeySource = str | Callable[[], str | Awaitable[str]]
_REST = 0.75  # seconds; usage follows the finish reason at once, if it comes
_ERROR_BODY = 1 << 20  # bytes of an error's body that are read


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpOptions:
    """How requests are sent.

    Args:
        headers: sent with every request, over those of the wire.
        body: merged into every request's body.
        query: appended to every request's URL.
        proxy: URL of a proxy; without it the usual environment variables are heeded.
        connect_timeout: seconds for making a connection.
        max_event: bytes that one event of a stream, or an unstreamed answer, may have.
        on_payload: sees each body before it is sent; what it returns, if anything, is sent instead.
        on_response: sees status and headers of each answer.

    """

    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    body: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    query: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    proxy: str | None = field(default=None, repr=False)
    connect_timeout: float = 15.0
    max_event: int = 32 << 20
    on_payload: Callable[[JsonObject], JsonObject | None] | None = None
    on_response: Callable[[int, Mapping[str, str]], None] | None = None


class HttpModel:
    """A `Model` over HTTP: writes requests with ``wire`` and reads the answers with its decoder.

    Args:
        wire: the protocol.
        target: which model at which endpoint.
        api_key: the key, or a function (sync or async) that gives it for each request.
        options: how requests are sent.

    """

    def __init__(self, wire: Wire, target: Target, *, api_key: KeySource | None = None, options: HttpOptions | None = None) -> None:
        self._wire = wire
        self._target = target
        self._key = api_key
        self._options = options or HttpOptions()
        self._sessions = Sessions(connect_timeout=self._options.connect_timeout)

    @property
    def name(self) -> str:
        """What messages call it."""
        return self._target.name

    @property
    def provider(self) -> str:
        """Whose key it needs."""
        return self._target.endpoint.provider

    @property
    def wire(self) -> str:
        """The protocol's name."""
        return self._wire.name

    def __repr__(self) -> str:
        return f"HttpModel({self.name!r}, {self._wire.name} at {_shown(self._target.endpoint.base_url)})"

    async def aclose(self) -> None:
        """Closes the connections of the running loop. Without it they are closed with the loop."""
        await self._sessions.aclose()

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Sends the request and reads its answer."""
        reader = BodyReader(self._wire.decoder(request, self._target), self._options.max_event)
        response: aiohttp.ClientResponse | None = None
        try:
            try:
                response = await self._post(request)
                if self._options.on_response is not None:
                    self._options.on_response(response.status, response.headers)
                if response.status >= 400:
                    raw = reader.plain(await _head(response, _ERROR_BODY))
                    events = [error_of_bytes(raw, response.status, _lower(response.headers))]
                else:
                    events = []
                    async for chunk in response.content.iter_any():
                        for event in reader.feed(chunk):
                            yield event
                        if reader.complete:
                            events = await _rest(response, reader)
                            break
                    else:
                        events = reader.end()
            except (aiohttp.ClientError, OSError, TimeoutError) as error:
                events = reader.broken(_failure(error, self._target.endpoint.base_url))
            except ValueError as error:
                # a hook, a key or a URL: the calling program's
                events = reader.broken(ModelError("invalid_request", f"the request could not be sent: {error}"))
            for event in events:
                yield event
        finally:
            if response is not None:
                _release(response)

    async def _post(self, request: ModelRequest) -> aiohttp.ClientResponse:
        call = self._wire.call(request, self._target)
        options = self._options
        body: JsonObject = {**call.body, **options.body, **request.options}
        if options.on_payload is not None:
            body = options.on_payload(body) or body
        headers = {
            "Content-Type": "application/json",
            "Accept": "text/event-stream" if request.streaming else "application/json",
            # compressed streams arrive late; gzip is understood nevertheless
            "Accept-Encoding": "identity",
            **self._target.endpoint.headers,
            **call.headers,
            **await self._auth(request),
            **options.headers,
            **request.headers,
        }
        session = self._sessions.get()
        return await session.post(self._url(call), data=to_json(body), headers=headers, proxy=options.proxy, allow_redirects=False)

    async def _auth(self, request: ModelRequest) -> dict[str, str]:
        key: object = request.api_key if request.api_key is not None else self._key
        if callable(key):
            key = key()
            if inspect.isawaitable(key):
                key = await cast("Awaitable[object]", key)
        if not key:
            return {}
        header, prefix = self._target.endpoint.key_header
        return {header: f"{prefix}{key}"}

    def _url(self, call: HttpCall) -> URL:
        endpoint = self._target.endpoint
        url = URL(endpoint.base_url)
        if url.path in ("", "/") and endpoint.version_path:
            url = url.with_path(endpoint.version_path)
        path = url.path.rstrip("/")
        if not path.endswith(call.path):
            # one joint segment may be in both: https://host/v1 + /v1/messages
            first = "/" + call.path.split("/", 2)[1]
            path = path.removesuffix(first) + call.path
        return url.with_path(path, keep_query=True).update_query({**endpoint.query, **call.query, **self._options.query})


def _release(response: aiohttp.ClientResponse) -> None:
    """Gives the connection back if the answer was read to its last byte, and closes it otherwise."""
    if response.content.is_eof():
        response.release()
    else:
        response.close()


async def _head(response: aiohttp.ClientResponse, limit: int) -> bytes:
    parts: list[bytes] = []
    try:
        async for chunk in response.content.iter_any():
            parts.append(chunk)
            limit -= len(chunk)
            if limit <= 0:
                break
    except (aiohttp.ClientError, OSError):
        # the status has said it all; what there is of the body is a help
        pass
    return b"".join(parts)


async def _rest(response: aiohttp.ClientResponse, reader: BodyReader) -> list[ModelEvent]:
    """What follows a whole answer. Servers that say no more and keep the connection open don't delay its end for long."""
    events: list[ModelEvent] = []
    try:
        async with asyncio.timeout(_REST):
            while not reader.done and (chunk := await response.content.readany()):
                events += reader.feed(chunk)
    except (aiohttp.ClientError, OSError, TimeoutError):
        # usage may be missing then, the answer isn't
        pass
    return events + reader.end()


def _lower(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


def _shown(url: str) -> str:
    parts = URL(url)
    return str(parts.with_user(None).with_query(None)) if parts.user or parts.query_string else url


def _failure(error: Exception, base_url: str) -> ModelError:
    where = _shown(base_url)
    words = str(error) or type(error).__name__
    if isinstance(error, aiohttp.InvalidURL):
        return ModelError("invalid_request", f"{where} is no URL that can be asked")
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        return ModelError("timeout", f"no connection to {where} within the time limit", retryable=True)
    if isinstance(error, aiohttp.ClientConnectorCertificateError | aiohttp.ClientSSLError):
        return ModelError("transport", f"no secure connection to {where}: {words}")
    if isinstance(error, aiohttp.ClientConnectorError):
        return ModelError("transport", f"no connection to {where}: {words}. Is the server running, and is the base URL right?", retryable=True)
    if isinstance(error, TimeoutError):
        return ModelError("timeout", f"{where} was silent for too long: {words}", retryable=True)
    return ModelError("transport", f"the connection to {where} broke: {words}", retryable=True)
