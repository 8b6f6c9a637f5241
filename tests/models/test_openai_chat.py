"""Requests of the chat wire: what goes where, and that OpenAI's own types take it."""

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
from rxagent.models import ModelRequest, Switches, Target
from rxagent.models.endpoints import ENDPOINTS
from rxagent.models.openai_chat import ChatWire
from rxagent.models.wire import Endpoint

ADD = ToolDeclaration("add", "Adds.", {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]})
OPTIONAL = ToolDeclaration("find", "", {"type": "object", "properties": {"q": {"type": "string"}, "n": {"type": "integer"}}})
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
IMAGE = ImagePart("aGk=", "image/png")


def body(provider="openai", model="gpt-4o", switches=None, **fields):
    endpoint = (
        ENDPOINTS[provider]
        if switches is None
        else Endpoint(provider="x", wire="openai-chat", base_url="http://x", switches=switches)
    )
    target = Target(name=f"{provider}:{model}", model=model, endpoint=endpoint)
    return ChatWire().call(ModelRequest(**fields), target).body


def messages(*given, **options):
    return body(messages=given, **options)["messages"]


def asked(*calls, text=""):
    return AssistantMessage((*((TextPart(text),) if text else ()), *calls), stop_reason="tool_use")


CONVERSATION = (
    UserMessage(["look:", IMAGE]),
    AssistantMessage(
        (ThinkingPart("hm", replay={"wire": "anthropic", "signature": "s"}), TextPart("ok"), ToolCall("toolu_1", "add", {"a": 1}))
    ),
    ToolResultMessage("toolu_1", "add", [TextPart("2"), IMAGE]),
    SystemMessage("be brief"),
    UserMessage("and?"),
    AssistantMessage((TextPart("done"),), stop_reason="stop"),
)


def test_plain_text_is_text():
    assert body(messages=(UserMessage("hi"),), system_prompt="You help.") == {
        "model": "gpt-4o",
        "messages": [{"role": "system", "content": "You help."}, {"role": "user", "content": "hi"}],
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def test_images_are_parts():
    (message,) = messages(UserMessage(["look:", IMAGE, ImagePart(url="https://example.org/a.png")]))
    assert message["content"] == [
        {"type": "text", "text": "look:"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}},
        {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
    ]


def test_a_model_without_eyes_is_told_of_the_image():
    (message,) = messages(UserMessage([IMAGE]), provider="deepseek", model="deepseek-chat")
    assert message["content"][0]["type"] == "text"


def test_images_of_results_follow_after_all_results():
    written = messages(
        asked(ToolCall("a", "see"), ToolCall("b", "see")),
        ToolResultMessage("a", "see", [IMAGE]),
        ToolResultMessage("b", "see", [TextPart("text"), IMAGE]),
    )
    assert [m["role"] for m in written] == ["assistant", "tool", "tool", "user"]
    assert written[1]["content"]
    assert [part["type"] for part in written[3]["content"]] == ["image_url", "image_url"]


def test_calls_and_results_are_paired_in_order():
    written = messages(
        asked(ToolCall("a", "add", {"a": 1}), ToolCall("b", "add", {"a": 2}), text="so"),
        ToolResultMessage("b", "add", "2"),
        UserMessage("hurry"),
        ToolResultMessage("a", "add", "1"),
        ToolResultMessage("nobody", "add", "9"),
    )
    assert [(m["role"], m.get("tool_call_id")) for m in written] == [
        ("assistant", None),
        ("tool", "a"),
        ("tool", "b"),
        ("user", None),
    ]
    assert written[0]["content"] == "so"
    assert written[0]["tool_calls"][0] == {"id": "a", "type": "function", "function": {"name": "add", "arguments": '{"a":1}'}}


def test_a_call_without_a_result_gets_one():
    written = messages(asked(ToolCall("a", "add")), UserMessage("go on"))
    assert [m["role"] for m in written] == ["assistant", "tool", "user"]


def test_arguments_that_were_no_json_go_back_as_json():
    written = messages(asked(ToolCall("a", "add", {}, invalid='{"a":')), ToolResultMessage("a", "add", "bad", is_error=True))
    assert written[0]["tool_calls"][0]["function"]["arguments"] == '{"INVALID_JSON":"{\\"a\\":"}'


def test_ids_of_other_wires_take_the_form_this_one_demands():
    odd = "a very odd id / with spaces and far more than forty characters"
    written = messages(asked(ToolCall(odd, "add"), ToolCall(odd + "!", "add")), ToolResultMessage(odd, "add", "1"))
    ids = [call["id"] for call in written[0]["tool_calls"]]
    assert [m["tool_call_id"] for m in written[1:]] == ids
    assert len(set(ids)) == 2
    assert all(len(i) <= 40 and i.replace("_", "").replace("-", "").isalnum() for i in ids)


@pytest.mark.parametrize("call_id", ["call_0", "x", "abcdefghi", "toolu_01ABCDEFGHIJKLMN"])
def test_mistral_wants_nine_letters(call_id):
    written = messages(asked(ToolCall(call_id, "add")), ToolResultMessage(call_id, "add", "1"), provider="mistral")
    assert written[0]["tool_calls"][0]["id"] == written[1]["tool_call_id"]
    assert len(written[1]["tool_call_id"]) == 9
    assert written[1]["tool_call_id"].isalnum()


def test_thinking_of_another_wire_does_not_go_back():
    assert "hm" not in repr(body(messages=CONVERSATION))
    assert "hm" not in repr(body("deepseek", messages=CONVERSATION))


def test_own_reasoning_goes_back_in_the_field_that_the_server_reads():
    own = AssistantMessage(
        (ThinkingPart("hm", replay={"wire": "openai-chat", "field": "reasoning_content"}), ToolCall("a", "add"))
    )
    assert messages(own, provider="deepseek")[0]["reasoning_content"] == "hm"
    assert "hm" not in repr(messages(own, provider="openai"))


def test_reasoning_details_go_back_as_they_came():
    details = [{"type": "reasoning.encrypted", "data": "E"}]
    own = AssistantMessage((TextPart("a"),), replay={"wire": "openai-chat", "reasoning_details": details})
    assert messages(own, provider="openrouter")[0]["reasoning_details"] == details
    assert "reasoning_details" not in messages(own, provider="openai")[0]


def test_signatures_of_calls_go_back():
    extra = {"google": {"thought_signature": "s"}}
    written = messages(asked(ToolCall("a", "add", replay={"wire": "openai-chat", "extra_content": extra})))
    assert written[0]["tool_calls"][0]["extra_content"] == extra


def test_an_empty_answer_is_left_out():
    assert [m["role"] for m in messages(UserMessage("a"), AssistantMessage(()), UserMessage("b"))] == ["user", "user"]


def test_tools_are_strict_where_that_loses_nothing():
    tools = body(tools=(ADD, OPTIONAL))["tools"]
    assert tools[0]["function"]["strict"] is True
    assert tools[0]["function"]["parameters"]["additionalProperties"] is False
    assert "strict" not in tools[1]["function"]
    assert "strict" not in body("groq", tools=(ADD,))["tools"][0]["function"]


def test_a_tool_without_parameters_has_an_empty_object():
    parameters = body("groq", tools=(ToolDeclaration("now"),))["tools"][0]["function"]["parameters"]
    assert parameters == {"type": "object", "properties": {}}


def test_structured_output():
    assert body(output_schema=SCHEMA)["response_format"]["json_schema"]["strict"] is True
    deepseek = body("deepseek", output_schema=SCHEMA, system_prompt="You help.")
    assert deepseek["response_format"] == {"type": "json_object"}
    assert '"city"' in deepseek["messages"][0]["content"]
    assert deepseek["messages"][0]["content"].startswith("You help.")
    none = body(switches=Switches(structured_output="none"), output_schema=SCHEMA)
    assert "response_format" not in none
    assert '"city"' in none["messages"][0]["content"]


@pytest.mark.parametrize(
    ("provider", "model", "level", "expected"),
    [
        ("openai", "gpt-4o", "high", {}),
        ("openai", "gpt-5", "off", {"reasoning_effort": "minimal"}),
        ("openai", "gpt-5.1", "off", {"reasoning_effort": "none"}),
        ("openai", "o3", "medium", {"reasoning_effort": "medium"}),
        ("groq", "openai/gpt-oss-20b", "xhigh", {"reasoning_effort": "high"}),
        ("openrouter", "x/y", "low", {"reasoning": {"effort": "low"}}),
        ("deepseek", "deepseek-chat", "low", {"thinking": {"type": "enabled"}}),
        ("mistral", "m", "high", {}),
        ("groq", "m", "off", {}),
    ],
)
def test_thinking_levels(provider, model, level, expected):
    written = body(provider, model, thinking_level=level)
    assert {key: written[key] for key in ("reasoning_effort", "reasoning", "thinking") if key in written} == expected


def test_a_temperature_is_left_out_while_openai_reasons():
    assert "temperature" not in body(model="gpt-5", temperature=0.5)
    assert body(model="gpt-4o", temperature=0.5)["temperature"] == 0.5
    assert body(model="gpt-5.1", temperature=0.5)["temperature"] == 0.5


def test_caps_and_parallel_calls():
    assert body(max_tokens=9)["max_completion_tokens"] == 9
    assert body("ollama", max_tokens=9)["max_tokens"] == 9
    assert body(tools=(ADD,), parallel_tool_calls=False)["parallel_tool_calls"] is False
    assert "parallel_tool_calls" not in body(parallel_tool_calls=False)
    assert "stream_options" not in body("mistral")
    assert "stream_options" not in body(streaming=False)


REQUESTS = {
    "all": {
        "messages": CONVERSATION,
        "system_prompt": "s",
        "tools": (ADD, OPTIONAL),
        "parallel_tool_calls": True,
        "max_tokens": 5,
    },
    "structured": {"messages": CONVERSATION, "output_schema": SCHEMA, "temperature": 0.1, "streaming": False},
    "thinking": {"messages": CONVERSATION, "thinking_level": "high"},
    "empty": {},
}


@pytest.mark.parametrize("name", REQUESTS)
@pytest.mark.parametrize("model", ["gpt-4o", "gpt-5"])
def test_openais_own_types_take_it(name, model):
    params = pytest.importorskip("openai.types.chat.completion_create_params")
    written = body(model=model, **REQUESTS[name])
    kind = params.CompletionCreateParamsStreaming if written["stream"] else params.CompletionCreateParamsNonStreaming
    TypeAdapter(kind).validate_python(written, strict=False)
