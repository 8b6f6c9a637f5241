"""`HttpModel`: one model behind one HTTP endpoint, whatever its wire. All of the I/O of the wires is here.

One attempt per request; retries and time limits of the stream are the engine's. Closing the iterator
closes the connection at once.
"""

import asyncio
import inspect
from collections.abc import AsyncGenerator, Awaitable, Mapping
from typing import cast

import aiohttp
from pydantic_core import PydanticSerializationError, to_json
from yarl import URL

from rxagent.errors import UsageError
from rxagent.events.model import ModelError, ModelEvent
from rxagent.messages import JsonObject
from rxagent.models.base import ModelRequest
from rxagent.models.body import BodyReader
from rxagent.models.failures import failure_of, shown
from rxagent.models.mend import without_halves
from rxagent.models.options import HttpOptions, KeySource
from rxagent.models.prices import price_of
from rxagent.models.recording import Recording
from rxagent.models.sessions import Sessions
from rxagent.models.wire import HttpCall, Target, Wire

_STEP = 32_768  # bytes decoded at once
_REST = 0.75  # seconds; usage follows the finish reason at once, if it comes
_ERROR_BODY = 1 << 20  # bytes of an error's body that are read
_ERROR_TIME = 1.0  # seconds to read it in


class HttpModel:
    """A `Model` over HTTP: writes requests with ``wire`` and reads the answers with its decoder.

    Args:
        wire: the protocol.
        target: which model at which endpoint.
        api_key: the key, or a function (sync or async) that gives it for each request.
        options: how requests are sent.

    """

    def __init__(
        self, wire: Wire, target: Target, *, api_key: KeySource | None = None, options: HttpOptions | None = None
    ) -> None:
        self._wire = wire
        self._target = target
        self._key = api_key
        self._options = options or HttpOptions()
        self._sessions = Sessions(connect_timeout=self._options.connect_timeout)
        self._price = price_of(target.model, target.endpoint.provider, self._options.prices)

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
        return f"HttpModel({self.name!r}, {self._wire.name} at {shown(self._target.endpoint.base_url)})"

    async def aclose(self) -> None:
        """Closes the connections of the running loop. Without it they are closed with the loop."""
        await self._sessions.aclose()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        """Sends the request and reads its answer."""
        decoder = self._wire.decoder(request, self._target)
        decoder.price = self._price
        reader = BodyReader(decoder, self._options.max_event)
        exchange = _Exchange()
        try:
            try:
                key = decoder.secret = await self._key_for(request)
                response = await self._post(request, key, exchange)
                if response.status >= 300:
                    events = reader.refused(await _head(exchange), response.status, _lower(response.headers))
                else:
                    while not reader.done and (chunk := await (exchange.read_soon() if reader.complete else exchange.read())):
                        for at in range(0, len(chunk), _STEP):
                            for event in reader.feed(chunk[at : at + _STEP]):
                                yield event
                    events = reader.end()
            except (aiohttp.ClientError, OSError, TimeoutError) as error:
                exchange.then = "reset"
                events = reader.broken(failure_of(error, self._target.endpoint.base_url))
            except (ValueError, TypeError, UsageError) as error:
                # a message that can't be written, a hook, a key, a URL: the calling program's
                events = reader.broken(ModelError("invalid_request", f"the request could not be sent: {error}"))
            for event in events:
                yield event
        finally:
            exchange.close()
            if exchange.recording is not None:
                await exchange.recording.save(cast("str", self._options.record), exchange.then)

    async def _post(self, request: ModelRequest, key: str, exchange: "_Exchange") -> aiohttp.ClientResponse:
        call = self._wire.call(request, self._target)
        options = self._options
        body: JsonObject = {**call.body, **options.body, **request.options}
        if options.on_payload is not None:
            body = options.on_payload(body) or body
        if options.record is not None:
            exchange.recording = Recording(self._wire.name, body, key)
        header, prefix = self._target.endpoint.key_header
        headers = {
            "Content-Type": "application/json",
            "Accept": "text/event-stream" if request.streaming else "application/json",
            # compressed streams arrive late; gzip is understood nevertheless
            "Accept-Encoding": "identity",
            **self._target.endpoint.headers,
            **call.headers,
            **({header: f"{prefix}{key}"} if key else {}),
            **options.headers,
            **request.headers,
        }
        url = self._url(call)
        response = exchange.response = await self._sessions.get().post(
            url,
            data=_written(body),
            headers=headers,
            proxy=options.proxy or self._sessions.proxy_for(url),
            allow_redirects=False,
        )
        _read_in_small_steps(response)
        if options.on_response is not None:
            options.on_response(response.status, response.headers)
        if exchange.recording is not None:
            exchange.recording.response(response.status, response.headers)
        return response

    async def _key_for(self, request: ModelRequest) -> str:
        key: object = request.api_key if request.api_key is not None else self._key
        if callable(key):
            key = key()
            if inspect.isawaitable(key):
                key = await cast("Awaitable[object]", key)
        return str(key).strip() if key else ""

    def _url(self, call: HttpCall) -> URL:
        endpoint = self._target.endpoint
        url = URL(endpoint.base_url)
        path = url.path.rstrip("/") or endpoint.version_path
        if not path.endswith(call.path):
            # a first segment may be in both: https://host/v1 and /v1/messages
            path = path.removesuffix("/" + call.path.split("/", 2)[1]) + call.path
        return url.with_path(path, keep_query=True).update_query({**endpoint.query, **call.query, **self._options.query})


class _Exchange:
    """What one request holds open."""

    __slots__ = ("recording", "response", "then")

    def __init__(self) -> None:
        self.response: aiohttp.ClientResponse | None = None
        self.recording: Recording | None = None
        self.then = "close"

    def close(self) -> None:
        """Gives the connection back if the answer was read to its last byte, and closes it otherwise."""
        if self.response is None:
            return
        if self.response.content.is_eof():
            self.response.release()
        else:
            self.response.close()

    async def read(self) -> bytes:
        """The next bytes; none at the end."""
        assert self.response is not None
        chunk = await self.response.content.readany()
        if self.recording is not None and chunk:
            self.recording.chunk(chunk)
        return chunk

    async def read_soon(self) -> bytes:
        """The next bytes after a whole answer; a server that says no more and stays connected does not delay its end."""
        try:
            async with asyncio.timeout(_REST):
                return await self.read()
        except TimeoutError:
            return b""


def _read_in_small_steps(response: aiohttp.ClientResponse) -> None:
    """Take at most 64 KiB from the socket at a time.

    asyncio's own steps of 256 KiB come on top of a buffer that is full already: a consumer that is
    waited for would have more than that read ahead of it. Other loops' transports have no such step.
    """
    connection = response.connection
    transport = None if connection is None else connection.transport
    if isinstance(getattr(transport, "max_size", None), int):
        setattr(transport, "max_size", 64 * 1024)  # noqa: B010  # in no stub


async def _head(exchange: _Exchange) -> bytes:
    """The body of an error. The status has said the most; what can't be read of the body is no loss."""
    raw = b""
    try:
        async with asyncio.timeout(_ERROR_TIME):
            while len(raw) < _ERROR_BODY and (chunk := await exchange.read()):
                raw += chunk
    except (aiohttp.ClientError, OSError, TimeoutError):
        pass
    return raw


def _written(body: JsonObject) -> bytes:
    """The body as it is sent: a half of a character, which UTF-8 has no bytes for, becomes U+FFFD."""
    try:
        return to_json(body)
    except PydanticSerializationError:
        return to_json(without_halves(body))


def _lower(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}
