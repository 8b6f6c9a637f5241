"""The seam between the engine and a model: a request in, a pulled stream of `ModelEvent` out.

Pulled, so that back-pressure reaches the socket. Nothing escapes as an exception: a failure is the
stream's terminal `ModelError`. Closing the iterator (``aclose``) closes the connection.
"""

from collections.abc import AsyncIterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from pydantic import JsonValue
from reactivex import Observable

from rxagent.events.model import ModelEvent
from rxagent.messages import AnyMessage, JsonObject, ThinkingLevel, ToolDeclaration


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """One request: the whole context a model answers to.

    Args:
        messages: the transcript, only kinds a model knows (no custom messages, no failed answers).
        streaming: False asks for the answer in one piece; the events are the same, in larger deltas.
        output_schema: JSON schema the answer's text must follow, or None.
        max_tokens: cap on the answer, or None for the provider's own.
        api_key: overrides the model's key for this request.
        options: further fields of the request body, as the provider spells them.

    """

    messages: tuple[AnyMessage, ...] = ()
    system_prompt: str = ""
    tools: tuple[ToolDeclaration, ...] = ()
    thinking_level: ThinkingLevel = "off"
    streaming: bool = True
    output_schema: JsonObject | None = None
    parallel_tool_calls: bool | None = None
    max_tokens: int | None = None
    temperature: float | None = None
    api_key: str | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    options: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    session_id: str | None = None


@runtime_checkable
class Model(Protocol):
    """Anything that answers requests.

    ``name`` is what events and messages call it; ``provider`` is what the hook ``get_api_key`` is asked for.
    """

    @property
    def name(self) -> str:
        """What events and messages call it."""
        ...

    @property
    def provider(self) -> str:
        """Whose key it needs."""
        ...

    def stream(self, request: ModelRequest) -> AsyncIterable[ModelEvent] | Observable[ModelEvent]:
        """Answers one request. The iterator's ``aclose`` must end the work at once."""
        ...
