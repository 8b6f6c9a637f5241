"""What a run is made with: `AgentContext` and `LoopConfig` for callers, `Setup` for the loop itself."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, TypeVar, cast, get_args

from pydantic import TypeAdapter
from pydantic.errors import PydanticUserError

from rxagent.engine.limits import Limits, Retry
from rxagent.errors import InvalidOption, UnknownModel
from rxagent.events import AgentConfig
from rxagent.hooks import Hooks
from rxagent.messages import AnyMessage, JsonObject, ThinkingLevel
from rxagent.messages.fences import unfenced
from rxagent.models.base import Model
from rxagent.state import AgentState
from rxagent.tools import Tool

ToolMode = Literal["parallel", "sequential"]
ModelLike = Model | str | Sequence[Model | str]


@dataclass(frozen=True, slots=True)
class AgentContext:
    """What a stateless run starts from."""

    system_prompt: str = ""
    messages: Sequence[AnyMessage] = ()
    tools: Sequence[Tool | Callable[..., object]] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopConfig:
    """How runs go. ``model``: a `Model`, a name, or a list of them (fallbacks, in order)."""

    model: ModelLike
    name: str = "agent"
    thinking_level: ThinkingLevel = "off"
    streaming: bool = True
    output: type | None = None
    hooks: Hooks = field(default_factory=Hooks)
    limits: Limits = field(default_factory=Limits)
    retry: Retry = field(default_factory=Retry)
    tool_mode: ToolMode = "parallel"
    deps: object = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:  # pyright: ignore[reportUnnecessaryIsInstance] callers without a type checker
            raise InvalidOption(f"an agent's name is a text that isn't empty, not {self.name!r:.100}")
        one_of(self.thinking_level, ThinkingLevel, "thinking_level")
        one_of(self.tool_mode, ToolMode, "tool_mode")
        for value, kind, what in ((self.hooks, Hooks, "hooks"), (self.limits, Limits, "limits"), (self.retry, Retry, "retry")):
            if not isinstance(value, kind):  # pyright: ignore[reportUnnecessaryIsInstance] as above
                raise InvalidOption(f"{what} is a {kind.__name__}(…), not {value!r:.100}")


T = TypeVar("T")


def one_of(value: T, words: object, what: str) -> T:
    """The value, which must be one of a ``Literal``'s.

    Raises:
        InvalidOption: it is none of them; lists them.
    """
    if value not in get_args(words):
        raise InvalidOption(f"{what} is one of {', '.join(map(repr, get_args(words)))}, not {value!r:.100}")
    return value


def prompt_text(value: str) -> str:
    """The value, which must be a text.

    Raises:
        InvalidOption: it is none.
    """
    if not isinstance(value, str):  # pyright: ignore[reportUnnecessaryIsInstance] callers without a type checker
        raise InvalidOption(f"system_prompt is a text, not {value!r:.100}")
    return value


def as_models(model: ModelLike) -> tuple[Model, ...]:
    """Resolves names; the first is asked first, the others are fallbacks.

    Raises:
        UnknownModel: a name nobody serves, or no model at all.
        MissingKey: a provider's key isn't there.
    """
    from rxagent.models import resolve

    items: Sequence[Model | str] = model if isinstance(model, Sequence) and not isinstance(model, str) else [model]
    models = tuple(resolve(item) if isinstance(item, str) else _checked(item) for item in items)
    if not models:
        raise UnknownModel("an agent needs a model: pass a Model, a name such as 'openai:gpt-4o-mini', or 'demo'.")
    return models


def _checked(item: object) -> Model:
    # by shape, as isinstance with a protocol does it, at a tenth of the cost: it is done for every agent
    if callable(getattr(item, "stream", None)) and isinstance(getattr(item, "name", None), str):
        return cast("Model", item)
    raise UnknownModel(f"{item!r:.100} is no model: pass a name, or an object with name, provider and stream(request).")


@dataclass(slots=True)
class Setup:
    """The present configuration of an agent, which hooks and the application may change."""

    models: tuple[Model, ...]
    system_prompt: str
    thinking_level: ThinkingLevel
    tools: tuple[Tool, ...]

    def config(self) -> AgentConfig:
        """The same as data."""
        declarations = tuple(tool.declaration for tool in self.tools)
        return AgentConfig(self.system_prompt, self.models[0].name, self.thinking_level, declarations)


def matches(config: AgentConfig, state: AgentState) -> bool:
    """Whether a state has this configuration."""
    return config == AgentConfig(state.system_prompt, state.model, state.thinking_level, state.tools)


class Output:
    """The type an answer must have, its JSON schema, and reading one. ``str`` is the answer's text as it is."""

    def __init__(self, kind: type) -> None:
        self._is_text = kind is str
        try:
            self._adapter: TypeAdapter[object] = TypeAdapter(kind)
        except PydanticUserError as error:
            raise InvalidOption(
                f"output is a type that pydantic can read, not {kind!r:.100}: {str(error).splitlines()[0]}"
            ) from error

    @cached_property
    def schema(self) -> JsonObject | None:
        """The JSON schema models are given; None for text."""
        return None if self._is_text else self._adapter.json_schema()

    def read(self, text: str) -> object:
        """The answer's text as a value; raises pydantic's ``ValidationError``."""
        return text if self._is_text else self._adapter.validate_json(unfenced(text))


__all__ = ["AgentContext", "LoopConfig", "ModelLike", "Output", "Setup", "ToolMode", "as_models", "matches"]
