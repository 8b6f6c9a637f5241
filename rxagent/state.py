"""`AgentState` and `reduce`: what a session's events come to, as a pure fold.

1. No clock, no I/O, no reactivex; the same events give the same state.
2. Total: a kind of event without a case is a type error.
3. Immutable with structural sharing: folding a delta costs the same at the 10th and the 100,000th.
"""

from dataclasses import dataclass, field, replace
from typing import assert_never, cast

from rxagent.events import agent as e
from rxagent.messages import (
    AnyMessage,
    AssistantMessage,
    ThinkingLevel,
    ToolDeclaration,
    Transcript,
    Usage,
)


@dataclass(frozen=True, slots=True)
class AgentState:
    """What is known of an agent at one moment.

    ``pending_tool_calls`` are ids in start order; ``turn`` is the current or last turn of the run
    ``run_id``; ``usage`` sums the session, children included; ``steering`` and ``follow_ups`` wait.
    """

    path: tuple[str, ...] = ("agent",)
    system_prompt: str = ""
    model: str = ""
    thinking_level: ThinkingLevel = "off"
    tools: tuple[ToolDeclaration, ...] = ()
    messages: Transcript[AnyMessage] = field(default_factory=Transcript[AnyMessage])
    is_streaming: bool = False
    streaming_message: AssistantMessage | None = None
    pending_tool_calls: tuple[str, ...] = ()
    error_message: str | None = None
    run_id: str | None = None
    turn: int = 0
    usage: Usage = field(default_factory=Usage)
    steering: tuple[AnyMessage, ...] = ()
    follow_ups: tuple[AnyMessage, ...] = ()
    interrupts: tuple[e.Interrupt, ...] = ()


class _StateDraft:
    __slots__ = (  # noqa: RUF023 - the layout of AgentState
        "path",
        "system_prompt",
        "model",
        "thinking_level",
        "tools",
        "messages",
        "is_streaming",
        "streaming_message",
        "pending_tool_calls",
        "error_message",
        "run_id",
        "turn",
        "usage",
        "steering",
        "follow_ups",
        "interrupts",
    )


def streaming(s: AgentState, message: AssistantMessage | None) -> AgentState:
    """The state with another message so far: the fold of a text delta. ``replace`` takes ten times as long."""
    d = _StateDraft()
    d.path = s.path
    d.system_prompt = s.system_prompt
    d.model = s.model
    d.thinking_level = s.thinking_level
    d.tools = s.tools
    d.messages = s.messages
    d.is_streaming = s.is_streaming
    d.pending_tool_calls = s.pending_tool_calls
    d.error_message = s.error_message
    d.run_id = s.run_id
    d.turn = s.turn
    d.usage = s.usage
    d.steering = s.steering
    d.follow_ups = s.follow_ups
    d.interrupts = s.interrupts
    d.streaming_message = message
    d.__class__ = AgentState  # pyright: ignore[reportAttributeAccessIssue] same layout, checked by a test
    return d  # pyright: ignore[reportReturnType] it is one now


def _copy(s: AgentState) -> _StateDraft:
    """A state to change and freeze."""
    d = streaming(s, s.streaming_message)
    object.__setattr__(d, "__class__", _StateDraft)
    return cast("_StateDraft", d)


def _frozen(d: _StateDraft) -> AgentState:
    d.__class__ = AgentState  # pyright: ignore[reportAttributeAccessIssue] same layout, checked by a test
    return d  # pyright: ignore[reportReturnType] it is one now


def reduce(state: AgentState, event: e.AnyEvent) -> AgentState:
    """The state after an event. Events of another path change nothing, but for a child's usage."""
    if isinstance(event, e.MessageUpdate):
        return streaming(state, event.message) if event.origin.path == state.path else state
    if event.origin.path != state.path:
        return _child(state, event)
    return _own(state, event)


def _child(state: AgentState, event: e.KnownEvent | e.UnknownEvent) -> AgentState:
    depth = len(state.path)
    if (
        isinstance(event, e.MessageEnd)
        and isinstance(event.message, AssistantMessage)
        and event.message.usage is not None
        and event.origin.path[:depth] == state.path
    ):
        return replace(state, usage=state.usage + event.message.usage)
    return state


def _own(state: AgentState, event: e.KnownEvent | e.UnknownEvent) -> AgentState:  # noqa: PLR0911, PLR0912, C901 - one case per event
    match event:
        case e.SessionStart():
            d = _configured(state, event.config)
            d.messages = Transcript(event.messages)
            return _frozen(d)
        case e.ConfigChanged():
            return _frozen(_configured(state, event.config))
        case e.SessionReset():
            return AgentState(state.path, state.system_prompt, state.model, state.thinking_level, state.tools, usage=state.usage)
        case e.QueueChanged():
            return replace(state, steering=event.steering, follow_ups=event.follow_ups)
        case e.AgentStart():
            waiting = tuple(i for i in state.interrupts if i.id not in event.answers and i.id not in event.cancelled)
            d = _copy(state)
            d.is_streaming, d.error_message, d.run_id, d.turn, d.interrupts = True, None, event.origin.run_id, 0, waiting
            return _frozen(d)
        case e.TurnStart():
            d = _copy(state)
            d.turn = event.turn
            return _frozen(d)
        case e.MessageStart():
            return streaming(state, event.message) if isinstance(event.message, AssistantMessage) else state
        case e.MessageUpdate():
            return streaming(state, event.message)
        case e.ModelRetry():
            return streaming(state, None)
        case e.MessageEnd():
            return _message_end(state, event.message)
        case e.ToolStart():
            return replace(state, pending_tool_calls=(*state.pending_tool_calls, event.call_id))
        case e.ToolEnd():
            pending = tuple(i for i in state.pending_tool_calls if i != event.call_id)
            return replace(state, pending_tool_calls=pending)
        case e.TurnEnd():
            failed = event.message is not None and event.message.stop_reason in ("error", "aborted")
            return replace(state, error_message=event.message.error_message) if failed and event.message else state
        case e.Interrupted():
            return replace(state, interrupts=event.interrupts)
        case e.AgentEnd():
            d = _copy(state)
            d.is_streaming, d.streaming_message, d.pending_tool_calls = False, None, ()
            d.error_message = state.error_message or (event.error.message if event.error else None)
            return _frozen(d)
        case e.ToolUpdate() | e.Handoff() | e.Custom() | e.UnknownEvent():
            return state
        case _:
            assert_never(event)


def _configured(state: AgentState, config: e.AgentConfig) -> _StateDraft:
    d = _copy(state)
    d.system_prompt, d.model, d.thinking_level, d.tools = config.system_prompt, config.model, config.thinking_level, config.tools
    return d


def _message_end(state: AgentState, message: AnyMessage) -> AgentState:
    d = _copy(state)
    d.messages = state.messages.append(message)
    if isinstance(message, AssistantMessage):
        d.streaming_message = None
        d.usage = state.usage if message.usage is None else state.usage + message.usage
    elif state.steering or state.follow_ups:
        # A queued message leaves its queue with its MessageEnd: a crash right after neither loses nor repeats it.
        d.steering = tuple(m for m in state.steering if m.id != message.id)
        d.follow_ups = tuple(m for m in state.follow_ups if m.id != message.id)
    return _frozen(d)
