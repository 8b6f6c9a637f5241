"""Views of a run: the part of its events that an expected line of that name is about.

A view shows what happens within the run; its end is an event (``agent_end``) or the end of ``out``. Agents that run
as tools are not in it: ``by_agent`` gives theirs.
"""

from collections.abc import Callable

from rxagent import events
from rxagent.marble.meaning import Value
from rxagent.marble.streams import Timed

Keep = Callable[[object], bool]


def _is(*kinds: type) -> Keep:
    return lambda event: isinstance(event, kinds)


def _delta(kind: type) -> Keep:
    return lambda event: isinstance(event, events.MessageUpdate) and isinstance(event.delta, kind)


VIEWS: dict[str, Keep] = {
    "text": _delta(events.TextDelta),
    "thinking": _delta(events.ThinkingDelta),
    "tools": _is(events.ToolStart, events.ToolUpdate, events.ToolEnd),
    "turns": _is(events.TurnStart, events.TurnEnd),
    "messages": _is(events.MessageEnd),
    "life": _is(events.AgentStart, events.Interrupted, events.Handoff, events.AgentEnd),
    "retries": _is(events.ModelRetry),
    "queue": _is(events.QueueChanged),
    "custom": _is(events.Custom),
}


def view(name: str, output: list[Timed]) -> list[Timed]:
    """The part of ``output`` that the view ``name`` shows, without agents that work for a call of the others."""
    keep = VIEWS[name]
    depth = min((_depth(h) for _, h in output if isinstance(h, Value)), default=0)
    return [(at, h) for at, h in output if isinstance(h, Value) and keep(h.value) and _depth(h) == depth]


def _depth(happening: Value) -> int:
    """How many agents stand above the one whose event this is."""
    origin = getattr(happening.value, "origin", None)
    return len(origin.path) if isinstance(origin, events.Origin) else 0
