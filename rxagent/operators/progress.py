"""`progress`: one line's worth of what a run is doing now."""

from typing import Literal, NamedTuple

from reactivex import abc

from rxagent.events import agent as e
from rxagent.events.model import ModelEvent, TextDelta, ThinkingDelta, ToolCallDelta, ToolCallStart
from rxagent.messages import AssistantMessage
from rxagent.operators.kit import OnEvent, Operator, Outermost, fused

Phase = Literal["asking", "thinking", "answering", "calling", "running", "retrying", "done"]


class Progress(NamedTuple):
    """What a run does now.

    ``phase``: ``asking`` for an answer, ``thinking``, ``answering`` or ``calling`` while it comes,
    ``running`` tools, ``retrying`` after a failed attempt, ``done``. ``turn`` counts from 0;
    ``characters`` are those of the present answer's text and thinking; ``running`` are names of the
    tools that run, in start order; ``finished`` counts the run's calls that ended.
    """

    phase: Phase = "asking"
    turn: int = 0
    characters: int = 0
    running: tuple[str, ...] = ()
    finished: int = 0
    outcome: e.Outcome | None = None


def progress() -> Operator[Progress]:
    """What the run is doing, whenever that changes.

        ─A───────T─h──────────s────────e──a──|
        progress()
        ─asking────answering──running──…──done|

    One value per change, so one per delta: put `flow.conflate` behind it for a screen. A run starts
    afresh with its `AgentStart`. Errors and completion pass through.
    """
    return fused(_progress)


def _progress(observer: abc.ObserverBase[Progress]) -> OnEvent:
    emit = observer.on_next
    own = Outermost()
    now = Progress()
    running: dict[str, str] = {}

    def on_next(event: e.AnyEvent) -> None:
        nonlocal now
        if not isinstance(event, _RUN) or not own.takes(event.origin):
            return
        if isinstance(event, e.AgentStart | e.AgentEnd):
            running.clear()
        elif isinstance(event, e.ToolStart):
            running[event.call_id] = event.tool_name
        elif isinstance(event, e.ToolEnd):
            running.pop(event.call_id, None)
        names = now.running if isinstance(event, e.MessageUpdate) else tuple(running.values())
        after = _after(now, event, names)
        if after != now or isinstance(event, e.AgentStart):
            now = after
            emit(now)

    return on_next


_RUN = e.AgentStart | e.TurnStart | e.MessageLevel | e.ToolStart | e.ToolEnd | e.AgentEnd


def _after(now: Progress, event: _RUN, running: tuple[str, ...]) -> Progress:
    match event:
        case e.MessageUpdate():
            after = _streaming(now, event.delta)
        case e.AgentStart():
            after = Progress()
        case e.TurnStart():
            after = now._replace(phase="asking", turn=event.turn, characters=0)
        case e.MessageStart(message=AssistantMessage()):
            after = now._replace(phase="asking", characters=0)
        case e.ModelRetry():
            after = now._replace(phase="retrying", characters=0)
        case e.ToolStart():
            after = now._replace(phase="running", running=running)
        case e.ToolEnd():
            after = now._replace(running=running, finished=now.finished + 1)
        case e.AgentEnd():
            after = now._replace(phase="done", running=(), outcome=event.outcome)
        case e.MessageEnd(message=AssistantMessage() as message) if now.phase == "asking":  # it was not streamed
            after = _whole(now, message)
        case e.MessageStart() | e.MessageEnd():
            after = now
    return after


def _whole(now: Progress, message: AssistantMessage) -> Progress:
    """As it would stand at the end, had the answer come in pieces."""
    characters = len(message.text) + len(message.thinking)
    if message.tool_calls:
        return now._replace(phase="calling", characters=characters)
    if message.text:
        return now._replace(phase="answering", characters=characters)
    return now._replace(phase="thinking", characters=characters) if message.thinking else now


def _streaming(now: Progress, delta: ModelEvent) -> Progress:
    match delta:
        case TextDelta() | ThinkingDelta():  # made at once: ten times as many of these as of all others
            phase: Phase = "answering" if isinstance(delta, TextDelta) else "thinking"
            characters = now.characters + len(delta.text)
            return Progress(phase, now.turn, characters, now.running, now.finished, now.outcome)
        case ToolCallStart() | ToolCallDelta():
            return now._replace(phase="calling")
        case _:
            return now
