"""What the wires write: thinking by model, cache marks, replay in place, ids, images, structured output."""

import itertools

import pytest

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
from rxagent.models.wire import Endpoint, Switches, Target

HI = UserMessage("hi")
ADD = ToolDeclaration("add", "Adds.", {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]})
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}, "required": ["n"]}
WIRES = {"anthropic": AnthropicWire(), "openai-responses": ResponsesWire(), "gemini": GeminiWire()}


def call_of(wire, model, switches=None, **fields):
    endpoint = ENDPOINTS[wire]
    if switches is not None:
        endpoint = type(endpoint)(provider=wire, wire=wire, base_url="http://x", switches=switches)
    return WIRES[wire].call(
        ModelRequest(**{"messages": (HI,), **fields}), Target(name=f"{wire}:{model}", model=model, endpoint=endpoint)
    )


def body(wire, model, **fields):
    return call_of(wire, model, **fields).body


def asked(*parts):
    return AssistantMessage(parts, stop_reason="tool_use")


# thinking


@pytest.mark.parametrize(
    ("model", "level", "thinking", "config"),
    [
        ("claude-3-5-sonnet-latest", "high", None, None),
        ("claude-3-7-sonnet-20250219", "low", {"type": "enabled", "budget_tokens": 4096}, None),
        ("claude-opus-4-20250514", "medium", {"type": "enabled", "budget_tokens": 10_000}, None),
        ("claude-haiku-4-5-20251001", "high", {"type": "enabled", "budget_tokens": 20_000}, None),
        ("claude-haiku-4-5", "off", None, None),
        ("claude-sonnet-4-6", "xhigh", {"type": "adaptive"}, {"effort": "high"}),
        ("claude-opus-4-6", "xhigh", {"type": "adaptive"}, {"effort": "max"}),
        ("anthropic/claude-opus-4.6", "low", {"type": "adaptive"}, {"effort": "low"}),
        ("claude-opus-4-7", "minimal", {"type": "adaptive", "display": "summarized"}, {"effort": "low"}),
        ("claude-opus-4-8", "off", None, None),
        ("claude-sonnet-5", "off", {"type": "disabled"}, None),
        ("claude-sonnet-5", "xhigh", {"type": "adaptive", "display": "summarized"}, {"effort": "xhigh"}),
        ("claude-opus-5-5", "off", None, {"effort": "low"}),
        ("claude-fable-5", "off", None, {"effort": "low"}),
        ("claude-mythos-preview", "medium", {"type": "adaptive", "display": "summarized"}, {"effort": "medium"}),
        ("kimi-k2-thinking", "low", {"type": "enabled", "budget_tokens": 4096}, None),
    ],
)
def test_claude_thinks_as_its_generation_does(model, level, thinking, config):
    written = body("anthropic", model, thinking_level=level)
    assert (written.get("thinking"), written.get("output_config")) == (thinking, config)
    assert written["max_tokens"] > (thinking or {}).get("budget_tokens", 0)


def test_a_budget_stays_below_the_cap():
    assert body("anthropic", "claude-sonnet-4-5", thinking_level="high", max_tokens=5000)["thinking"]["budget_tokens"] < 5000
    assert "thinking" not in body("anthropic", "claude-sonnet-4-5", thinking_level="high", max_tokens=1500)


def test_a_budget_is_not_asked_for_in_the_middle_of_a_turn_that_began_without_thinking():
    unsigned = (HI, asked(ToolCall("t", "add", {"a": 1})), ToolResultMessage("t", "add", "1"))
    assert "thinking" not in body("anthropic", "claude-sonnet-4-5", messages=unsigned, thinking_level="high")
    signed = ThinkingPart("hm", replay={"wire": "anthropic", "model": "claude-sonnet-4-5", "signature": "s"})
    begun = (HI, asked(signed, ToolCall("t", "add", {"a": 1})), ToolResultMessage("t", "add", "1"))
    assert "thinking" in body("anthropic", "claude-sonnet-4-5", messages=begun, thinking_level="high")


def test_the_switch_overrides_how_thinking_is_asked_for():
    written = call_of("anthropic", "glm-5", switches=Switches(thinking="adaptive"), thinking_level="low").body
    assert written["thinking"]["type"] == "adaptive"


@pytest.mark.parametrize(("model", "kept"), [("claude-sonnet-4-5", True), ("claude-opus-4-7", False), ("claude-sonnet-5", False)])
def test_temperature_is_left_out_where_it_is_refused(model, kept):
    assert ("temperature" in body("anthropic", model, temperature=0.5)) is kept
    assert "temperature" not in body("anthropic", model, temperature=0.5, thinking_level="low")


@pytest.mark.parametrize(
    ("model", "level", "effort"),
    [
        ("gpt-4o", "high", None),
        ("gpt-5", "off", "minimal"),
        ("gpt-5-mini", "xhigh", "high"),
        ("gpt-5-chat-latest", "high", None),
        ("gpt-5.1", "off", "none"),
        ("gpt-5.1", "minimal", "low"),
        ("gpt-5.2", "xhigh", "xhigh"),
        ("gpt-5.2-pro", "low", "high"),
        ("gpt-5.1-codex-max", "xhigh", "xhigh"),
        ("gpt-6-sol", "off", "none"),
        ("o3", "off", "low"),
        ("openai/o4-mini", "high", "high"),
        ("somebody-elses", "off", None),
        ("somebody-elses", "medium", "medium"),
    ],
)
def test_effort_by_openai_model(model, level, effort):
    written = body("openai-responses", model, thinking_level=level)
    assert written.get("reasoning", {}).get("effort") == effort
    assert ("include" in written) is (effort is not None)


@pytest.mark.parametrize(
    ("model", "level", "config"),
    [
        ("gemini-2.0-flash", "high", None),
        ("gemini-2.5-flash", "off", {"includeThoughts": False, "thinkingBudget": 0}),
        ("gemini-2.5-flash", "medium", {"includeThoughts": True, "thinkingBudget": 8192}),
        ("gemini-2.5-pro", "off", {"includeThoughts": False, "thinkingBudget": 128}),
        ("gemini-3-pro-preview", "off", {"includeThoughts": False, "thinkingLevel": "low"}),
        ("gemini-3-pro-preview", "medium", {"includeThoughts": True, "thinkingLevel": "high"}),
        ("gemini-3.1-pro-preview", "medium", {"includeThoughts": True, "thinkingLevel": "medium"}),
        ("gemini-3-flash-preview", "minimal", {"includeThoughts": True, "thinkingLevel": "minimal"}),
        ("gemini-3.7-flash", "minimal", {"includeThoughts": True, "thinkingLevel": "low"}),
        ("gemini-flash-latest", "xhigh", {"includeThoughts": True, "thinkingLevel": "high"}),
        ("gemini-2.5-flash-image", "high", None),
        ("gemma-3", "high", None),
    ],
)
def test_thinking_by_gemini_model(model, level, config):
    assert body("gemini", model, thinking_level=level).get("generationConfig", {}).get("thinkingConfig") == config


# transcripts


def mixed(wire, model):
    replay = {"wire": wire, "model": model}
    own = {
        "anthropic": {**replay, "signature": "sig"},
        "openai-responses": {**replay, "item": {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "enc"}},
        "gemini": {**replay, "thoughtSignature": "sig"},
    }[wire]
    call = ToolCall("call_1", "add", {"a": 1}, replay={**replay, "id": "fc_1", "thoughtSignature": "sig2"})
    return (HI, asked(ThinkingPart("hm", replay=own), call), ToolResultMessage("call_1", "add", "1"), UserMessage("go on"))


def test_claudes_signed_thinking_goes_back_before_its_call():
    written = body("anthropic", "claude-a", messages=mixed("anthropic", "claude-a"))["messages"][1]["content"]
    assert [block["type"] for block in written] == ["thinking", "tool_use"]
    assert written[0] == {"type": "thinking", "thinking": "hm", "signature": "sig"}


@pytest.mark.parametrize(("model", "sent"), [("kimi-k2-thinking", True), ("claude-sonnet-4-5", False)])
def test_unsigned_thinking_goes_back_to_models_that_do_not_sign(model, sent):
    thinking = ThinkingPart("hm", replay={"wire": "anthropic", "model": model, "unsigned": True})
    messages = (HI, asked(thinking, ToolCall("t", "add", {"a": 1})), ToolResultMessage("t", "add", "1"))
    written = body("anthropic", model, messages=messages)["messages"][1]["content"]
    assert (written[0] == {"type": "thinking", "thinking": "hm", "signature": ""}) is sent


def test_openais_encrypted_reasoning_goes_back_before_its_call():
    written = body("openai-responses", "gpt-a", messages=mixed("openai-responses", "gpt-a"))["input"]
    assert [item.get("type", item.get("role")) for item in written] == [
        "user",
        "reasoning",
        "function_call",
        "function_call_output",
        "user",
    ]
    assert written[1]["encrypted_content"] == "enc"
    assert written[2]["id"] == "fc_1"


def test_items_of_openais_own_tools_go_back_in_their_place():
    item = {"type": "web_search_call", "id": "ws_1", "status": "completed"}
    extras = {"wire": "openai-responses", "model": "gpt-a", "extras": [{"at": 1, "item": item}]}
    (_, answer, *rest) = mixed("openai-responses", "gpt-a")
    answer = AssistantMessage((answer.content[0], TextPart("found"), answer.content[1]), stop_reason="tool_use", replay=extras)
    written = body("openai-responses", "gpt-a", messages=(HI, answer, *rest))["input"]
    assert [item.get("type", item.get("role")) for item in written[1:5]] == [
        "reasoning",
        "web_search_call",
        "assistant",
        "function_call",
    ]


def test_blocks_of_claudes_own_tools_go_back_in_their_place():
    use = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"q": "x"}}
    result = {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []}
    halves = [{**use, "id": "s2"}, {**result, "tool_use_id": "s3"}]
    other = {"type": "compaction", "content": "…"}
    kept = [{"at": at, "item": item} for at, item in ((0, other), (1, use), (1, result), (1, halves[0]), (2, halves[1]))]
    said = (TextPart("Let me look."), TextPart("Found."))
    answer = AssistantMessage(said, stop_reason="stop", replay={"wire": "anthropic", "model": "claude-a", "extras": kept})
    for model, expected in (
        ("claude-a", [other, "Let me look.", use, result, "Found."]),
        ("claude-b", ["Let me look.", "Found."]),
    ):
        written = body("anthropic", model, messages=(HI, answer, HI))["messages"][1]["content"]
        assert [block.get("text", block) for block in written] == expected


def test_geminis_signatures_go_back_with_their_parts():
    written = body("gemini", "gemini-3-a", messages=mixed("gemini", "gemini-3-a"))["contents"][1]["parts"]
    assert written[0] == {"text": "hm", "thought": True, "thoughtSignature": "sig"}
    assert written[1] == {"functionCall": {"id": "fc_1", "name": "add", "args": {"a": 1}}, "thoughtSignature": "sig2"}


@pytest.mark.parametrize("source", WIRES)
@pytest.mark.parametrize("target", WIRES)
def test_nothing_secret_of_another_model_goes_to_this_one(source, target):
    text = repr(body(target, "another-model", messages=mixed(source, "the-first-model")))
    assert "sig" not in text
    assert "enc'" not in text
    assert "fc_1" not in text
    assert "hm" not in text
    assert "add" in text


def test_gemini_3_is_told_that_a_call_of_another_model_has_no_signature():
    parts = body("gemini", "gemini-3-pro", messages=mixed("anthropic", "claude"))["contents"][1]["parts"]
    assert parts[0]["thoughtSignature"] == "skip_thought_signature_validator"
    assert (
        "thoughtSignature"
        not in body("gemini", "gemini-2.5-pro", messages=mixed("anthropic", "claude"))["contents"][1]["parts"][0]
    )


ODD = "functions.add:0|with/odd chars and a length beyond every limit, which is sixty-four"


@pytest.mark.parametrize("wire", WIRES)
def test_call_and_result_share_an_id_that_the_wire_takes(wire):
    messages = (
        HI,
        asked(ToolCall(ODD, "add", {"a": 1}), ToolCall(ODD + "!", "add", {"a": 2})),
        ToolResultMessage(ODD + "!", "add", "2"),
        ToolResultMessage(ODD, "add", "1"),
    )
    written = body(wire, "m", messages=messages)
    if wire == "gemini":
        responses = written["contents"][-1]["parts"]
        assert [part["functionResponse"]["response"]["output"] for part in responses] == ["1", "2"]
        return
    blocks = written["input"] if wire == "openai-responses" else [b for m in written["messages"] for b in m["content"]]
    calls = [b.get("call_id") or b.get("id") for b in blocks if b.get("type") in ("tool_use", "function_call")]
    results = [
        b.get("call_id") or b.get("tool_use_id") for b in blocks if b.get("type") in ("tool_result", "function_call_output")
    ]
    assert calls == results
    assert len(set(calls)) == 2
    assert all(len(i) <= 64 and i.replace("_", "").replace("-", "").isalnum() for i in calls)


def test_claude_gets_all_results_before_any_text_in_one_user_message():
    messages = (
        HI,
        asked(ToolCall("a", "add"), ToolCall("b", "add")),
        UserMessage("wait"),
        ToolResultMessage("b", "add", "2"),
        ToolResultMessage("a", "add", "1"),
    )
    written = body("anthropic", "claude", messages=messages)["messages"]
    assert [m["role"] for m in written] == ["user", "assistant", "user"]
    assert [b.get("tool_use_id", b["type"]) for b in written[2]["content"]] == ["a", "b", "text"]


@pytest.mark.parametrize("wire", ["anthropic", "gemini"])
def test_roles_alternate_and_the_user_begins(wire):
    messages = (AssistantMessage((TextPart("a"),)), AssistantMessage((TextPart("b"),)), HI, HI, AssistantMessage(()), HI)
    written = body(wire, "m", messages=messages)
    roles = [turn["role"] for turn in written["messages" if wire == "anthropic" else "contents"]]
    assert roles[0] == "user"
    assert all(one != other for one, other in itertools.pairwise(roles))


def test_at_most_four_cache_marks_and_never_on_an_answer():
    turns = tuple(m for n in range(5) for m in (UserMessage(f"q{n}"), AssistantMessage((TextPart(f"a{n}"),), stop_reason="stop")))
    written = body("anthropic", "claude", messages=(*turns, HI), system_prompt="s", tools=(ADD, ADD))
    marked = repr(written).count("cache_control")
    assert marked == 4
    assert all("cache_control" not in repr(m) for m in written["messages"] if m["role"] == "assistant")
    assert "cache_control" in repr(written["messages"][-1])


def test_no_cache_marks_where_the_server_has_none():
    assert "cache_control" not in repr(call_of("anthropic", "m", switches=Switches(cache=False), system_prompt="s").body)


def test_system_messages_within_the_history_stay_in_their_place():
    messages = (SystemMessage("one"), HI, AssistantMessage((TextPart("a"),)), SystemMessage("two"), HI)
    claude = body("anthropic", "m", messages=messages, system_prompt="zero")
    assert claude["system"][0]["text"] == "zero\n\none"
    assert "two" in claude["messages"][2]["content"][0]["text"]
    openai = body("openai-responses", "m", messages=messages, system_prompt="zero")
    assert openai["instructions"] == "zero"
    assert [item["role"] for item in openai["input"]] == ["system", "user", "assistant", "system", "user"]


def test_images_by_data_by_data_url_and_by_url():
    content = [ImagePart("QUJD", "image/gif"), ImagePart(url="data:image/webp;base64,REVG"), ImagePart(url="https://x/y.png")]
    messages = (UserMessage(content),)
    claude = [block["source"] for block in body("anthropic", "m", messages=messages)["messages"][0]["content"]]
    assert claude[0] == {"type": "base64", "media_type": "image/gif", "data": "QUJD"}
    assert claude[1] == {"type": "base64", "media_type": "image/webp", "data": "REVG"}
    assert claude[2] == {"type": "url", "url": "https://x/y.png"}
    openai = [part["image_url"] for part in body("openai-responses", "m", messages=messages)["input"][0]["content"]]
    assert openai == ["data:image/gif;base64,QUJD", "data:image/webp;base64,REVG", "https://x/y.png"]
    gemini = body("gemini", "m", messages=messages)["contents"][0]["parts"]
    assert gemini[1] == {"inlineData": {"mimeType": "image/webp", "data": "REVG"}}
    assert gemini[2]["fileData"]["fileUri"] == "https://x/y.png"


def test_an_image_of_a_kind_that_claude_refuses_is_said_in_words():
    block = body("anthropic", "m", messages=(UserMessage([ImagePart("QUJD", "image/bmp")]),))["messages"][0]["content"][0]
    assert "image/bmp" in block["text"]


def test_images_in_results_of_gemini_2_come_after_all_the_results():
    image = ToolResultMessage("a", "add", [ImagePart("QUJD")])
    messages = (HI, asked(ToolCall("a", "add"), ToolCall("b", "add")), image, ToolResultMessage("b", "add", "2"))
    parts = body("gemini", "gemini-2.5-pro", messages=messages)["contents"][-1]["parts"]
    assert [next(iter(part)) for part in parts] == ["functionResponse", "functionResponse", "inlineData"]


@pytest.mark.parametrize("wire", WIRES)
def test_arguments_that_were_no_json_are_shown_to_the_model_as_such(wire):
    messages = (HI, asked(ToolCall("a", "add", {}, invalid='{"a":')), ToolResultMessage("a", "add", "bad", is_error=True))
    assert "INVALID_JSON" in repr(body(wire, "m", messages=messages))


# structured output


def test_structured_output_by_model():
    claude = body("anthropic", "claude-sonnet-5", output_schema=SCHEMA)
    assert claude["output_config"]["format"]["schema"]["additionalProperties"] is False
    old = body("anthropic", "claude-3-7-sonnet", output_schema=SCHEMA, system_prompt="s")
    assert "output_config" not in old
    assert "JSON schema" in old["system"][0]["text"]
    openai = body("openai-responses", "gpt-5", output_schema=SCHEMA)["text"]["format"]
    assert openai["strict"] is True
    assert openai["schema"]["required"] == ["n"]
    gemini = body("gemini", "gemini-2.5-pro", output_schema=SCHEMA)["generationConfig"]
    assert gemini["responseMimeType"] == "application/json"
    assert gemini["responseSchema"]["properties"]["n"] == {"type": "integer", "minimum": 1}


def test_gemini_2_gets_the_schema_in_words_beside_tools():
    written = body("gemini", "gemini-2.5-pro", output_schema=SCHEMA, tools=(ADD,))
    assert "responseSchema" not in written["generationConfig"]
    assert "JSON schema" in written["systemInstruction"]["parts"][0]["text"]
    assert "responseSchema" in body("gemini", "gemini-3-pro", output_schema=SCHEMA, tools=(ADD,))["generationConfig"]


def test_an_effort_and_a_schema_share_claudes_output_config():
    config = body("anthropic", "claude-opus-4-6", output_schema=SCHEMA, thinking_level="low")["output_config"]
    assert config["effort"] == "low"
    assert config["format"]["type"] == "json_schema"


# the rest


def test_parallel_calls_are_switched_off_where_asked():
    off = {"tools": (ADD,), "parallel_tool_calls": False}
    assert body("anthropic", "m", **off)["tool_choice"] == {"type": "auto", "disable_parallel_tool_use": True}
    assert body("openai-responses", "m", **off)["parallel_tool_calls"] is False
    assert "tool_choice" not in body("anthropic", "m", parallel_tool_calls=False)


def test_nothing_is_kept_at_openai():
    assert body("openai-responses", "gpt-5")["store"] is False


def test_paths():
    assert call_of("anthropic", "m").path == "/v1/messages"
    assert call_of("anthropic", "m").headers == {"anthropic-version": "2023-06-01"}
    assert call_of("openai-responses", "m").path == "/responses"
    assert call_of("gemini", "gemini-2.5-pro").path == "/models/gemini-2.5-pro:streamGenerateContent"
    assert call_of("gemini", "gemini-2.5-pro").query == {"alt": "sse"}
    assert call_of("gemini", "tunedModels/x", streaming=False).path == "/tunedModels/x:generateContent"
    assert call_of("gemini", "m", streaming=False).query == {}


@pytest.mark.parametrize(
    ("base_url", "path"),
    [
        ("https://host/v1beta", "/models/m:streamGenerateContent"),
        ("https://host/gemini", "/v1beta/models/m:streamGenerateContent"),
        ("https://host/v1/projects/p/locations/l/publishers/google", "/models/m:streamGenerateContent"),
    ],
)
def test_geminis_base_url_may_have_the_version_or_not(base_url, path):
    target = Target(name="m", model="m", endpoint=Endpoint(provider="gemini", wire="gemini", base_url=base_url))
    assert GeminiWire().call(ModelRequest(messages=(HI,)), target).path == path
