"""`resolve`: a model by its name. Wires and HTTP are imported when a name needs them."""

import importlib
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import cast
from urllib.parse import urlsplit

from rxagent.errors import MissingKey, UnknownModel, UsageError
from rxagent.models.base import Model
from rxagent.models.endpoints import ALIASES, COMPATIBLE, ENDPOINTS
from rxagent.models.options import HttpOptions, KeySource
from rxagent.models.wire import Endpoint, Switches, Target, Wire

_WIRES: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "openai-chat": ("rxagent.models.openai_chat", "ChatWire"),
        "openai-responses": ("rxagent.models.openai_responses", "ResponsesWire"),
        "anthropic": ("rxagent.models.anthropic", "AnthropicWire"),
        "gemini": ("rxagent.models.gemini", "GeminiWire"),
    }
)
_FAMILIES = (
    ("gpt-", "openai"),
    ("o1", "openai"),
    ("o3", "openai"),
    ("o4", "openai"),
    ("claude", "anthropic"),
    ("gemini", "gemini"),
)


def resolve(
    name: str,
    *,
    base_url: str | None = None,
    api_key: KeySource | None = None,
    options: HttpOptions | None = None,
    switches: Switches | None = None,
) -> Model:
    """Gives the model of a name.

    ``"openai:gpt-…"``, ``"anthropic:claude-…"``, ``"gemini:…"``, ``"ollama:llama3.2"``, …: a provider's prefix
    and its name for the model. ``"local"`` is the first compatible server found on this machine,
    ``"demo"`` the built-in offline model. Any name goes with a ``base_url`` of a compatible server.

    Args:
        name: ``provider:model``.
        base_url: in place of the provider's own; a path such as ``/v1`` is added where there is none.
        api_key: in place of the provider's environment variable; ``""`` sends none; a function is asked for each request.
        options: headers, proxy, hooks, recording.
        switches: what the server takes, where the table has it wrong.

    Raises:
        UnknownModel: no such provider; the message lists them.
        MissingKey: the provider wants a key and there is none; names the variable.
    """
    name = name.strip()
    prefix, colon, model = name.partition(":")
    prefix = ALIASES.get(prefix.lower(), prefix.lower())
    if name == "demo" or prefix == "demo":
        return cast("Model", _load("rxagent.models.demo", "DemoModel")())
    if prefix == "local" and base_url is None:
        return cast("Model", _load("rxagent.models.local", "LocalModel")(model, options=options))
    if base_url is not None and (not colon or prefix not in ENDPOINTS):
        # "llama3.2:3b" has a colon too
        prefix, model = "compatible", name
    endpoint = ENDPOINTS.get(prefix)
    if endpoint is None or not model:
        raise _unknown(name, prefix, endpoint)
    endpoint = _at(endpoint, base_url, name)
    if switches is not None:
        endpoint = replace(endpoint, switches=switches)
    key = _key(endpoint, api_key, name, explicit=base_url is not None)
    target = Target(name=f"{endpoint.provider}:{model}", model=model, endpoint=endpoint)
    return http_model(target, key, options)


def http_model(target: Target, api_key: KeySource | None = None, options: HttpOptions | None = None) -> Model:
    """A model at an endpoint of one's own making.

    Raises:
        UsageError: the endpoint's wire is none of ours, or its base URL is no URL.
    """
    if target.endpoint.wire not in _WIRES:
        raise UsageError(f"no wire is called {target.endpoint.wire!r}; there are {', '.join(_WIRES)}")
    wire = cast("Wire", _load(*_WIRES[target.endpoint.wire])())
    return cast("Model", _load("rxagent.models.transport", "HttpModel")(wire, target, api_key=api_key, options=options))


def _load(module: str, attribute: str) -> Callable[..., object]:
    return cast("Callable[..., object]", getattr(importlib.import_module(module), attribute))


def _unknown(name: str, prefix: str, endpoint: Endpoint | None) -> UnknownModel:
    if endpoint is not None:
        return UnknownModel(f"{name!r} names no model: write {prefix}:MODEL")
    provider, slash, rest = name.partition("/")
    likely = next((family for start, family in _FAMILIES if name.lower().startswith(start)), None)
    hint = ""
    if slash and provider.lower() in ENDPOINTS:
        hint = f" Did you mean {provider.lower()}:{rest}?"
    elif likely and ":" not in name:
        hint = f" Did you mean {likely}:{name}?"
    return UnknownModel(
        f"no provider serves {name!r}.{hint} Write PROVIDER:MODEL with one of {', '.join(ENDPOINTS)}; "
        '"demo" works offline, "local" finds a server on this machine, and any other compatible server goes by base_url.'
    )


def _at(endpoint: Endpoint, base_url: str | None, name: str) -> Endpoint:
    url = base_url
    if url is None:
        url = next(
            (value for variable in endpoint.base_env if (value := os.environ.get(variable, "").strip())), endpoint.base_url
        )
    if not url:
        wanted = f" or set {endpoint.base_env[0]}" if endpoint.base_env else ""
        raise UsageError(f"{name!r} needs to know its server: give base_url{wanted}")
    if "://" not in url:
        url = f"http://{url}"  # OLLAMA_HOST is often just a host and a port
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UsageError(f"the base URL of {name!r} is no http or https URL: {url!r}")
    url = url.rstrip("/")
    if parts.hostname == urlsplit(endpoint.base_url).hostname or endpoint.wire != "openai-chat" or not endpoint.base_url:
        return replace(endpoint, base_url=url)
    # another server of the chat wire: what the table says of that one, or what any compatible server takes
    known = next(
        (row for row in ENDPOINTS.values() if row.base_url and _host(row.base_url) == parts.hostname and row.key_env), None
    )
    return replace(endpoint, base_url=url, switches=known.switches if known else _foreign(endpoint))


def _foreign(endpoint: Endpoint) -> Switches:
    return COMPATIBLE if endpoint.provider == "openai" else endpoint.switches


def _host(url: str) -> str | None:
    return urlsplit(url).hostname


def _key(endpoint: Endpoint, given: KeySource | None, name: str, *, explicit: bool) -> KeySource | None:
    if given is not None:
        return given.strip() if isinstance(given, str) else given
    found = next((value for variable in endpoint.key_env if (value := os.environ.get(variable, "").strip())), None)
    if found is None and endpoint.key_env and not explicit:
        raise MissingKey(
            f"{name!r} needs an API key: set {' or '.join(endpoint.key_env)}, or give api_key. "
            'The model "demo" works without one.'
        )
    return found
