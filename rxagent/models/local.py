"""`"local"`: the first OpenAI-compatible server that answers on this machine's usual ports."""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import replace

import aiohttp

from rxagent.events.model import ModelError, ModelEvent
from rxagent.models.base import ModelRequest
from rxagent.models.endpoints import ENDPOINTS, LOCAL
from rxagent.models.fields import as_list, as_object, as_text
from rxagent.models.openai_chat import ChatWire
from rxagent.models.options import HttpOptions
from rxagent.models.transport import HttpModel
from rxagent.models.wire import Endpoint, Target

_PATIENCE = 1.0  # seconds that a server on this machine may take to list its models


class LocalModel:
    """Looks for a server at the first request and stays with it.

    Args:
        model: the model to look for; empty: the first that a server lists.
        endpoints: where to look, in order.

    """

    def __init__(
        self, model: str = "", *, options: HttpOptions | None = None, endpoints: tuple[Endpoint, ...] | None = None
    ) -> None:
        self._wanted = model
        self._options = options
        self._endpoints = endpoints if endpoints is not None else tuple(ENDPOINTS[name] for name in LOCAL)
        self._found: HttpModel | None = None

    @property
    def name(self) -> str:
        """``local``, and once a server is found, its name for the model."""
        return self._found.name if self._found else f"local:{self._wanted}" if self._wanted else "local"

    @property
    def provider(self) -> str:
        """No key is asked for."""
        return "local"

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        """Answers by the server found; fails with ``transport`` where there is none."""
        if self._found is None:
            self._found = await self._find()
        if self._found is None:
            tried = ", ".join(f"{e.provider} ({e.base_url})" for e in self._endpoints)
            what = f"a server with the model {self._wanted!r}" if self._wanted else "a model server"
            yield ModelError(
                "transport", f"{what} was not found on this machine; looked for {tried}. Start one, or give base_url."
            )
            return
        stream = self._found.stream(request)
        try:
            async for event in stream:
                yield event
        finally:
            await stream.aclose()

    async def _find(self) -> HttpModel | None:
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=_PATIENCE)) as session:
            lists = await asyncio.gather(*(_models(session, endpoint) for endpoint in self._endpoints))
        for endpoint, models in zip(self._endpoints, lists, strict=True):
            model = next((m for m in models if not self._wanted or m == self._wanted or m.split(":")[0] == self._wanted), None)
            if model is not None:
                target = Target(name=f"{endpoint.provider}:{model}", model=model, endpoint=replace(endpoint, key_env=()))
                return HttpModel(ChatWire(), target, options=self._options)
        return None


async def _models(session: aiohttp.ClientSession, endpoint: Endpoint) -> list[str]:
    try:
        async with session.get(f"{endpoint.base_url}/models") as response:
            listed = as_object(await response.json(content_type=None) if response.status == 200 else None)
    except (aiohttp.ClientError, OSError, TimeoutError, ValueError):
        return []
    return [name for item in as_list(listed.get("data")) if (name := as_text(as_object(item).get("id")))]
