"""The values that events carry: who speaks, how an agent was made, what went wrong, what is asked."""

from dataclasses import dataclass
from typing import Literal

from rxagent.messages import JsonObject, ThinkingLevel, ToolDeclaration

Outcome = Literal["completed", "aborted", "failed", "interrupted", "limit"]


@dataclass(frozen=True, slots=True)
class Origin:
    """Who speaks: one object shared by all events of a run.

    ``path``: agent names from the root. ``call_id``: for an agent that runs as a tool, the call it works for.
    """

    session_id: str = ""
    run_id: str = ""
    agent: str = ""
    path: tuple[str, ...] = ()
    call_id: str = ""


NOWHERE = Origin()


@dataclass(frozen=True, slots=True)
class AgentConfig:
    """What an agent was made with, as data."""

    system_prompt: str = ""
    model: str = ""
    thinking_level: ThinkingLevel = "off"
    tools: tuple[ToolDeclaration, ...] = ()


@dataclass(frozen=True, slots=True)
class ErrorInfo:
    """What went wrong. ``kind``: an `ErrorKind` of the model, or ``hook``, ``limit``, ``internal``, ``usage``, ``output``.

    ``retry_after`` in seconds, as the server asked; ``status`` the HTTP status.
    """

    message: str
    kind: str = "internal"
    retryable: bool = False
    retry_after: float | None = None
    status: int | None = None

    def __str__(self) -> str:
        return self.message


@dataclass(frozen=True, slots=True)
class Interrupt:
    """A question to a person. ``path`` and ``call_id`` say where it was asked, ``schema`` what an answer looks like."""

    id: str
    question: str
    schema: JsonObject | None = None
    path: tuple[str, ...] = ()
    call_id: str = ""
    tool_name: str = ""
