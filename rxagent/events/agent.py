"""`AgentEvent`: one fact that happened in a session. Past-tense values, no logic.

Every event carries ``seq`` (0, 1, 2… per session; -1 until it enters a log) and ``origin``.
"""

from dataclasses import dataclass, field, fields
from typing import Annotated, Literal, cast, get_args

from pydantic import Discriminator, Field, GetCoreSchemaHandler, JsonValue, Tag, TypeAdapter
from pydantic_core import CoreSchema, core_schema

from rxagent.events.model import ModelEvent
from rxagent.events.values import NOWHERE, AgentConfig, ErrorInfo, Interrupt, Origin, Outcome
from rxagent.messages import (
    AssistantMessage,
    JsonObject,
    Message,
    ToolResult,
    ToolResultMessage,
    Usage,
)


@dataclass(frozen=True, slots=True)
class _Event:
    seq: int = field(default=-1, kw_only=True)
    origin: Origin = field(default=NOWHERE, kw_only=True)


@dataclass(frozen=True, slots=True)
class SessionStart(_Event):
    """First event of a log."""

    config: AgentConfig = field(default_factory=AgentConfig)
    messages: tuple[Message, ...] = ()
    type: Literal["session_start"] = field(default="session_start", init=False, repr=False)


@dataclass(frozen=True, slots=True)
class ConfigChanged(_Event):
    """The configuration from here on."""

    config: AgentConfig
    type: Literal["config_changed"] = field(default="config_changed", init=False, repr=False)


@dataclass(frozen=True, slots=True)
class SessionReset(_Event):
    """Transcript and queues were cleared."""

    type: Literal["session_reset"] = field(default="session_reset", init=False, repr=False)


@dataclass(frozen=True, slots=True)
class QueueChanged(_Event):
    """The messages still waiting, of both queues."""

    steering: tuple[Message, ...] = ()
    follow_ups: tuple[Message, ...] = ()
    type: Literal["queue_changed"] = field(default="queue_changed", init=False, repr=False)


@dataclass(frozen=True, slots=True)
class AgentStart(_Event):
    """A run begins. ``resumes``: seq of the `Interrupted` it answers; ``answers`` and ``cancelled`` by interrupt id."""

    input: tuple[Message, ...] = ()
    resumes: int | None = None
    answers: dict[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    cancelled: tuple[str, ...] = ()
    type: Literal["agent_start"] = field(default="agent_start", init=False, repr=False)


@dataclass(frozen=True, slots=True)
class TurnStart(_Event):
    """A turn begins; turns count from 0 in each run."""

    turn: int = 0
    type: Literal["turn_start"] = field(default="turn_start", init=False, repr=False)


@dataclass(frozen=True, slots=True)
class MessageStart(_Event):
    """A message begins: an assistant's before its stream, any other right before its end."""

    message: Message
    type: Literal["message_start"] = field(default="message_start", init=False, repr=False)


# Flat, without the base of the others: so a plain object of the same layout can become one (see events.model).
@dataclass(frozen=True, slots=True)
class MessageUpdate:
    """More of the assistant's message. ``message`` is the message so far, ``delta`` what came.

    In JSON only the delta is written; an update read by itself has no message (None). `EventReader`
    gives each update its message again.
    """

    delta: ModelEvent
    message: Annotated[AssistantMessage, Field(exclude=True)] = field(
        default=cast("AssistantMessage", None), kw_only=True, repr=False
    )
    seq: int = field(default=-1, kw_only=True)
    origin: Origin = field(default=NOWHERE, kw_only=True)
    type: Literal["message_update"] = field(default="message_update", init=False, repr=False)


class _UpdateDraft:
    __slots__ = ("delta", "message", "seq", "origin", "type")  # noqa: RUF023 - the layout of MessageUpdate


def message_update(delta: ModelEvent, message: AssistantMessage, seq: int, origin: Origin) -> MessageUpdate:
    """``MessageUpdate(delta, message=…, seq=…, origin=…)``, made fast."""
    draft = _UpdateDraft()
    draft.delta = delta
    draft.message = message
    draft.seq = seq
    draft.origin = origin
    draft.type = "message_update"
    draft.__class__ = MessageUpdate  # pyright: ignore[reportAttributeAccessIssue] same layout, checked by a test
    return draft  # pyright: ignore[reportReturnType] it is one now


@dataclass(frozen=True, slots=True)
class MessageEnd(_Event):
    """A message is complete and in the transcript."""

    message: Message
    type: Literal["message_end"] = field(default="message_end", init=False, repr=False)


@dataclass(frozen=True, slots=True)
class ToolStart(_Event):
    """A call was looked up and validated. ``args``: the validated arguments, or the raw ones if that failed."""

    call_id: str
    tool_name: str
    args: JsonObject | str = field(default_factory=dict[str, JsonValue])
    type: Literal["tool_start"] = field(default="tool_start", init=False, repr=False)


@dataclass(frozen=True, slots=True)
class ToolUpdate(_Event):
    """A tool's progress: ``partial`` is what it reported, as JSON data."""

    call_id: str
    tool_name: str
    args: JsonObject | str = field(default_factory=dict[str, JsonValue])
    partial: JsonValue = None
    type: Literal["tool_update"] = field(default="tool_update", init=False, repr=False)


@dataclass(frozen=True, slots=True)
class ToolEnd(_Event):
    """A call is done. ``args`` really ran, after hooks; ``duration`` in seconds, of the execution only."""

    call_id: str
    tool_name: str
    args: JsonObject | str = field(default_factory=dict[str, JsonValue])
    result: ToolResult = field(default_factory=ToolResult)
    is_error: bool = False
    interrupted: bool = False
    duration: float = 0.0
    type: Literal["tool_end"] = field(default="tool_end", init=False, repr=False)


@dataclass(frozen=True, slots=True)
class TurnEnd(_Event):
    """A turn is over. ``message`` is None where no answer began."""

    message: AssistantMessage | None = None
    tool_results: tuple[ToolResultMessage, ...] = ()
    type: Literal["turn_end"] = field(default="turn_end", init=False, repr=False)


@dataclass(frozen=True, slots=True)
class ModelRetry(_Event):
    """A failed attempt will be repeated after ``delay`` seconds; its partial message is withdrawn.

    ``attempt`` counts the failed attempts of this request from 1; ``model`` is asked next.
    """

    attempt: int
    delay: float
    error: ErrorInfo
    model: str = ""
    type: Literal["model_retry"] = field(default="model_retry", init=False, repr=False)


@dataclass(frozen=True, slots=True)
class Interrupted(_Event):
    """The run stops for answers."""

    interrupts: tuple[Interrupt, ...]
    type: Literal["interrupted"] = field(default="interrupted", init=False, repr=False)


@dataclass(frozen=True, slots=True)
class Handoff(_Event):
    """Another agent takes over."""

    source: str
    target: str
    type: Literal["handoff"] = field(default="handoff", init=False, repr=False)


@dataclass(frozen=True, slots=True)
class Custom(_Event):
    """The application's own fact."""

    name: str
    data: JsonValue = None
    type: Literal["custom"] = field(default="custom", init=False, repr=False)


@dataclass(frozen=True, slots=True)
class AgentEnd(_Event):
    """The only terminal event of a run. ``messages`` are exactly what this run appended."""

    messages: tuple[Message, ...] = ()
    outcome: Outcome = "completed"
    error: ErrorInfo | None = None
    usage: Usage = field(default_factory=Usage)
    type: Literal["agent_end"] = field(default="agent_end", init=False, repr=False)


@dataclass(frozen=True, slots=True)
class UnknownEvent(_Event):
    """An event of a kind this version doesn't know: ``data`` is the whole of it, kept as it came."""

    data: JsonObject
    type: str = field(default="unknown", kw_only=True)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(
            _read_unknown, serialization=core_schema.plain_serializer_function_ser_schema(_write_unknown)
        )


def _read_unknown(value: object) -> UnknownEvent:
    if isinstance(value, UnknownEvent):
        return value
    if not isinstance(value, dict):
        raise ValueError(f"an event is a JSON object, not {value!r:.80}")  # noqa: TRY004 - what pydantic reports
    data = cast("JsonObject", value)
    kind, seq = data.get("type"), data.get("seq", -1)
    if not isinstance(kind, str) or not isinstance(seq, int):
        raise ValueError("an event needs a type and a seq")  # noqa: TRY004 - what pydantic reports
    origin = TypeAdapter(Origin).validate_python(data.get("origin") or {})
    return UnknownEvent(data, type=kind, seq=seq, origin=origin)


def _write_unknown(event: UnknownEvent) -> JsonObject:
    return {**event.data, "seq": event.seq}


MessageLevel = MessageStart | MessageUpdate | MessageEnd | ModelRetry
ToolLevel = ToolStart | ToolUpdate | ToolEnd
TurnLevel = TurnStart | TurnEnd
AgentLevel = SessionStart | ConfigChanged | SessionReset | QueueChanged | AgentStart | Interrupted | Handoff | Custom | AgentEnd
KnownEvent = AgentLevel | TurnLevel | MessageLevel | ToolLevel
AnyEvent = KnownEvent | UnknownEvent
_KNOWN_TYPES = frozenset(f.default for kind in get_args(KnownEvent) for f in fields(kind) if f.name == "type")


def _tag(value: object) -> str:
    name = cast("dict[str, object]", value).get("type") if isinstance(value, dict) else getattr(value, "type", None)
    return "known" if name in _KNOWN_TYPES else "unknown"


AgentEvent = Annotated[
    Annotated[KnownEvent, Discriminator("type"), Tag("known")] | Annotated[UnknownEvent, Tag("unknown")],
    Discriminator(_tag),
]
