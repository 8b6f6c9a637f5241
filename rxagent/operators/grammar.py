"""The grammar of a run as data: the table of which event may follow where.

1. `TABLE` is the whole protocol of one run; `grammar_run` walks it and counts ids, turns and calls.
2. A symbol is an event seen by the grammar: messages differ by role, everything else by its type.
3. ``custom``, ``queue_changed``, ``config_changed`` and ``handoff`` are no symbols: they may stand anywhere in a run.
"""

from enum import Enum

from rxagent.errors import GrammarError
from rxagent.events import agent as e
from rxagent.messages import AssistantMessage, ToolResultMessage


class At(Enum):
    """Where a run is; the value is how an error message says it."""

    READY = "before the run"
    STARTED = "the run has begun"
    FRESH = "the first turn of a resumed run has begun"
    TURN = "the turn has begun"
    INPUT = "an input message is open"
    RETRY = "the model will be asked again"
    ANSWER = "the answer is open"
    ANSWERED = "the answer is complete"
    TOOLS = "the tools have begun"
    RESULT = "a result message is open"
    RESULTS = "results are being written"
    BETWEEN = "the turn is over"
    ENDING = "the run was interrupted"
    DONE = "the run is over"


class Sign(Enum):
    """A symbol of the grammar; the value is how an error message names it."""

    AGENT_START = "agent_start"
    TURN_START = "turn_start"
    INPUT_START = "message_start (input)"
    INPUT_END = "message_end (input)"
    ANSWER_START = "message_start (assistant)"
    UPDATE = "message_update"
    ANSWER_END = "message_end (assistant)"
    RETRY = "model_retry"
    TOOL_START = "tool_start"
    TOOL_UPDATE = "tool_update"
    TOOL_END = "tool_end"
    RESULT_START = "message_start (tool)"
    RESULT_END = "message_end (tool)"
    TURN_END = "turn_end"
    INTERRUPTED = "interrupted"
    AGENT_END = "agent_end"


_TURN = {
    Sign.INPUT_START: At.INPUT,
    Sign.RESULT_START: At.INPUT,  # a result that the application brings itself is an input like any other
    Sign.ANSWER_START: At.ANSWER,
    Sign.RETRY: At.RETRY,
    Sign.TURN_END: At.BETWEEN,
}

TABLE: dict[At, dict[Sign, At]] = {
    At.READY: {Sign.AGENT_START: At.STARTED},
    At.STARTED: {Sign.TURN_START: At.TURN},
    At.TURN: _TURN,
    At.FRESH: {**_TURN, Sign.TOOL_START: At.TOOLS, Sign.RESULT_START: At.RESULT},
    At.INPUT: {Sign.INPUT_END: At.TURN, Sign.RESULT_END: At.TURN},
    At.RETRY: {Sign.ANSWER_START: At.ANSWER, Sign.RETRY: At.RETRY},
    At.ANSWER: {Sign.UPDATE: At.ANSWER, Sign.RETRY: At.RETRY, Sign.ANSWER_END: At.ANSWERED},
    At.ANSWERED: {Sign.TOOL_START: At.TOOLS, Sign.TURN_END: At.BETWEEN},
    At.TOOLS: {
        Sign.TOOL_START: At.TOOLS,
        Sign.TOOL_UPDATE: At.TOOLS,
        Sign.TOOL_END: At.TOOLS,
        Sign.RESULT_START: At.RESULT,
        Sign.TURN_END: At.BETWEEN,
    },
    At.RESULT: {Sign.RESULT_END: At.RESULTS},
    At.RESULTS: {Sign.RESULT_START: At.RESULT, Sign.TURN_END: At.BETWEEN},
    At.BETWEEN: {Sign.TURN_START: At.TURN, Sign.INTERRUPTED: At.ENDING, Sign.AGENT_END: At.DONE},
    At.ENDING: {Sign.AGENT_END: At.DONE},
    At.DONE: {},
}

RunEvent = (
    e.AgentStart
    | e.TurnStart
    | e.MessageStart
    | e.MessageUpdate
    | e.MessageEnd
    | e.ModelRetry
    | e.ToolStart
    | e.ToolUpdate
    | e.ToolEnd
    | e.TurnEnd
    | e.Interrupted
    | e.AgentEnd
)

_SIGNS: dict[str, Sign] = {
    sign.value: sign
    for sign in (
        Sign.AGENT_START,
        Sign.TURN_START,
        Sign.UPDATE,
        Sign.RETRY,
        Sign.TOOL_START,
        Sign.TOOL_UPDATE,
        Sign.TOOL_END,
        Sign.TURN_END,
        Sign.INTERRUPTED,
        Sign.AGENT_END,
    )
}


def sign_of(event: RunEvent) -> Sign:
    """The symbol an event is to the grammar."""
    if isinstance(event, e.MessageStart | e.MessageEnd):
        start = isinstance(event, e.MessageStart)
        if isinstance(event.message, AssistantMessage):
            return Sign.ANSWER_START if start else Sign.ANSWER_END
        if isinstance(event.message, ToolResultMessage):
            return Sign.RESULT_START if start else Sign.RESULT_END
        return Sign.INPUT_START if start else Sign.INPUT_END
    return _SIGNS[event.type]


def expected_at(at: At) -> str:
    """What may follow at a place, in words."""
    words = [sign.value for sign in TABLE[at]]
    if not words:
        return "nothing may follow"
    listed = words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"
    return f"expected {listed}"


def fault(event: e.AnyEvent, wanted: str) -> GrammarError:
    """The error that says which event broke the grammar and what was expected in its place."""
    return GrammarError(f"seq {event.seq}: {_named(event)}: {wanted}")


def _named(event: e.AnyEvent) -> str:
    where = ".".join(event.origin.path) or "no path"
    match event:
        case e.MessageStart() | e.MessageEnd():
            return f"{event.type} of {event.message.role} message {event.message.id!r} at {where}"
        case e.ToolStart() | e.ToolUpdate() | e.ToolEnd():
            return f"{event.type} of {event.tool_name} {event.call_id!r} at {where}"
        case e.TurnStart():
            return f"{event.type} {event.turn} at {where}"
        case _:
            return f"{event.type} at {where}"
