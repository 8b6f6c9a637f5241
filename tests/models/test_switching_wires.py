"""A conversation that moves from wire to wire between turns stays valid for each: thinking, signatures, ids, results."""

import asyncio
import itertools
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st
from models import test_bodies_fit_official_types as fit

from rxagent import Agent, tool
from rxagent.messages import (
    AssistantMessage,
    ImagePart,
    SystemMessage,
    TextPart,
    ThinkingPart,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from rxagent.models import ModelRequest, resolve
from rxagent.models.options import HttpOptions

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    testing = pytest.importorskip("llmock.testing")
    from llmock.scenarios import Reply
    from llmock.scenarios import ToolCall as Called

pytestmark = pytest.mark.filterwarnings("ignore")  # the server's own, from its framework
SURFACES = {
    "openai": ("gpt-4o", "openai"),
    "openai-responses": ("gpt-5.1", "openai"),
    "anthropic": ("claude-sonnet-4-5", "anthropic"),
    "gemini": ("gemini-3-pro-preview", "gemini"),
}
CHECKS = {"openai-responses": fit.check_responses, "anthropic": fit.check_anthropic, "gemini": fit.check_gemini}


def check_chat(body):
    params = pytest.importorskip("openai.types.chat.completion_create_params")
    checked = fit.consumed(fit.adapter(params.CompletionCreateParamsStreaming).validate_python(body))
    assert set(checked) == set(body)
    roles = [message["role"] for message in body["messages"]]
    assert roles[-1] in ("user", "tool")


@pytest.fixture(scope="module")
def server():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with testing.LLMockServer() as running:
            yield running


ORDERS = [order[:3] for order in itertools.permutations(SURFACES)][::2]


@pytest.mark.parametrize("order", ORDERS, ids="→".join)
def test_an_agent_goes_on_with_another_model_after_every_turn(order, server):
    server.state.reset()
    bodies = []

    @tool
    def add(a: int, b: int) -> int:
        """Adds two numbers."""
        return a + b

    calls = (Called("add", {"a": 2, "b": 3}), Called("add", {"a": 1, "b": 1}))

    async def go():
        messages = ()
        for provider in order:
            server.state.scenarios.add(Reply(text="Let me.", tool_calls=calls))
            server.state.scenarios.add(Reply(text="Done."))
            name, surface = SURFACES[provider]
            options = HttpOptions(on_payload=lambda body, provider=provider: bodies.append((provider, body)))
            model = resolve(f"{provider}:{name}", base_url=server.base_url(surface), api_key="k", options=options)
            agent = Agent(model, tools=[add], messages=messages, thinking_level="medium")
            result = await agent.prompt("add 2 and 3")
            assert (result.outcome, result.text) == ("completed", "Done.")
            messages = tuple(agent.state.messages)
            await model.aclose()

    asyncio.run(go())
    assert len(bodies) == 6
    for provider, body in bodies:
        CHECKS.get(provider, check_chat)(body)


# transcripts that no test would think of

IDS = st.sampled_from(["", "a", "toolu_01", "call_1|fc_1", "x" * 90, "functions.add:0", "ö", "a", "b"])
REPLAYS = st.none() | st.fixed_dictionaries(
    {
        "wire": st.sampled_from(["anthropic", "openai-responses", "gemini", "openai-chat"]),
        "model": st.sampled_from(["m", *fit.MODELS.values()]),
    },
    optional={
        "signature": st.just("s"),
        "data": st.just("d"),
        "unsigned": st.just(True),
        "thoughtSignature": st.just("c2ln"),
        "id": st.sampled_from(["msg_1", "fc_1", "x"]),
        "item": st.just({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "e"}),
    },
)  # fmt: skip
TEXTS = st.sampled_from(["", " ", "\n", "hello", "ö 😀"])
USER_PARTS = st.builds(TextPart, TEXTS) | st.builds(ImagePart, st.just(fit.PIXEL), st.sampled_from(["image/png", "image/bmp"]))
ANSWER_PARTS = (
    st.builds(TextPart, TEXTS, replay=REPLAYS)
    | st.builds(ThinkingPart, TEXTS, replay=REPLAYS)
    | st.builds(ToolCall, IDS, st.sampled_from(["add", "a.b", ""]), st.just({"a": 1}), st.none() | st.just("{"), replay=REPLAYS)
)
MESSAGES = (
    st.builds(SystemMessage, TEXTS)
    | st.builds(UserMessage, st.lists(USER_PARTS, max_size=3))
    | st.builds(AssistantMessage, st.lists(ANSWER_PARTS, max_size=4).map(tuple), replay=REPLAYS)
    | st.builds(ToolResultMessage, IDS, st.sampled_from(["add", ""]), st.lists(USER_PARTS, max_size=2), is_error=st.booleans())
)
REQUESTS = st.builds(
    ModelRequest,
    messages=st.lists(MESSAGES, max_size=8).map(tuple),
    system_prompt=TEXTS,
    tools=st.sampled_from([(), fit.TOOLS]),
    thinking_level=st.sampled_from(fit.LEVELS),
    output_schema=st.none() | st.just(fit.SCHEMA),
    parallel_tool_calls=st.sampled_from([None, True, False]),
    max_tokens=st.none() | st.integers(1, 100_000),
)


@given(REQUESTS, st.sampled_from(["claude-sonnet-4-5", "claude-opus-4-6", "claude-sonnet-5", "kimi-k2"]))
def test_any_transcript_is_a_valid_anthropic_request(request, model):
    body = fit.anthropic_body(request, model)
    fit.check_anthropic(body)
    turns = body["messages"]
    assert [t["role"] for t in turns] == [("user", "assistant")[i % 2] for i in range(len(turns))]
    assert repr(body).count("cache_control") <= 4
    for asked, answered in itertools.pairwise(turns):
        calls = [b["id"] for b in asked["content"] if b["type"] == "tool_use"]
        results = [b["tool_use_id"] for b in answered["content"] if b["type"] == "tool_result"]
        assert calls == results
        assert [b["type"] for b in answered["content"][: len(results)]] == ["tool_result"] * len(results)
    assert not [b for t in turns for b in t["content"] if b["type"] == "text" and not b["text"].strip()]
    assert all(t["content"] for t in turns)


@given(REQUESTS, st.sampled_from(["gpt-4o", "gpt-5.1", "gpt-6-sol", "other"]))
def test_any_transcript_is_a_valid_responses_request(request, model):
    body = fit.responses_body(request, model)
    fit.check_responses(body)
    calls = [item["call_id"] for item in body["input"] if item.get("type") == "function_call"]
    results = [item["call_id"] for item in body["input"] if item.get("type") == "function_call_output"]
    assert sorted(calls) == sorted(results)


@given(REQUESTS, st.sampled_from(["gemini-2.5-flash", "gemini-3-pro-preview"]))
def test_any_transcript_is_a_valid_gemini_request(request, model):
    body = fit.gemini_body(request, model)
    fit.check_gemini(body)
    turns = body["contents"]
    assert [t["role"] for t in turns] == [("user", "model")[i % 2] for i in range(len(turns))]
    for asked, answered in itertools.pairwise(turns):
        calls = [p["functionCall"]["name"] for p in asked["parts"] if "functionCall" in p]
        results = [p["functionResponse"]["name"] for p in answered["parts"] if "functionResponse" in p]
        assert len(calls) == len(results)
        if calls and model.startswith("gemini-3"):
            assert "thoughtSignature" in next(p for p in asked["parts"] if "functionCall" in p)
    assert all(t["parts"] for t in turns)
