"""`Profile`: an agent as one run needs it; `Recovery`: what becomes of calls that a dead process left open."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from pydantic import JsonValue

from rxagent.engine.config import LoopConfig, Output, Setup
from rxagent.messages import AnyMessage

UnknownCalls = Literal["ask", "rerun", "fail"]


@dataclass(frozen=True, slots=True)
class Profile:
    """What a run of an agent is made with.

    ``messages``: what its transcript begins with; ``find``: the profile of an agent it can hand over to, by name.
    """

    name: str
    setup: Setup
    config: LoopConfig
    output: Output | None
    messages: tuple[AnyMessage, ...]
    find: "Callable[[str], Profile]"


@dataclass(frozen=True, slots=True)
class Recovery:
    """How a run that a process left unfinished goes on.

    ``policy`` holds for calls nobody knows the end of; ``answers`` and ``cancelled`` settle single ones of
    them, by the id of the question that "ask" would ask.
    """

    policy: UnknownCalls = "ask"
    answers: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    cancelled: frozenset[str] = frozenset()


NO_RECOVERY = Recovery()
