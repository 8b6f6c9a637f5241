"""What goes on, in a word, for the status line."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Protocol

from rxagent.chat.bars import Situation
from rxagent.chat.story import Story
from rxagent.chat.text import one_line
from rxagent.chat.transcript import TranscriptView
from rxagent.engine import Agent

AFTER: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "failed": ("failed · ctrl+r tries again", "failed"),
        "aborted": ("stopped · ctrl+r goes on", "idle"),
        "limit": ("limit reached · ctrl+r goes on", "failed"),
        "lost": ("cut off · ctrl+r goes on", "failed"),
    }
)
"""Word and kind after a run of such an outcome."""


class Shown(Protocol):
    """What is asked of the app."""

    story: Story
    transcript: TranscriptView
    run_began: float | None
    outcome: str

    def now(self) -> float:
        """The app's clock, in seconds."""
        ...


def situation(shown: Shown, agent: Agent) -> Situation:
    """The situation of an agent in the app."""
    word, kind = _word(shown, agent)
    state = agent.state
    since = None if shown.run_began is None else shown.now() - shown.run_began
    return Situation(
        word, kind, since, state.model, state.usage, thinking=state.thinking_level, away=not shown.transcript.follows
    )


def _word(shown: Shown, agent: Agent) -> tuple[str, str]:
    if agent.is_running:
        return _work(shown.story), "busy"
    if agent.state.interrupts:
        return "needs you", "asking"
    return AFTER.get(shown.outcome, ("ready", "idle"))


def _work(story: Story) -> str:
    names = story.running
    if len(names) > 1:
        return f"{len(names)} tools run"
    if names:
        return f"{one_line(names[0], 24)} runs"
    return "writing" if story.is_answering else "waiting for the model"
