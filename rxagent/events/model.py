"""`ModelEvent`: one piece of a model's stream. ``index`` ties a delta to its block; blocks may interleave.

A stream is ``ResponseStart? (block event)* (ResponseEnd | ModelError)``; one that ends without its
terminal event is broken. A delta opens its block itself where the start is missing.
"""

from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import Discriminator

from rxagent.messages import JsonObject, StopReason, Usage

ErrorKind = Literal[
    "rate_limit",
    "overloaded",
    "server",
    "context_overflow",
    "auth",
    "invalid_request",
    "timeout",
    "transport",
    "protocol",
]


@dataclass(frozen=True, slots=True)
class ResponseStart:
    """The provider began to answer. ``model``: the name it gives itself."""

    model: str | None = None
    response_id: str | None = None
    type: Literal["response_start"] = field(default="response_start", init=False, repr=False)


@dataclass(frozen=True, slots=True)
class TextStart:
    """A text block opens."""

    index: int = 0
    type: Literal["text_start"] = field(default="text_start", init=False, repr=False)


@dataclass(frozen=True, slots=True)
class TextDelta:
    """More text."""

    text: str
    index: int = 0
    type: Literal["text_delta"] = field(default="text_delta", init=False, repr=False)


@dataclass(frozen=True, slots=True)
class TextEnd:
    """A text block is complete."""

    index: int = 0
    replay: JsonObject | None = None
    type: Literal["text_end"] = field(default="text_end", init=False, repr=False)


@dataclass(frozen=True, slots=True)
class ThinkingStart:
    """A block of reasoning opens."""

    index: int = 0
    type: Literal["thinking_start"] = field(default="thinking_start", init=False, repr=False)


@dataclass(frozen=True, slots=True)
class ThinkingDelta:
    """More reasoning."""

    text: str
    index: int = 0
    type: Literal["thinking_delta"] = field(default="thinking_delta", init=False, repr=False)


@dataclass(frozen=True, slots=True)
class ThinkingEnd:
    """A block of reasoning is complete; ``replay`` carries its signature or its encrypted form."""

    index: int = 0
    replay: JsonObject | None = None
    type: Literal["thinking_end"] = field(default="thinking_end", init=False, repr=False)


@dataclass(frozen=True, slots=True)
class ToolCallStart:
    """A tool call opens. An empty id gets a made-up one when the call runs."""

    id: str
    name: str
    index: int = 0
    type: Literal["tool_call_start"] = field(default="tool_call_start", init=False, repr=False)


@dataclass(frozen=True, slots=True)
class ToolCallDelta:
    """More of a call's arguments: a piece of JSON text."""

    arguments: str
    index: int = 0
    type: Literal["tool_call_delta"] = field(default="tool_call_delta", init=False, repr=False)


@dataclass(frozen=True, slots=True)
class ToolCallEnd:
    """A call is complete.

    ``arguments`` replaces what was streamed: an object, or text that is then read as JSON.
    None: the streamed pieces are the arguments.
    """

    index: int = 0
    arguments: JsonObject | str | None = None
    replay: JsonObject | None = None
    type: Literal["tool_call_end"] = field(default="tool_call_end", init=False, repr=False)


@dataclass(frozen=True, slots=True)
class ResponseEnd:
    """The answer is complete."""

    stop_reason: StopReason = "stop"
    usage: Usage | None = None
    replay: JsonObject | None = None
    type: Literal["response_end"] = field(default="response_end", init=False, repr=False)


@dataclass(frozen=True, slots=True)
class ModelError:
    """The stream failed: its terminal event in place of an exception.

    ``retry_after`` is in seconds, as the server asked; ``status`` the HTTP status, where there was one.
    """

    kind: ErrorKind
    message: str
    retryable: bool = False
    retry_after: float | None = None
    status: int | None = None
    type: Literal["model_error"] = field(default="model_error", init=False, repr=False)


BlockEvent = (
    TextStart | TextDelta | TextEnd | ThinkingStart | ThinkingDelta | ThinkingEnd | ToolCallStart | ToolCallDelta | ToolCallEnd
)
ModelEvent = Annotated[ResponseStart | BlockEvent | ResponseEnd | ModelError, Discriminator("type")]


# A frozen dataclass takes three times as long to make as a plain slotted object. Deltas are made
# by the ten thousand, so they are filled as a plain object of the same layout and then frozen.
class _TextDraft:
    __slots__ = ("text", "index", "type")  # noqa: RUF023 - the order is the layout of TextDelta


class _CallDraft:
    __slots__ = ("arguments", "index", "type")


def text_delta(text: str, index: int) -> TextDelta:
    """``TextDelta(text, index)``, made fast."""
    draft = _TextDraft()
    draft.text = text
    draft.index = index
    draft.type = "text_delta"
    draft.__class__ = TextDelta  # pyright: ignore[reportAttributeAccessIssue] same layout, checked by a test
    return draft  # pyright: ignore[reportReturnType] it is one now


def thinking_delta(text: str, index: int) -> ThinkingDelta:
    """``ThinkingDelta(text, index)``, made fast."""
    draft = _TextDraft()
    draft.text = text
    draft.index = index
    draft.type = "thinking_delta"
    draft.__class__ = ThinkingDelta  # pyright: ignore[reportAttributeAccessIssue] same layout, checked by a test
    return draft  # pyright: ignore[reportReturnType] it is one now


def tool_call_delta(arguments: str, index: int) -> ToolCallDelta:
    """``ToolCallDelta(arguments, index)``, made fast."""
    draft = _CallDraft()
    draft.arguments = arguments
    draft.index = index
    draft.type = "tool_call_delta"
    draft.__class__ = ToolCallDelta  # pyright: ignore[reportAttributeAccessIssue] same layout, checked by a test
    return draft  # pyright: ignore[reportReturnType] it is one now
