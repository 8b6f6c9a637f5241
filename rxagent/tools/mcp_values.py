"""Values of MCP servers as ours, and ours as theirs."""

from typing import cast

import mcp_types as wire
from pydantic import JsonValue
from pydantic_core import to_json

from rxagent.messages import ImagePart, JsonObject, TextPart, ToolResult, UserPart

_YES: JsonObject = {"type": "boolean"}


def result_of(result: wire.CallToolResult) -> ToolResult:
    """A server's result: its content for the model, its structured content as details, too."""
    parts = [_part(block) for block in result.content]
    details = cast("JsonValue", result.structured_content)
    if not parts and details is not None:
        parts = [TextPart(to_json(details).decode())]
    summary = None
    if result.is_error:
        text = next((part.text for part in parts if isinstance(part, TextPart)), "the server gave no reason")
        summary = text.split("\n", 1)[0][:120]
        parts = parts or [TextPart(text)]
    return ToolResult(parts, details, is_error=result.is_error, summary=summary)


def _part(block: wire.ContentBlock) -> UserPart:
    match block:
        case wire.TextContent():
            return TextPart(block.text)
        case wire.ImageContent():
            return ImagePart(block.data, block.mime_type)
        case wire.AudioContent():
            return TextPart(f"[audio, {block.mime_type}: not shown]")
        case wire.ResourceLink():
            said = f": {block.description}" if block.description else ""
            return TextPart(f"[resource {block.name}, {block.uri}{said}]")
        case wire.EmbeddedResource():
            return _resource(block.resource)


def _resource(resource: wire.TextResourceContents | wire.BlobResourceContents) -> UserPart:
    if isinstance(resource, wire.TextResourceContents):
        return TextPart(f"[resource {resource.uri}]\n{resource.text}")
    kind = resource.mime_type or "application/octet-stream"
    if kind.startswith("image/"):
        return ImagePart(resource.blob, kind)
    return TextPart(f"[resource {resource.uri}, {kind}: not shown]")


def asked(params: wire.ElicitRequestParams) -> tuple[str, JsonObject]:
    """A server's question: for a person, and the JSON schema of the answer (for a link: whether it was followed)."""
    if isinstance(params, wire.ElicitRequestURLParams):
        return f"{params.message}\n{params.url}", _YES
    schema = cast("JsonObject", params.requested_schema)
    return params.message, {**schema, "type": ["object", *_short(params), "boolean", "null"]}


def answered(params: wire.ElicitRequestParams, answer: JsonValue) -> wire.ElicitResult:
    """A person's answer. None and False decline; a bare value answers a question of one field."""
    if answer is None or (answer is False and not _asks_for_yes_or_no(params)):
        return wire.ElicitResult(action="decline")
    if isinstance(params, wire.ElicitRequestURLParams):
        return wire.ElicitResult(action="accept" if answer else "decline")
    if not isinstance(answer, dict):
        answer = dict.fromkeys(_fields(params)[:1], answer)
    content = cast("dict[str, str | int | float | bool | list[str] | None]", answer)
    return wire.ElicitResult(action="accept", content=content)


def _short(params: wire.ElicitRequestFormParams) -> list[JsonValue]:
    """The types of a bare value that answers a question of one field."""
    names = _fields(params)
    if len(names) != 1:
        return []
    field = cast("dict[str, JsonValue]", params.requested_schema["properties"])[names[0]]
    kind = field.get("type", "string") if isinstance(field, dict) else "string"
    return [kind] if isinstance(kind, str) and kind not in ("boolean", "object") else []


def _fields(params: wire.ElicitRequestFormParams) -> list[str]:
    properties = cast("JsonObject", params.requested_schema).get("properties")
    return list(properties) if isinstance(properties, dict) else []


def _asks_for_yes_or_no(params: wire.ElicitRequestParams) -> bool:
    if isinstance(params, wire.ElicitRequestURLParams):
        return False
    properties = cast("JsonObject", params.requested_schema).get("properties")
    kinds = list(properties.values()) if isinstance(properties, dict) else []
    return len(kinds) == 1 and isinstance(kinds[0], dict) and kinds[0].get("type") == "boolean"
