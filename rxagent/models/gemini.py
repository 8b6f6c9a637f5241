"""Google Gemini: the wire, and how its requests are written.

Source: https://ai.google.dev/api/generate-content
"""

import re
from collections.abc import Mapping, Sequence

from pydantic import JsonValue
from pydantic_core import to_json

from rxagent.messages import (
    AssistantMessage,
    ImagePart,
    JsonObject,
    SystemMessage,
    TextPart,
    ThinkingLevel,
    ThinkingPart,
    ToolCall,
    ToolDeclaration,
    ToolResultMessage,
    UserPart,
)
from rxagent.models.base import ModelRequest
from rxagent.models.fields import as_text
from rxagent.models.gemini_stream import WIRE, GeminiDecoder
from rxagent.models.images import data_and_type
from rxagent.models.repair import CallIds, KnownMessage, repaired
from rxagent.models.schemas import gemini_schema
from rxagent.models.wire import HttpCall, Target

_NAMES = CallIds("a-zA-Z0-9_.:-", longest=64)
# Stands for the signature of a call that another model made, which Gemini 3 demands: https://ai.google.dev/gemini-api/docs/thought-signatures
_NO_SIGNATURE = "skip_thought_signature_validator"
_VERSION = re.compile(r"gemini-(\d+)(?:\.(\d+))?")
_VERSIONED = re.compile(r"/v\d\w*(/|$)")
_BUDGETS: Mapping[ThinkingLevel, int] = {"off": 0, "minimal": 512, "low": 2048, "medium": 8192, "high": 16_384, "xhigh": 24_576}
_LEAST_BUDGET_PRO = 128


class GeminiWire:
    """The protocol of Google's Gemini."""

    name = WIRE

    def call(self, request: ModelRequest, target: Target) -> HttpCall:
        """Writes the request.

        A thinking level becomes a budget (Gemini 2.5) or the nearest level that the model takes (3 and later,
        which can't be kept from thinking: ``off`` is their lowest level, and nothing of it is shown).
        """
        model = target.model if "/" in target.model else f"models/{target.model}"
        method = "streamGenerateContent" if request.streaming else "generateContent"
        query = {"alt": "sse"} if request.streaming else {}
        # base URLs are written with the version, as in Google's documentation, and without, as its SDK takes them
        version = "" if _VERSIONED.search(target.endpoint.base_url) else "/v1beta"
        return HttpCall(path=f"{version}/{model}:{method}", body=_body(request, target), query=query)

    def decoder(self, request: ModelRequest, target: Target) -> GeminiDecoder:
        """Makes a reader for one answer."""
        return GeminiDecoder(target.model)


def _version(model: str) -> tuple[int, int]:
    """The model's version; names without one are aliases of the newest."""
    found = _VERSION.search(model)
    if found:
        return int(found[1]), int(found[2] or 0)
    return (99, 0) if re.search(r"gemini-(pro|flash)", model) else (0, 0)


def _body(request: ModelRequest, target: Target) -> JsonObject:
    version = _version(target.model)
    messages = repaired(request.messages)
    system = [request.system_prompt] if request.system_prompt.strip() else []
    while messages and isinstance(messages[0], SystemMessage):
        first = messages.pop(0)
        if isinstance(first, SystemMessage) and first.text.strip():
            system.append(first.text)
    config: JsonObject = {}
    cap = request.max_tokens or target.switches.max_tokens_default
    if cap is not None:
        config["maxOutputTokens"] = cap
    if request.temperature is not None:
        config["temperature"] = request.temperature
    if request.output_schema is not None:
        if request.tools and version < (3, 0):
            # refused beside tools
            schema = to_json(request.output_schema).decode()
            system.append(f"Answer with nothing but JSON that follows this JSON schema:\n{schema}")
        else:
            config |= {"responseMimeType": "application/json", "responseSchema": gemini_schema(request.output_schema)}
    thinking = _thinking(request.thinking_level, target.model, version)
    if thinking:
        config["thinkingConfig"] = thinking
    body: JsonObject = {"contents": _contents(messages, target, version)}
    if system:
        body["systemInstruction"] = {"parts": [{"text": "\n\n".join(system)}]}
    if request.tools:
        body["tools"] = [{"functionDeclarations": [_tool(tool) for tool in request.tools]}]
    if config:
        body["generationConfig"] = config
    return body


def _thinking(level: ThinkingLevel, model: str, version: tuple[int, int]) -> JsonObject:
    if re.search(r"image|tts|live|embedding", model) or version < (2, 5):
        return {}
    shown: JsonObject = {"includeThoughts": level != "off"}
    if version < (3, 0):
        least = 0 if "flash" in model else _LEAST_BUDGET_PRO
        return {**shown, "thinkingBudget": max(_BUDGETS[level], least)}
    lowest = "low" if "flash" not in model or version >= (3, 7) else "minimal"
    middle = "high" if "flash" not in model and version < (3, 1) else "medium"
    levels = {"off": lowest, "minimal": lowest, "low": "low", "medium": middle}
    return {**shown, "thinkingLevel": levels.get(level, "high")}


def _tool(tool: ToolDeclaration) -> JsonObject:
    declared: JsonObject = {"name": tool.name, "description": tool.description or tool.name}
    parameters = gemini_schema(tool.parameters) if tool.parameters else {}
    if parameters.get("properties"):  # an object without any is refused
        declared["parameters"] = parameters
    return declared


# contents


def _contents(messages: Sequence[KnownMessage], target: Target, version: tuple[int, int]) -> list[JsonValue]:
    turns: list[tuple[str, list[JsonValue]]] = []
    ids: dict[str, str] = {}
    for message in messages:
        if isinstance(message, AssistantMessage):
            role, parts = "model", _answer(message, target.model, version)
            ids.update((call.id, as_text(_own(call.replay, target.model).get("id"))) for call in message.tool_calls)
        else:
            role, parts = "user", _asked(message, ids, version)
        if parts and turns and turns[-1][0] == role:
            turns[-1][1].extend(parts)
        elif parts:
            turns.append((role, parts))
    if not turns or turns[0][0] == "model":
        turns.insert(0, ("user", [{"text": "Go on."}]))
    return [{"role": role, "parts": _results_first(parts)} for role, parts in turns]


def _results_first(parts: list[JsonValue]) -> list[JsonValue]:
    """The parts with images of results after all the results: the answers to one turn's calls stand together."""
    return sorted(parts, key=lambda part: not (isinstance(part, dict) and "functionResponse" in part))


def _asked(message: KnownMessage, ids: Mapping[str, str], version: tuple[int, int]) -> list[JsonValue]:
    if isinstance(message, SystemMessage):
        return [{"text": f"<system>\n{message.text}\n</system>"}] if message.text.strip() else []
    if isinstance(message, ToolResultMessage):
        return _result(message, ids.get(message.call_id, ""), version)
    content = message.content if not isinstance(message, AssistantMessage) else ()
    parts = _parts([part for part in content if not isinstance(part, ToolCall | ThinkingPart)])
    return parts or [{"text": "(empty message)"}]


def _result(message: ToolResultMessage, call_id: str, version: tuple[int, int]) -> list[JsonValue]:
    images = _parts([part for part in message.content if isinstance(part, ImagePart)])
    response: JsonObject = {
        "name": _NAMES.of(message.tool_name or "unknown"),
        "response": {"error": message.text or "The call failed."} if message.is_error else {"output": message.text},
    }
    if call_id:
        response["id"] = call_id
    if images and version >= (3, 0):
        response["parts"] = images
        images = []
    return [{"functionResponse": response}, *images]


def _parts(parts: Sequence[UserPart]) -> list[JsonValue]:
    written: list[JsonValue] = []
    for part in parts:
        if isinstance(part, TextPart):
            if part.text:
                written.append({"text": part.text})
            continue
        data, mime = data_and_type(part)
        if data:
            written.append({"inlineData": {"mimeType": mime, "data": data}})
        else:
            written.append({"fileData": {"mimeType": mime, "fileUri": part.url}})
    return written


def _answer(message: AssistantMessage, model: str, version: tuple[int, int]) -> list[JsonValue]:
    parts: list[JsonValue] = []
    first_call = True
    for part in message.content:
        signature = _own(part.replay, model).get("thoughtSignature")
        if isinstance(part, ToolCall):
            if not signature and first_call and version >= (3, 0):
                signature = _NO_SIGNATURE
            first_call = False
            written: JsonObject = {"functionCall": _call(part, model)}
        elif isinstance(part, ThinkingPart):
            if not signature:
                continue
            written = {"text": part.text, "thought": True}
        elif part.text:
            written = {"text": part.text}
        else:
            continue
        parts.append({**written, "thoughtSignature": signature} if signature else written)
    tail = _own(message.replay, model).get("thoughtSignature")
    return [*parts, {"text": "", "thoughtSignature": tail}] if tail else parts


def _call(call: ToolCall, model: str) -> JsonObject:
    arguments: JsonObject = dict(call.arguments) if call.invalid is None else {"INVALID_JSON": call.invalid}
    written: JsonObject = {"name": _NAMES.of(call.name or "unknown"), "args": arguments}
    call_id = as_text(_own(call.replay, model).get("id"))
    return {"id": call_id, **written} if call_id else written


def _own(replay: JsonObject | None, model: str) -> Mapping[str, JsonValue]:
    return replay if replay and replay.get("wire") == WIRE and replay.get("model") == model else {}
