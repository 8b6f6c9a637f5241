"""The OpenAI chat completions wire, which most other servers speak too. Where they differ, `Switches` say how.

Source: https://platform.openai.com/docs/api-reference/chat/create
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import cast

from pydantic import JsonValue
from pydantic_core import to_json

from rxagent.messages import (
    AssistantMessage,
    ImagePart,
    JsonObject,
    SystemMessage,
    TextPart,
    ThinkingPart,
    ToolCall,
    ToolDeclaration,
    ToolResultMessage,
    UserMessage,
    UserPart,
)
from rxagent.models.base import ModelRequest
from rxagent.models.images import as_url
from rxagent.models.openai_chat_stream import WIRE, ChatDecoder
from rxagent.models.openai_models import effort_of
from rxagent.models.repair import CallIds, KnownMessage, repaired, without_foreign_replay
from rxagent.models.schemas import object_schema, strict_schema
from rxagent.models.wire import HttpCall, Switches, Target

# what servers take that speak of low, medium and high only
_EFFORTS: Mapping[str, str] = MappingProxyType({"minimal": "low", "xhigh": "high"})


class ChatWire:
    """OpenAI chat completions."""

    name = WIRE

    def call(self, request: ModelRequest, target: Target) -> HttpCall:
        """Writes the request."""
        return HttpCall(path="/chat/completions", body=chat_body(request, target))

    def decoder(self, request: ModelRequest, target: Target) -> ChatDecoder:
        """Reads one answer."""
        return ChatDecoder()


def chat_body(request: ModelRequest, target: Target) -> JsonObject:
    """The request's JSON body."""
    switches = target.switches
    body: JsonObject = {
        "model": target.model,
        "messages": cast("JsonValue", _messages(request, switches)),
        "stream": request.streaming,
    }
    if request.streaming and switches.include_usage:
        body["stream_options"] = {"include_usage": True}
    if request.tools:
        body["tools"] = [_tool(tool, switches) for tool in request.tools]
        if request.parallel_tool_calls is not None and switches.parallel_tool_calls:
            body["parallel_tool_calls"] = request.parallel_tool_calls
    cap = request.max_tokens if request.max_tokens is not None else switches.max_tokens_default
    if cap is not None:
        body[switches.max_tokens] = cap
    effort = _effort(request, target)
    body.update(effort)
    if request.temperature is not None and effort.get("reasoning_effort", "none") == "none":
        body["temperature"] = request.temperature  # OpenAI's models refuse it while they reason
    if request.output_schema is not None:
        body.update(_response_format(request.output_schema, switches))
    return body


def _effort(request: ModelRequest, target: Target) -> JsonObject:
    level = request.thinking_level
    match target.switches.reasoning_effort:
        case "openai":
            effort = effort_of(target.model, level)
            return {"reasoning_effort": effort} if effort else {}
        case "reasoning_effort" if level != "off":
            return {"reasoning_effort": _EFFORTS.get(level, level)}
        case "reasoning" if level != "off":
            return {"reasoning": {"effort": level}}
        case "thinking" if level != "off":
            return {"thinking": {"type": "enabled"}}
        case _:
            return {}


def _response_format(schema: JsonObject, switches: Switches) -> JsonObject:
    match switches.structured_output:
        case "json_schema":
            strict = strict_schema(schema)
            made: JsonObject = {"name": "answer", "schema": strict or schema, "strict": strict is not None}
            return {"response_format": {"type": "json_schema", "json_schema": made}}
        case "json_object":
            return {"response_format": {"type": "json_object"}}
        case _:
            return {}


def _system(request: ModelRequest, switches: Switches) -> str:
    if request.output_schema is None or switches.structured_output == "json_schema":
        return request.system_prompt
    asked = (
        f"Answer with one JSON object and nothing else. It follows this JSON schema: {to_json(request.output_schema).decode()}"
    )
    return f"{request.system_prompt}\n\n{asked}" if request.system_prompt else asked


def _tool(tool: ToolDeclaration, switches: Switches) -> JsonObject:
    parameters = object_schema(tool.parameters)
    function: JsonObject = {"name": tool.name, "description": tool.description, "parameters": parameters}
    if switches.strict_schemas and (strict := strict_schema(parameters)) is not None:
        function |= {"parameters": strict, "strict": True}
    return {"type": "function", "function": function}


def _messages(request: ModelRequest, switches: Switches) -> list[JsonObject]:
    exact = switches.call_id_exact
    ids = CallIds("a-zA-Z0-9" if exact else "a-zA-Z0-9_-", switches.call_id_longest, exact=exact)
    written: list[JsonObject] = []
    if system := _system(request, switches):
        written.append({"role": switches.system_role, "content": system})
    images: list[UserPart] = []  # of tool results, which take text only
    for message in without_foreign_replay(repaired(request.messages), WIRE):
        if images and not isinstance(message, ToolResultMessage):
            written.append(_user(images, switches))
            images = []
        if isinstance(message, ToolResultMessage):
            written.append(_result(message, ids))
            images += _result_images(message)
        else:
            written.append(_message(message, ids, switches))
    if images:
        written.append(_user(images, switches))
    return written


def _message(message: KnownMessage, ids: CallIds, switches: Switches) -> JsonObject:
    if isinstance(message, SystemMessage):
        return {"role": switches.system_role, "content": message.text}
    if isinstance(message, UserMessage):
        return _user(message.content, switches)
    return _assistant(cast("AssistantMessage", message), ids, switches)


def _user(content: Sequence[UserPart], switches: Switches) -> JsonObject:
    if not any(isinstance(part, ImagePart) for part in content):
        return {"role": "user", "content": "".join(part.text for part in content if isinstance(part, TextPart))}
    return {"role": "user", "content": [_user_part(part, switches) for part in content]}


def _user_part(part: UserPart, switches: Switches) -> JsonObject:
    if isinstance(part, TextPart):
        return {"type": "text", "text": part.text}
    if not switches.images:
        return {"type": "text", "text": "(an image that can't be shown to this model)"}
    return {"type": "image_url", "image_url": {"url": as_url(part)}}


def _assistant(message: AssistantMessage, ids: CallIds, switches: Switches) -> JsonObject:
    written: JsonObject = {"role": "assistant", "content": message.text or None}
    calls = [_call(part, ids) for part in message.content if isinstance(part, ToolCall)]
    if calls:
        written["tool_calls"] = cast("JsonValue", calls)
    elif written["content"] is None:
        written["content"] = ""
    if switches.reasoning_field is not None:
        reasoning = "".join(part.text for part in message.content if isinstance(part, ThinkingPart) and part.replay)
        details = (message.replay or {}).get("reasoning_details")
        if details:
            written["reasoning_details"] = details
        if reasoning:
            written[switches.reasoning_field] = reasoning
    return written


def _call(call: ToolCall, ids: CallIds) -> JsonObject:
    # what could not be read goes back as an object too: servers parse it again
    arguments = to_json(call.arguments if call.invalid is None else {"INVALID_JSON": call.invalid}).decode()
    written: JsonObject = {
        "id": ids.of(call.id),
        "type": "function",
        "function": {"name": call.name or "unknown", "arguments": arguments},
    }
    if call.replay and (extra := call.replay.get("extra_content")):
        written["extra_content"] = extra
    return written


def _result(message: ToolResultMessage, ids: CallIds) -> JsonObject:
    text = message.text or ("(see the image below)" if _result_images(message) else "")
    return {"role": "tool", "tool_call_id": ids.of(message.call_id), "content": text}


def _result_images(message: ToolResultMessage) -> list[UserPart]:
    return [part for part in message.content if isinstance(part, ImagePart)]
