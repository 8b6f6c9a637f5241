"""Transcript values: messages, their parts, tool results, usage. Everything here is immutable."""

from collections.abc import Mapping
from typing import Annotated, cast

from pydantic import Discriminator, Tag

from rxagent.messages.custom import OWN_ROLES, CustomMessage, UnknownMessage
from rxagent.messages.parts import (
    AssistantPart,
    ImagePart,
    JsonObject,
    StopReason,
    TextPart,
    ThinkingLevel,
    ThinkingPart,
    ToolAction,
    ToolCall,
    ToolDeclaration,
    ToolResult,
    Usage,
    UserPart,
    to_json_value,
)
from rxagent.messages.transcript import Transcript
from rxagent.messages.values import (
    AnyMessage,
    AssistantMessage,
    SystemMessage,
    ToolResultMessage,
    UserMessage,
    as_messages,
    identified,
)


def _tag(value: object) -> str:
    known = isinstance(value, Mapping)
    role = cast("Mapping[str, object]", value).get("role") if known else getattr(value, "role", None)
    return role if isinstance(role, str) and role in OWN_ROLES else "custom"


Message = Annotated[
    Annotated[SystemMessage, Tag("system")]
    | Annotated[UserMessage, Tag("user")]
    | Annotated[AssistantMessage, Tag("assistant")]
    | Annotated[ToolResultMessage, Tag("tool")]
    | Annotated[CustomMessage, Tag("custom")],
    Discriminator(_tag),
]

__all__ = [
    "AnyMessage",
    "AssistantMessage",
    "AssistantPart",
    "CustomMessage",
    "ImagePart",
    "JsonObject",
    "Message",
    "StopReason",
    "SystemMessage",
    "TextPart",
    "ThinkingLevel",
    "ThinkingPart",
    "ToolAction",
    "ToolCall",
    "ToolDeclaration",
    "ToolResult",
    "ToolResultMessage",
    "Transcript",
    "Usage",
    "UserMessage",
    "UserPart",
    "UnknownMessage",
    "as_messages",
    "identified",
    "to_json_value",
]
