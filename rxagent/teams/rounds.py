"""Where a team is, read from its transcript: its present input, its last step, how that ended."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from rxagent.events import Outcome
from rxagent.messages import AnyMessage, AssistantMessage, ToolAction, ToolResultMessage, UserMessage


@dataclass(frozen=True, slots=True)
class StepResult:
    """How a step ended. ``text``: its answer, or what went wrong."""

    agent: str
    outcome: Outcome
    text: str
    action: ToolAction | None = None


@dataclass(frozen=True, slots=True)
class Round:
    """Where a team is: ``since`` is the index of the first message of the present input."""

    since: int
    number: int = -1
    results: tuple[StepResult, ...] = ()
    again: bool = False


def round_of(messages: Sequence[AnyMessage]) -> Round:
    """Where a team is, read from the end of its transcript."""
    results: list[ToolResultMessage] = []
    said: int | None = None  # the first message of the input since the last step or answer
    broken = False
    at = len(messages) - 1
    while at >= 0:
        message = messages[at]
        if isinstance(message, AssistantMessage):
            if message.stop_reason not in ("error", "aborted"):
                break
            broken = True
        elif isinstance(message, ToolResultMessage):
            results.append(message)
        elif not broken or said is None:
            said = at
        at -= 1
    step = _step_of(messages[at]) if at >= 0 else None
    if step is None:
        return Round(len(messages) if said is None else said)
    ends = [_step_result(result) for result in reversed(results)]
    known = tuple(end for end in ends if end is not None and end.outcome != "aborted")
    if not broken and len(known) == len(ends):
        return Round(step[1], step[0], known)
    return Round(step[1], step[0], again=True) if said is None else Round(said)


def _step_of(message: AnyMessage) -> tuple[int, int] | None:
    """Number and round of the step that an answer of a plan called for."""
    calls = message.tool_calls if isinstance(message, AssistantMessage) else ()
    if not calls:
        return None
    number, since = calls[0].arguments.get("step"), calls[0].arguments.get("since")
    return (number, since) if isinstance(number, int) and isinstance(since, int) else None


def _step_result(message: ToolResultMessage) -> StepResult | None:
    """A step's end, from its result; None where the step did not come to one."""
    details = message.details
    if not isinstance(details, dict) or "outcome" not in details:
        return None
    action = cast("ToolAction | None", details.get("action"))
    return StepResult(str(details.get("agent")), cast("Outcome", details["outcome"]), message.text, action)


def input_of(messages: Sequence[AnyMessage], call_id: str, since: int, *, with_answer: bool) -> tuple[AnyMessage, ...]:
    """What a step is given: the prompt, the answer of the step before, and what was said since."""
    given: list[AnyMessage] = []
    index = since
    while index < len(messages) and not isinstance(messages[index], AssistantMessage):
        if not isinstance(messages[index], ToolResultMessage):
            given.append(messages[index])
        index += 1
    at = len(messages) - 1
    while at >= 0 and not _asks_for(messages[at], call_id):
        at -= 1
    before: list[AnyMessage] = []
    at -= 1
    while at > index:
        message = messages[at]
        if isinstance(message, AssistantMessage):
            break
        before.append(UserMessage(message.text) if isinstance(message, ToolResultMessage) else message)
        at -= 1
    return (*given, *reversed(before)) if with_answer else tuple(given)


def _asks_for(message: AnyMessage, call_id: str) -> bool:
    return isinstance(message, AssistantMessage) and any(call.id == call_id for call in message.tool_calls)
