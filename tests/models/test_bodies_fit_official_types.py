"""Bodies of the wires, checked against the types of the vendors' own SDKs."""

import functools
from collections.abc import Iterable

import pytest
from pydantic import TypeAdapter

from rxagent.messages import (
    AssistantMessage,
    ImagePart,
    SystemMessage,
    TextPart,
    ThinkingPart,
    ToolCall,
    ToolDeclaration,
    ToolResultMessage,
    UserMessage,
)
from rxagent.models import ModelRequest
from rxagent.models.anthropic import AnthropicWire
from rxagent.models.endpoints import ENDPOINTS
from rxagent.models.gemini import GeminiWire
from rxagent.models.openai_responses import ResponsesWire
from rxagent.models.wire import Target

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
TOOLS = (
    ToolDeclaration(
        "add",
        "Adds.",
        {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a", "b"]},
    ),
    ToolDeclaration("now", "The time."),
    ToolDeclaration(
        "find",
        "Finds.",
        {
            "type": "object",
            "properties": {
                "what": {"anyOf": [{"type": "string", "maxLength": 9}, {"type": "null"}], "default": None, "title": "What"},
                "kind": {"enum": ["a", "b"], "type": "string"},
                "n": {"type": "integer", "exclusiveMinimum": 0},
                "tree": {"$ref": "#/$defs/Node"},
            },
            "$defs": {
                "Node": {"type": "object", "properties": {"children": {"type": "array", "items": {"$ref": "#/$defs/Node"}}}}
            },
            "additionalProperties": False,
        },
    ),
)
SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "zip": {"type": ["string", "null"], "pattern": "^\\d+$"}},
    "required": ["city", "zip"],
    "additionalProperties": False,
}
MODELS = {"anthropic": "claude-sonnet-4-5", "openai-responses": "gpt-5.1", "gemini": "gemini-3-pro-preview"}


def replay(wire, **fields):
    return {"wire": wire, "model": MODELS[wire], **fields}


def turn_of(wire, call_id):
    """An answer with thinking and two calls as this wire's decoder leaves it."""
    if wire == "anthropic":
        thinking = (ThinkingPart("hm", replay=replay(wire, signature="c2ln")), ThinkingPart("", replay=replay(wire, data="ZW5j")))
        calls = (ToolCall(call_id, "add", {"a": 1, "b": 2}), ToolCall(call_id + "b", "now"))
    elif wire == "openai-responses":
        item = {
            "type": "reasoning",
            "id": "rs_1",
            "summary": [{"type": "summary_text", "text": "hm"}],
            "encrypted_content": "ZW5j",
        }
        thinking = (ThinkingPart("hm", replay=replay(wire, item=item)),)
        calls = (
            ToolCall(call_id, "add", {"a": 1, "b": 2}, replay=replay(wire, id="fc_1")),
            ToolCall(call_id + "b", "now", replay=replay(wire, id="fc_2")),
        )
    else:
        thinking = (ThinkingPart("hm"),)
        calls = (
            ToolCall(call_id, "add", {"a": 1, "b": 2}, replay=replay(wire, id="g1", thoughtSignature="c2ln")),
            ToolCall(call_id + "b", "now", replay=replay(wire)),
        )
    answer = AssistantMessage(
        (*thinking, TextPart("Let me see."), *calls), stop_reason="tool_use", model=f"{wire}:{MODELS[wire]}"
    )
    return (
        answer,
        ToolResultMessage(call_id, "add", "3"),
        ToolResultMessage(call_id + "b", "now", [TextPart("noon"), ImagePart(PIXEL)], is_error=False),
    )


CONVERSATION = (
    SystemMessage("Be brief."),
    UserMessage(["Look:", ImagePart(PIXEL), ImagePart(url="https://example.org/a.png")]),
    *turn_of("anthropic", "toolu_01"),
    AssistantMessage((TextPart("Done."),), stop_reason="stop"),
    SystemMessage("It is late."),
    UserMessage("More."),
    *turn_of("openai-responses", "call_1"),
    UserMessage("And more."),
    *turn_of("gemini", "call_0"),
    AssistantMessage(
        (
            ToolCall(
                "a very odd id / with spaces and more than sixty-four characters in it, yes", "broken.name", {}, invalid='{"a":'
            ),
        ),
        stop_reason="tool_use",
    ),
    ToolResultMessage(
        "a very odd id / with spaces and more than sixty-four characters in it, yes", "broken.name", "", is_error=True
    ),
    AssistantMessage((ToolCall("orphan", "add", {"a": 1, "b": 1}),), stop_reason="tool_use"),
    UserMessage(""),
)
REQUESTS = {
    "plain": ModelRequest(messages=(UserMessage("hi"),)),
    "empty": ModelRequest(),
    "all": ModelRequest(
        messages=CONVERSATION,
        system_prompt="You help.",
        tools=TOOLS,
        thinking_level="medium",
        parallel_tool_calls=False,
        max_tokens=9000,
        session_id="s" * 80,
    ),
    "unstreamed": ModelRequest(messages=CONVERSATION, tools=TOOLS, streaming=False),
    "structured": ModelRequest(messages=CONVERSATION, output_schema=SCHEMA, temperature=0.2),
    "structured with tools": ModelRequest(messages=CONVERSATION, output_schema=SCHEMA, tools=TOOLS, thinking_level="xhigh"),
    "an answer last": ModelRequest(messages=(UserMessage("hi"), AssistantMessage((TextPart("Well, "),), stop_reason="stop"))),
}
LEVELS = ("off", "minimal", "low", "medium", "high", "xhigh")


def consumed(value):
    """Pydantic checks iterables only when they are read."""
    if isinstance(value, dict):
        return {key: consumed(item) for key, item in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, str | bytes):
        return [consumed(item) for item in value]
    return value


def body_of(wire, provider, request, model=None):
    target = Target(name=f"{provider}:{model or MODELS[provider]}", model=model or MODELS[provider], endpoint=ENDPOINTS[provider])
    return wire.call(request, target).body


def anthropic_body(request, model=None):
    return body_of(AnthropicWire(), "anthropic", request, model)


def responses_body(request, model=None):
    return body_of(ResponsesWire(), "openai-responses", request, model)


def gemini_body(request, model=None):
    return body_of(GeminiWire(), "gemini", request, model)


@functools.cache
def adapter(kind):
    # kept alive: pydantic's lazy iterators don't outlive it
    return TypeAdapter(kind)


def check_anthropic(body):
    params = pytest.importorskip("anthropic.types.message_create_params")
    kind = params.MessageCreateParamsStreaming if body["stream"] else params.MessageCreateParamsNonStreaming
    body.pop("temperature", None)  # gone from the SDK with the models that took one; those still served do
    assert consumed(adapter(kind).validate_python(body)) == body


def check_responses(body):
    params = pytest.importorskip("openai.types.responses.response_create_params")
    kind = params.ResponseCreateParamsStreaming if body["stream"] else params.ResponseCreateParamsNonStreaming
    assert consumed(adapter(kind).validate_python(body)) == body


def check_gemini(body):
    types = pytest.importorskip("google.genai.types")
    for content in [*body["contents"], *([body["systemInstruction"]] if "systemInstruction" in body else [])]:
        types.Content.model_validate(content)
    for tool in body.get("tools", []):
        types.Tool.model_validate(tool)
    types.GenerationConfig.model_validate(body.get("generationConfig", {}))
    assert set(body) <= {"contents", "systemInstruction", "tools", "generationConfig"}


@pytest.mark.parametrize("name", REQUESTS)
@pytest.mark.parametrize(
    "model", ["claude-3-5-haiku-latest", "claude-sonnet-4-5", "claude-opus-4-6", "claude-sonnet-5", "claude-opus-5-5", "kimi-k2"]
)
def test_anthropic(name, model):
    check_anthropic(anthropic_body(REQUESTS[name], model))


@pytest.mark.parametrize("name", REQUESTS)
@pytest.mark.parametrize("model", ["gpt-4o", "gpt-5.1", "o3", "gpt-6-sol", "other"])
def test_responses(name, model):
    check_responses(responses_body(REQUESTS[name], model))


@pytest.mark.parametrize("name", REQUESTS)
@pytest.mark.parametrize(
    "model", ["gemini-2.0-flash", "gemini-2.5-pro", "gemini-3-pro-preview", "gemini-3.7-flash", "gemini-flash-latest"]
)
def test_gemini(name, model):
    check_gemini(gemini_body(REQUESTS[name], model))


@pytest.mark.parametrize("level", LEVELS)
def test_every_thinking_level(level):
    request = ModelRequest(messages=(UserMessage("hi"),), thinking_level=level)
    for model in ("claude-opus-4-1", "claude-opus-4-8", "claude-haiku-5-5"):
        check_anthropic(anthropic_body(request, model))
    for model in ("gpt-5", "gpt-5.1-codex-max", "gpt-5-pro"):
        check_responses(responses_body(request, model))
    for model in ("gemini-2.5-flash", "gemini-3-flash-preview", "gemini-3.1-pro-preview"):
        check_gemini(gemini_body(request, model))
