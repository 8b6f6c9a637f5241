"""Anthropic Messages: the wire, and how its requests are written.

Source: https://platform.claude.com/docs/en/api/messages
"""

from collections.abc import Mapping, Sequence

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
from rxagent.models.anthropic_models import Abilities, abilities, is_claude, max_tokens_and_thinking
from rxagent.models.anthropic_stream import WIRE, AnthropicDecoder
from rxagent.models.base import ModelRequest
from rxagent.models.fields import as_count, as_list, as_object, as_text
from rxagent.models.images import data_and_type
from rxagent.models.repair import CallIds, KnownMessage, repaired
from rxagent.models.schemas import anthropic_schema, object_schema
from rxagent.models.wire import HttpCall, Target

VERSION = "2023-06-01"
_IMAGES = ("image/jpeg", "image/png", "image/gif", "image/webp")
_MARK: JsonObject = {"type": "ephemeral"}
_NAMES = CallIds(longest=128)
_IDS = CallIds(longest=64)


class AnthropicWire:
    """The protocol of Claude, and of servers that speak it."""

    name = WIRE

    def call(self, request: ModelRequest, target: Target) -> HttpCall:
        """Writes the request.

        A thinking level becomes adaptive thinking with an effort, or a budget, as the model demands;
        what a model is known to refuse (a temperature beside thinking) is left out.
        """
        return HttpCall(path="/v1/messages", body=_body(request, target), headers={"anthropic-version": VERSION})

    def decoder(self, request: ModelRequest, target: Target) -> AnthropicDecoder:
        """Makes a reader for one answer."""
        return AnthropicDecoder(target.model)


def _body(request: ModelRequest, target: Target) -> JsonObject:
    able = abilities(target.model, target.switches.thinking)
    messages = repaired(request.messages)
    system = [request.system_prompt] if request.system_prompt.strip() else []
    while messages and isinstance(messages[0], SystemMessage):
        first = messages.pop(0)
        if isinstance(first, SystemMessage) and first.text.strip():
            system.append(first.text)
    body: JsonObject = {"model": target.model, "stream": request.streaming}
    turns = _turns(messages, target.model)
    body.update(
        max_tokens_and_thinking(request, able, default=target.switches.max_tokens_default, may_begin=not _in_unsigned_turn(turns))
    )
    if request.output_schema is not None:
        _structured(request.output_schema, able, body, system)
    if system:
        body["system"] = [{"type": "text", "text": "\n\n".join(system)}]
    body["messages"] = [*turns]
    if request.tools:
        body["tools"] = [_tool(tool, strict=target.switches.strict_schemas) for tool in request.tools]
        if request.parallel_tool_calls is not None:
            body["tool_choice"] = {"type": "auto", "disable_parallel_tool_use": not request.parallel_tool_calls}
    if request.temperature is not None and able.temperature and "thinking" not in body:
        body["temperature"] = request.temperature
    if target.switches.cache:
        _mark(body, turns)
    return body


def _structured(schema: JsonObject, able: Abilities, body: JsonObject, system: list[str]) -> None:
    if able.structured:
        config = dict(as_object(body.get("output_config")))
        body["output_config"] = {**config, "format": {"type": "json_schema", "schema": anthropic_schema(schema)}}
    else:
        system.append("Answer with nothing but JSON that follows this JSON schema:\n" + to_json(schema).decode())


def _tool(tool: ToolDeclaration, *, strict: bool) -> JsonObject:
    declared: JsonObject = {"name": tool.name, "input_schema": object_schema(tool.parameters)}
    if tool.description:
        declared["description"] = tool.description
    if strict:
        declared["strict"] = True
        declared["input_schema"] = anthropic_schema(object_schema(tool.parameters))
    return declared


def _mark(body: JsonObject, turns: Sequence[JsonObject]) -> None:
    """Sets cache marks, at most four: after the tools, the system prompt, and each of the last two user turns."""
    ends = [blocks[-1] for name in ("tools", "system") if isinstance(blocks := body.get(name), list) and blocks]
    for turn in [turn for turn in turns if turn["role"] == "user"][-2:]:
        content = turn["content"]
        if isinstance(content, list):
            ends.append(content[-1])
    for block in ends:
        if isinstance(block, dict):
            block["cache_control"] = dict(_MARK)


# messages


def _turns(messages: Sequence[KnownMessage], model: str) -> list[JsonObject]:
    """The transcript as turns of alternating roles, the first one the user's."""
    turns: list[tuple[str, list[JsonValue]]] = []
    for message in messages:
        role = "assistant" if isinstance(message, AssistantMessage) else "user"
        blocks = _blocks(message, model)
        if not blocks:
            continue
        if turns and turns[-1][0] == role:
            turns[-1][1].extend(blocks)
        else:
            turns.append((role, blocks))
    if not turns or turns[0][0] == "assistant":
        turns.insert(0, ("user", [{"type": "text", "text": "Go on."}]))
    if turns[-1][0] == "assistant":
        _without_trailing_space(turns[-1][1])
    return [{"role": role, "content": content} for role, content in turns]


def _in_unsigned_turn(turns: Sequence[JsonObject]) -> bool:
    """Whether the results at the end answer calls before which there is no thinking: of another model, or with it off."""
    if len(turns) < 2:
        return False
    begins = [as_object(next(iter(as_list(turn["content"])), None)).get("type") for turn in turns[-2:]]
    return begins[1] == "tool_result" and begins[0] not in ("thinking", "redacted_thinking")


def _without_trailing_space(content: list[JsonValue]) -> None:
    # refused at the end of a conversation that the model shall continue
    last = content[-1]
    if isinstance(last, dict) and last.get("type") == "text":
        last["text"] = as_text(last.get("text")).rstrip()


def _blocks(message: KnownMessage, model: str) -> list[JsonValue]:
    if isinstance(message, AssistantMessage):
        return _answer(message, model)
    if isinstance(message, ToolResultMessage):
        result: JsonObject = {"type": "tool_result", "tool_use_id": _IDS.of(message.call_id)}
        content = _content(message.content)
        if not content and message.is_error:
            content.append({"type": "text", "text": "The call failed."})
        if content:
            result["content"] = content
        if message.is_error:
            result["is_error"] = True
        return [result]
    if isinstance(message, UserMessage):
        return _content(message.content) or [{"type": "text", "text": "(empty message)"}]
    return [{"type": "text", "text": f"<system>\n{message.text}\n</system>"}] if message.text.strip() else []


def _content(parts: Sequence[UserPart]) -> list[JsonValue]:
    blocks: list[JsonValue] = []
    for part in parts:
        if isinstance(part, ImagePart):
            blocks.append(_image(part))
        elif part.text.strip():  # blank text is refused
            blocks.append({"type": "text", "text": part.text})
    return blocks


def _image(image: ImagePart) -> JsonObject:
    data, mime = data_and_type(image)
    if not data:
        return {"type": "image", "source": {"type": "url", "url": image.url}}
    if mime not in _IMAGES:
        return {"type": "text", "text": f"(an image of type {mime}, which can't be shown)"}
    return {"type": "image", "source": {"type": "base64", "media_type": mime, "data": data}}


def _answer(message: AssistantMessage, model: str) -> list[JsonValue]:
    blocks: list[JsonValue] = []
    extras = _extras(message, model)
    for number, part in enumerate(message.content):
        blocks += [item for at, item in extras if at == number]
        if isinstance(part, ThinkingPart):
            block = _thinking(part, model)
            if block:
                blocks.append(block)
        elif isinstance(part, TextPart):
            if part.text.strip():
                blocks.append({"type": "text", "text": part.text})
        else:
            blocks.append(_call(part))
    return [*blocks, *(item for at, item in extras if at >= len(message.content))]


def _extras(message: AssistantMessage, model: str) -> list[tuple[int, JsonValue]]:
    """What tools at the server's side did, by its place; as it came, but for halves of a pair, which are refused."""
    replay: Mapping[str, JsonValue] = message.replay or {}
    if replay.get("wire") != WIRE or replay.get("model") != model:
        return []
    kept = [as_object(extra) for extra in as_list(replay.get("extras"))]
    items = [as_object(extra.get("item")) for extra in kept]
    uses = {as_text(item.get("id")) for item in items if as_text(item.get("type")).endswith("tool_use")}
    answered = {as_text(item.get("tool_use_id")) for item in items if "tool_use_id" in item}
    return [
        (as_count(extra.get("at")) or 0, dict(item))
        for extra, item in zip(kept, items, strict=True)
        if item
        and (not as_text(item.get("type")).endswith("tool_use") or as_text(item.get("id")) in answered)
        and ("tool_use_id" not in item or as_text(item["tool_use_id"]) in uses)
    ]


def _thinking(part: ThinkingPart, model: str) -> JsonObject | None:
    """Signed thinking goes back as it came; that of another model or wire means nothing here.

    Other makers' models behind this protocol don't sign, and some refuse a call that comes back without its thinking.
    """
    replay: Mapping[str, JsonValue] = part.replay or {}
    if replay.get("wire") != WIRE or replay.get("model") != model:
        return None
    if replay.get("data"):
        return {"type": "redacted_thinking", "data": replay["data"]}
    if replay.get("signature"):
        return {"type": "thinking", "thinking": part.text, "signature": replay["signature"]}
    if replay.get("unsigned") and part.text and not is_claude(model):
        return {"type": "thinking", "thinking": part.text, "signature": ""}
    return None


def _call(call: ToolCall) -> JsonObject:
    arguments: JsonObject = dict(call.arguments) if call.invalid is None else {"INVALID_JSON": call.invalid}
    return {"type": "tool_use", "id": _IDS.of(call.id), "name": _NAMES.of(call.name or "unknown"), "input": arguments}
