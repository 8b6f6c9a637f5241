"""OpenAI Responses: the wire, and how its requests are written. Stateless: nothing is kept at the server.

Source: https://developers.openai.com/api/docs/api-reference/responses/create
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
    ThinkingLevel,
    ThinkingPart,
    ToolCall,
    ToolDeclaration,
    ToolResultMessage,
    UserPart,
)
from rxagent.models.base import ModelRequest
from rxagent.models.fields import as_list, as_object, as_text
from rxagent.models.images import as_url
from rxagent.models.openai_models import effort_of
from rxagent.models.openai_responses_stream import WIRE, ResponsesDecoder
from rxagent.models.repair import CallIds, KnownMessage, repaired
from rxagent.models.schemas import object_schema, strict_schema
from rxagent.models.wire import HttpCall, Switches, Target

_IDS = CallIds(longest=64)
_NAMES = CallIds(longest=64)
_LONGEST_ID = 64


class ResponsesWire:
    """The protocol of OpenAI's newer models."""

    name = WIRE

    def call(self, request: ModelRequest, target: Target) -> HttpCall:
        """Writes the request.

        A thinking level becomes the nearest effort that the model takes; a temperature is left out
        for models that reason, which refuse it.
        """
        return HttpCall(path="/responses", body=_body(request, target))

    def decoder(self, request: ModelRequest, target: Target) -> ResponsesDecoder:
        """Makes a reader for one answer."""
        return ResponsesDecoder(target.model)


def _body(request: ModelRequest, target: Target) -> JsonObject:
    switches = target.switches
    body: JsonObject = {"model": target.model, "stream": request.streaming, "store": False}
    if request.system_prompt:
        body["instructions"] = request.system_prompt
    body["input"] = _input(request, target)
    if request.tools:
        body["tools"] = [_tool(tool, switches) for tool in request.tools]
        if request.parallel_tool_calls is not None and switches.parallel_tool_calls:
            body["parallel_tool_calls"] = request.parallel_tool_calls
    cap = request.max_tokens or switches.max_tokens_default
    if cap is not None:
        body["max_output_tokens"] = cap
    reasons = _reasoning(request.thinking_level, target.model, body)
    if request.temperature is not None and not reasons:
        body["temperature"] = request.temperature
    if request.output_schema is not None:
        strict = strict_schema(request.output_schema)
        format_: JsonObject = {"type": "json_schema", "name": "answer", "schema": strict or request.output_schema}
        body["text"] = {"format": {**format_, "strict": strict is not None}}
    if request.session_id and switches.cache:
        body["prompt_cache_key"] = _IDS.of(request.session_id)
    return body


def _reasoning(level: ThinkingLevel, model: str, body: JsonObject) -> bool:
    """Writes what a thinking level means; tells whether the model will reason."""
    effort = effort_of(model, level)
    if not effort:
        return False
    reasoning: JsonObject = {"effort": effort}
    if level != "off":
        reasoning["summary"] = "auto"
    body["reasoning"] = reasoning
    body["include"] = ["reasoning.encrypted_content"]
    return effort != "none"


def _tool(tool: ToolDeclaration, switches: Switches) -> JsonObject:
    parameters = object_schema(tool.parameters)
    strict = strict_schema(parameters) if switches.strict_schemas else None
    declared: JsonObject = {"type": "function", "name": tool.name, "parameters": strict or parameters}
    if tool.description:
        declared["description"] = tool.description
    return {**declared, "strict": strict is not None}


# input


def _input(request: ModelRequest, target: Target) -> list[JsonValue]:
    items: list[JsonValue] = []
    for message in repaired(request.messages):
        if isinstance(message, AssistantMessage):
            items += _answer(message, target.model)
        else:
            items.append(_asked(message, target.switches))
    return items


def _asked(message: KnownMessage, switches: Switches) -> JsonObject:
    if isinstance(message, SystemMessage):
        return {"role": "developer" if switches.system_role == "developer" else "system", "content": message.text}
    if isinstance(message, ToolResultMessage):
        plain = all(isinstance(part, TextPart) for part in message.content)
        text = message.text or ("The call failed." if message.is_error else "")
        output: JsonValue = text if plain or not switches.images_in_results else _content(message.content, switches)
        return {"type": "function_call_output", "call_id": _IDS.of(message.call_id), "output": output}
    content = message.content if not isinstance(message, AssistantMessage) else ()
    parts = [part for part in content if not isinstance(part, ToolCall | ThinkingPart)]
    return {"role": "user", "content": _content(parts, switches)}


def _content(parts: Sequence[UserPart], switches: Switches) -> list[JsonValue]:
    written: list[JsonValue] = []
    for part in parts:
        if isinstance(part, ImagePart) and switches.images:
            written.append({"type": "input_image", "detail": "auto", "image_url": as_url(part)})
        else:
            text = part.text if isinstance(part, TextPart) else "(an image, which this model can't see)"
            written.append({"type": "input_text", "text": text})
    return written


def _answer(message: AssistantMessage, model: str) -> list[JsonValue]:
    """An answer as output items, in order; ids and reasoning only where this very model made them."""
    items: list[JsonValue] = []
    extras = [as_object(extra) for extra in as_list(_own(message.replay, model).get("extras"))]
    for number, part in enumerate(message.content):
        items += [extra["item"] for extra in extras if extra.get("at") == number and "item" in extra]
        replay = _own(part.replay, model)
        if isinstance(part, ThinkingPart):
            if replay.get("item"):
                items.append(replay["item"])
        elif isinstance(part, TextPart):
            if part.text:
                items.append(_said(part.text, replay))
        else:
            items.append(_called(part, replay))
    count = len(message.content)
    return [*items, *(extra["item"] for extra in extras if "item" in extra and _at(extra) >= count)]


def _at(extra: Mapping[str, JsonValue]) -> int:
    at = extra.get("at")
    return at if isinstance(at, int) else 0


def _said(text: str, replay: Mapping[str, JsonValue]) -> JsonObject:
    item_id = as_text(replay.get("id"))
    phase: JsonObject = {"phase": replay["phase"]} if replay.get("phase") else {}
    if not item_id.startswith("msg") or len(item_id) > _LONGEST_ID:
        return {"role": "assistant", "content": text, **phase}
    content: JsonObject = {"type": "output_text", "text": text, "annotations": []}
    return {"type": "message", "id": item_id, "role": "assistant", "status": "completed", "content": [content], **phase}


def _called(call: ToolCall, replay: Mapping[str, JsonValue]) -> JsonObject:
    arguments = call.arguments if call.invalid is None else {"INVALID_JSON": call.invalid}
    item: JsonObject = {
        "type": "function_call",
        "call_id": _IDS.of(call.id),
        "name": _NAMES.of(call.name or "unknown"),
        "arguments": to_json(arguments).decode(),
    }
    item_id = as_text(replay.get("id"))
    return {"id": item_id, **item} if item_id.startswith("fc") and len(item_id) <= _LONGEST_ID else item


def _own(replay: JsonObject | None, model: str) -> Mapping[str, JsonValue]:
    return replay if replay and replay.get("wire") == WIRE and replay.get("model") == model else {}
