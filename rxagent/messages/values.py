"""Transcript entries: frozen values with ``role``, ``id`` and ``timestamp`` (seconds since 1970).

An empty ``id`` means "not given yet": the engine gives id and timestamp when a message enters a
session; the types themselves never look at a clock.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Annotated, Literal, cast

from pydantic import BeforeValidator, JsonValue

from rxagent.errors import InvalidMessage
from rxagent.messages.custom import CustomMessage
from rxagent.messages.parts import (
    AssistantPart,
    JsonObject,
    StopReason,
    TextPart,
    ThinkingPart,
    ToolCall,
    Usage,
    UserPart,
    joined_text,
    to_json_value,
    user_parts,
)


def _text_as_parts(value: object) -> object:
    return [{"type": "text", "text": value}] if isinstance(value, str) else value


def _assistant_parts(content: object) -> tuple[AssistantPart, ...]:
    if isinstance(content, str | TextPart | ThinkingPart | ToolCall):
        return (_assistant_part(content),)
    if not isinstance(content, Sequence):
        raise InvalidMessage(f"an answer's content is text, or parts (TextPart, ThinkingPart, ToolCall), not {content!r:.200}")
    return tuple([_assistant_part(part) for part in cast("Sequence[object]", content)])


def _assistant_part(part: object) -> AssistantPart:
    if isinstance(part, str):
        return TextPart(part)
    if isinstance(part, TextPart | ThinkingPart | ToolCall):
        return part
    raise InvalidMessage(f"a part of an answer is text, a TextPart, a ThinkingPart or a ToolCall, not {part!r:.200}")


@dataclass(frozen=True, slots=True)
class SystemMessage:
    """An instruction inside the history, beside the agent's own system prompt."""

    text: str
    id: str = field(default="", kw_only=True)
    timestamp: float = field(default=0.0, kw_only=True)
    role: Literal["system"] = field(default="system", init=False, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.text, str):  # pyright: ignore[reportUnnecessaryIsInstance] callers without a type checker
            raise InvalidMessage(f"a SystemMessage holds text, not {self.text!r:.200}")


@dataclass(frozen=True, slots=True, init=False)
class UserMessage:
    """What a person said: text and images. ``UserMessage("hi")`` or ``UserMessage(["look:", ImagePart(…)])``."""

    content: Annotated[tuple[UserPart, ...], BeforeValidator(_text_as_parts)]
    id: str = ""
    timestamp: float = 0.0
    role: Literal["user"] = field(default="user", init=False, repr=False)

    def __init__(self, content: str | UserPart | Sequence[UserPart | str], *, id: str = "", timestamp: float = 0.0) -> None:  # noqa: A002 - the field's name
        put = object.__setattr__
        put(self, "content", user_parts(content))
        put(self, "id", id)
        put(self, "timestamp", timestamp)
        put(self, "role", "user")

    @property
    def text(self) -> str:
        """The text parts, joined."""
        return joined_text(self.content)


@dataclass(frozen=True, slots=True, eq=False)
class AssistantMessage:
    """What a model answered: texts, thinking and tool calls in the order they were opened.

    ``stop_reason`` is None while the message is being streamed. ``replay`` is opaque data that
    the provider wants back with the message.
    """

    content: tuple[AssistantPart, ...] = ()
    stop_reason: StopReason | None = field(default=None, kw_only=True)
    usage: Usage | None = field(default=None, kw_only=True)
    model: str = field(default="", kw_only=True)
    error_message: str | None = field(default=None, kw_only=True)
    replay: JsonObject | None = field(default=None, kw_only=True)
    id: str = field(default="", kw_only=True)
    timestamp: float = field(default=0.0, kw_only=True)
    role: Literal["assistant"] = field(default="assistant", init=False, repr=False)

    @property
    def text(self) -> str:
        """The answer's text, without thinking."""
        return joined_text(self.content)

    @property
    def thinking(self) -> str:
        """The reasoning, joined."""
        return "".join([part.text for part in self.content if isinstance(part, ThinkingPart)])

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The calls asked for, in order."""
        return tuple([part for part in self.content if isinstance(part, ToolCall)])

    def __post_init__(self) -> None:
        object.__setattr__(self, "content", _assistant_parts(self.content))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, AssistantMessage):
            return NotImplemented
        return self is other or all(getattr(self, name) == getattr(other, name) for name in _ASSISTANT_FIELDS)

    def __hash__(self) -> int:
        return hash((self.role, self.id, self.timestamp))


_ASSISTANT_FIELDS = tuple(f.name for f in fields(AssistantMessage))


@dataclass(frozen=True, slots=True, init=False)
class ToolResultMessage:
    """The answer to one tool call, for the model; ``details`` and ``summary`` are for the application and for people."""

    call_id: str
    tool_name: str
    content: Annotated[tuple[UserPart, ...], BeforeValidator(_text_as_parts)]
    details: JsonValue = None
    is_error: bool = False
    summary: str | None = None
    id: str = ""
    timestamp: float = 0.0
    role: Literal["tool"] = field(default="tool", init=False, repr=False)

    def __init__(  # noqa: PLR0913 - one value per field
        self,
        call_id: str,
        tool_name: str,
        content: str | UserPart | Sequence[UserPart | str] = (),
        *,
        details: JsonValue = None,
        is_error: bool = False,
        summary: str | None = None,
        id: str = "",  # noqa: A002 - the field's name
        timestamp: float = 0.0,
    ) -> None:
        put = object.__setattr__
        put(self, "call_id", call_id)
        put(self, "tool_name", tool_name)
        put(self, "content", user_parts(content))
        put(self, "details", None if details is None else to_json_value(details, "ToolResultMessage.details"))
        put(self, "is_error", is_error)
        put(self, "summary", summary)
        put(self, "id", id)
        put(self, "timestamp", timestamp)
        put(self, "role", "tool")

    @property
    def text(self) -> str:
        """The text parts, joined."""
        return joined_text(self.content)


AnyMessage = SystemMessage | UserMessage | AssistantMessage | ToolResultMessage | CustomMessage


def identified(message: AnyMessage, *, id: str, timestamp: float) -> AnyMessage:  # noqa: A002 - the field's name
    """The message under this id, with the timestamp filled in where it was missing."""
    if message.id == id and message.timestamp:
        return message
    put = object.__setattr__
    copy: AnyMessage = object.__new__(type(message))
    for f in fields(message):
        put(copy, f.name, getattr(message, f.name))
    put(copy, "id", id)
    put(copy, "timestamp", message.timestamp or timestamp)
    return copy


def as_messages(input: object) -> tuple[AnyMessage, ...]:  # noqa: A002 - the word of the contract
    """Turns text, a message or a list of them into messages.

    Raises:
        InvalidMessage: an item is neither; says which.
    """
    if isinstance(input, Sequence) and not isinstance(input, str | bytes):
        items = cast("Sequence[object]", input)
        return tuple(_as_message(item, f"input[{i}]") for i, item in enumerate(items))
    return (_as_message(input, "input"),)


def _as_message(item: object, where: str) -> AnyMessage:
    if isinstance(item, str):
        return UserMessage(item)
    if isinstance(item, SystemMessage | UserMessage | AssistantMessage | ToolResultMessage | CustomMessage):
        return item
    raise InvalidMessage(
        f"{where} is {item!r:.200}: expected text or a message (UserMessage, AssistantMessage, …; "
        "your own kinds derive from CustomMessage)"
    )


__all__ = [
    "AnyMessage",
    "AssistantMessage",
    "SystemMessage",
    "TextPart",
    "ToolResultMessage",
    "UserMessage",
    "as_messages",
    "identified",
]
