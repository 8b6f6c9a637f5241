"""What messages are made of: parts, tool results, token usage. Values only, all immutable."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import Discriminator, JsonValue
from pydantic_core import PydanticSerializationError, from_json, to_json, to_jsonable_python

from rxagent.errors import InvalidMessage, Unserialisable

JsonObject = dict[str, JsonValue]
StopReason = Literal["stop", "tool_use", "length", "content_filter", "error", "aborted"]
ToolAction = Literal["exit", "break_loop"]
ThinkingLevel = Literal["off", "minimal", "low", "medium", "high", "xhigh"]


def to_json_value(value: object, what: str) -> JsonValue:
    """Gives the JSON form of any pydantic-serialisable value (models become objects).

    Raises:
        Unserialisable: it has none; ``what`` says whose value it is.
    """
    try:
        data = to_jsonable_python(value)
        try:
            return from_json(to_json(data, inf_nan_mode="null"))  # as it will be read: JSON knows no NaN
        except PydanticSerializationError:
            return from_json(to_json(without_surrogates(data), inf_nan_mode="null"))
    except (PydanticSerializationError, ValueError, RecursionError) as error:
        raise Unserialisable(
            f"{what} has no JSON form ({type(value).__name__}: {error}). "
            "Return text, JSON data, a pydantic model, or ToolResult(content, details)."
        ) from error


def sound_text(text: str) -> str:
    """The text, without lone surrogates (of undecodable file names, say): nothing could store or send those."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def without_surrogates(data: JsonValue) -> JsonValue:
    """JSON data with every text in it as `sound_text` gives it."""
    match data:
        case str():
            return sound_text(data)
        case list():
            return [without_surrogates(item) for item in data]
        case dict():
            return {sound_text(key): without_surrogates(item) for key, item in data.items()}
        case _:
            return data


@dataclass(frozen=True, slots=True)
class TextPart:
    """Text. ``replay``: opaque data the provider wants back with it."""

    text: str
    replay: JsonObject | None = field(default=None, kw_only=True)
    type: Literal["text"] = field(default="text", init=False, repr=False)


@dataclass(frozen=True, slots=True)
class ImagePart:
    """An image: base64 ``data`` of ``mime_type``, or a ``url``."""

    data: str = ""
    mime_type: str = "image/png"
    url: str | None = None
    type: Literal["image"] = field(default="image", init=False, repr=False)


@dataclass(frozen=True, slots=True)
class ThinkingPart:
    """A model's reasoning. ``replay`` holds signatures and encrypted reasoning, sent back as they came."""

    text: str
    replay: JsonObject | None = field(default=None, kw_only=True)
    type: Literal["thinking"] = field(default="thinking", init=False, repr=False)


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call the model asks for.

    ``arguments`` is the parsed JSON object. Where the model's text is no JSON object, ``arguments``
    is empty and ``invalid`` holds the text; such a call is never run.
    """

    id: str
    name: str
    arguments: JsonObject = field(default_factory=dict[str, JsonValue])
    invalid: str | None = None
    replay: JsonObject | None = field(default=None, kw_only=True)
    type: Literal["tool_call"] = field(default="tool_call", init=False, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.arguments, dict):  # pyright: ignore[reportUnnecessaryIsInstance] callers without a type checker
            raise InvalidMessage(
                f"a call's arguments are an object (a dict), not {self.arguments!r:.200}; text goes into invalid"
            )


@dataclass(frozen=True, slots=True)
class ToolDeclaration:
    """What a model is told of a tool: name, description and the JSON schema of its arguments."""

    name: str
    description: str = ""
    parameters: JsonObject = field(default_factory=dict[str, JsonValue])


UserPart = Annotated[TextPart | ImagePart, Discriminator("type")]
AssistantPart = Annotated[TextPart | ThinkingPart | ToolCall, Discriminator("type")]


def user_parts(content: object) -> tuple[UserPart, ...]:
    """Turns text, one part or a sequence of parts and texts into parts; raises `InvalidMessage`."""
    if isinstance(content, str | TextPart | ImagePart):
        return (_user_part(content),)
    if isinstance(content, Sequence) and not isinstance(content, bytes):
        return tuple(_user_part(item) for item in content)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType] checked item by item
    raise InvalidMessage(f"message content must be text, a TextPart, an ImagePart or a list of them, not {content!r:.200}")


def _user_part(item: object) -> UserPart:
    if isinstance(item, str):
        return TextPart(sound_text(item))
    if isinstance(item, TextPart) and isinstance(item.text, str):  # pyright: ignore[reportUnnecessaryIsInstance] callers without a type checker
        text = sound_text(item.text)
        return item if text is item.text else TextPart(text, replay=item.replay)
    if isinstance(item, ImagePart):
        return item
    raise InvalidMessage(f"a message part must be text, a TextPart or an ImagePart, not {item!r:.200}")


def joined_text(content: Sequence[object]) -> str:
    """The text of all text parts, joined."""
    texts = [part.text for part in content if isinstance(part, TextPart)]
    return texts[0] if len(texts) == 1 else "".join(texts)


def _plus(a: int | None, b: int | None) -> int | None:
    if a is None or b is None:
        return b if a is None else a
    return a + b


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one request or a sum of them. None is unknown, never zero.

    ``input`` and ``output`` are totals; ``cache_read`` and ``cache_write`` are parts of input,
    ``reasoning`` is part of output. ``cost`` is in US dollars, None as soon as one share is unknown.
    """

    input: int | None = None
    output: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None
    reasoning: int | None = None
    cost: float | None = None

    @property
    def total(self) -> int | None:
        """Input plus output tokens."""
        return _plus(self.input, self.output)

    def __add__(self, other: "Usage") -> "Usage":
        if _NO_USAGE in (self, other):
            return other if self == _NO_USAGE else self
        return Usage(
            _plus(self.input, other.input),
            _plus(self.output, other.output),
            _plus(self.cache_read, other.cache_read),
            _plus(self.cache_write, other.cache_write),
            _plus(self.reasoning, other.reasoning),
            None if self.cost is None or other.cost is None else self.cost + other.cost,
        )


_NO_USAGE = Usage()


@dataclass(frozen=True, slots=True, init=False)
class ToolResult:
    """What a tool answers.

    Args:
        content: for the model: text, a part, or a list of them.
        details: for the application: any value with a JSON form.
        is_error: the model is told that the call failed.
        terminate: ends the run, if every call of the batch says so.
        action: ends the run, whatever the other calls say, and what is around it: ``exit`` the teams it is a step of,
            ``break_loop`` the nearest loop. Never beyond an agent that runs as a tool.
        summary: one short line for people.

    Raises:
        Unserialisable: ``details`` has no JSON form.
    """

    content: tuple[UserPart, ...]
    details: JsonValue
    is_error: bool
    terminate: bool
    summary: str | None
    action: ToolAction | None

    def __init__(  # noqa: PLR0913 - one value per field
        self,
        content: str | UserPart | Sequence[UserPart | str] = (),
        details: object = None,
        *,
        is_error: bool = False,
        terminate: bool = False,
        summary: str | None = None,
        action: ToolAction | None = None,
    ) -> None:
        put = object.__setattr__
        put(self, "content", user_parts(content))
        put(self, "details", to_json_value(details, "ToolResult.details"))
        put(self, "is_error", is_error)
        put(self, "terminate", terminate)
        put(self, "summary", summary)
        put(self, "action", action)

    @property
    def text(self) -> str:
        """The text parts of the content, joined."""
        return joined_text(self.content)
