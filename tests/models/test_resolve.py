"""Models by name."""

import asyncio
import os
import subprocess
import sys

import pytest
import shared_cases as shared
from aiohttp import web

from rxagent.errors import MissingKey, UnknownModel, UsageError
from rxagent.events import model as m
from rxagent.messages import UserMessage
from rxagent.models import Model, ModelRequest, Price, Switches, resolve
from rxagent.models.endpoints import ENDPOINTS
from rxagent.models.local import LocalModel
from rxagent.models.prices import PRICES, price_of
from rxagent.models.wire import Endpoint


@pytest.fixture(autouse=True)
def no_keys(monkeypatch):
    for endpoint in ENDPOINTS.values():
        for name in (*endpoint.key_env, *endpoint.base_env):
            monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("provider", [p for p in ENDPOINTS if p not in ("azure", "compatible")])
def test_every_provider_resolves(provider):
    model = resolve(f"{provider}:some/model:tag", api_key="k")
    assert isinstance(model, Model)
    assert (model.name, model.provider) == (f"{provider}:some/model:tag", provider)


def test_azure_needs_its_resource(monkeypatch):
    with pytest.raises(UsageError, match="AZURE_OPENAI_ENDPOINT"):
        resolve("azure:gpt-4o", api_key="k")
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", "https://mine.openai.azure.com")
    assert "mine.openai.azure.com" in repr(resolve("azure:gpt-4o", api_key="k"))


@pytest.mark.parametrize("name", ["", "gpt-4o", "foo", "foo:bar", "openai:", "openai/gpt-4o", ":x", "claude-opus"])
def test_unknown_names_say_what_would_be_known(name):
    with pytest.raises(UnknownModel, match=r"anthropic|MODEL"):
        resolve(name)


@pytest.mark.parametrize(
    ("name", "hint"), [("gpt-4o", "openai:gpt-4o"), ("claude-x", "anthropic:claude-x"), ("groq/m", "groq:m")]
)
def test_a_likely_name_is_proposed(name, hint):
    with pytest.raises(UnknownModel, match=hint):
        resolve(name)


def test_a_missing_key_names_its_variable(monkeypatch):
    with pytest.raises(MissingKey, match="OPENAI_API_KEY"):
        resolve("openai:gpt-4o")
    monkeypatch.setenv("OPENAI_API_KEY", "  ")
    with pytest.raises(MissingKey):
        resolve("openai:gpt-4o")
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    assert resolve("openai:gpt-4o").name == "openai:gpt-4o"


@pytest.mark.parametrize("name", ["ollama:llama3.2", "lmstudio:m", "llama.cpp:m", "vllm:m", "demo"])
def test_local_servers_and_the_demo_need_no_key(name):
    resolve(name)


def test_an_empty_key_is_none_at_all():
    assert resolve("openai:m", api_key="").name == "openai:m"


@pytest.mark.parametrize("name", ["llama3.2:3b", "openai:m", "compatible:m", "m"])
def test_any_name_goes_with_a_base_url(name):
    model = resolve(name, base_url="http://localhost:9")
    assert model.name.endswith(name.removeprefix("openai:").removeprefix("compatible:"))


@pytest.mark.parametrize("url", ["ftp://x", "http://", "http:///v1"])
def test_a_base_url_that_is_none_is_told(url):
    with pytest.raises(UsageError, match="base URL"):
        resolve("openai:m", base_url=url)


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ("", "/v1/chat/completions"),
        ("/", "/v1/chat/completions"),
        ("/v1", "/v1/chat/completions"),
        ("/v1/", "/v1/chat/completions"),
        ("/proxy/openai/v1", "/proxy/openai/v1/chat/completions"),
        ("/v1/chat/completions", "/v1/chat/completions"),
    ],
)
def test_where_the_request_goes(given, path):
    assert asked_at(f"openai:m{''}", given) == path


def asked_at(name, path):
    seen = []

    async def handler(request):
        seen.append(request.path)
        return web.Response(status=500)

    async def main():
        app = web.Application()
        app.router.add_route("*", "/{tail:.*}", handler)
        async with shared.serving(app) as url:
            await shared.events_of(resolve(name, base_url=url + path, api_key="k"), ModelRequest())

    asyncio.run(main())
    return seen[0]


def test_the_environment_may_name_another_base_url(monkeypatch):
    monkeypatch.setenv("OLLAMA_HOST", "127.0.0.1:5")
    assert "http://127.0.0.1:5" in repr(resolve("ollama:m"))


def test_another_server_is_not_trusted_with_openais_own_fields():
    target = resolve("openai:m", base_url="http://localhost:9")._target
    assert target.switches == Switches()
    assert resolve("openai:m", base_url="https://api.deepseek.com/v1")._target.switches == ENDPOINTS["deepseek"].switches
    assert resolve("openai:m", base_url="https://api.openai.com/v1")._target.switches.strict_schemas
    assert resolve("openai:m", base_url="http://x", switches=Switches(images=False))._target.switches == Switches(images=False)


def test_importing_the_package_loads_no_provider():
    code = "import sys, rxagent.models; print([m for m in sys.modules if m in ('aiohttp', 'rxagent.models.transport')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=dict(os.environ))
    assert done.stdout.strip() == "[]"


# the demo model and "local"


def play(model, request):
    return asyncio.run(shared.events_of(model, request, idle=5))


def test_the_first_server_on_this_machine_is_found():
    async def models(request):
        return web.json_response({"object": "list", "data": [{"id": "embedder"}, {"id": "m1"}]})

    async def chat(request):
        body = await request.json()
        text = f'{{"choices":[{{"message":{{"content":"{body["model"]}"}},"finish_reason":"stop"}}]}}'
        return web.Response(text=text)

    async def main():
        app = web.Application()
        app.router.add_get("/v1/models", models)
        app.router.add_post("/v1/chat/completions", chat)
        async with shared.serving(app) as url:
            nobody = Endpoint(provider="a", wire="openai-chat", base_url="http://127.0.0.1:9/v1")
            somebody = Endpoint(provider="b", wire="openai-chat", base_url=f"{url}/v1")
            model = LocalModel("m1", endpoints=(nobody, somebody))
            before = model.name
            events = await shared.events_of(model, ModelRequest(messages=(UserMessage("hi"),)))
            return before, model.name, "".join(e.text for e in events if isinstance(e, m.TextDelta))

    assert asyncio.run(main()) == ("local:m1", "b:m1", "m1")


def test_no_server_on_this_machine_says_where_it_looked():
    nobody = Endpoint(provider="ollama", wire="openai-chat", base_url="http://127.0.0.1:9/v1")
    (event,) = play(LocalModel(endpoints=(nobody,)), ModelRequest())
    assert event.kind == "transport"
    assert "http://127.0.0.1:9/v1" in event.message


# prices


@pytest.mark.parametrize(
    ("model", "known"),
    [
        ("gpt-4o", "gpt-4o"),
        ("gpt-4o-2024-08-06", "gpt-4o"),
        ("claude-sonnet-4-5-20250929", "claude-sonnet-4-5"),
        ("claude-sonnet-4-20250514", "claude-sonnet-4"),
        ("claude-3-5-haiku-latest", "claude-3-5-haiku"),
        ("gemini-2.5-flash", "gemini-2.5-flash"),
        ("gpt-4o-audio", None),
        ("llama3.2", None),
    ],
)
def test_prices_are_found_by_name(model, known):
    assert price_of(model, "openai", PRICES) == (PRICES[known] if known else None)


def test_a_price_of_ones_own_comes_first():
    own = Price(1, 2)
    assert price_of("gpt-4o", "azure", {**PRICES, "azure:gpt-4o": own}) is own


def test_costs():
    price = Price(2, 8, 0.5, None, 1000, Price(4, 16))
    assert price.cost(m.Usage(1000, 100)) == pytest.approx(0.0028)
    assert price.cost(m.Usage(1000, 100, 500)) == pytest.approx((500 * 2 + 500 * 0.5 + 800) / 1e6)
    assert price.cost(m.Usage(1001, 100)) == pytest.approx((1001 * 4 + 1600) / 1e6)
    assert price.cost(m.Usage(1000, None)) is None
    assert price.cost(m.Usage(1000, 100, None, 5)) is None
