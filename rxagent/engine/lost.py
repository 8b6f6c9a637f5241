"""Calls that were begun by a process that died: nobody knows whether they took effect.

1. Their question has the id ``<call_id>:unknown<seq of the start that was lost>``.
2. An answer is ``"rerun"``, ``"fail"`` or ``{"result": …}``; cancelling the question is ``"fail"``.
"""

from typing import cast

from pydantic import JsonValue

from rxagent.engine.profile import Recovery
from rxagent.engine.progress import CallProgress, Progress
from rxagent.errors import InterruptError
from rxagent.events import Interrupt
from rxagent.messages import JsonObject, ToolResult
from rxagent.tools import as_result, error_result

MARK = ":unknown"
SCHEMA: JsonObject = {
    "anyOf": [
        {"enum": ["rerun", "fail"]},
        {"type": "object", "properties": {"result": {}}, "required": ["result"], "additionalProperties": False},
    ]
}


def question_of(call: CallProgress, progress: Progress) -> Interrupt:
    """The question about a lost call: the one that is asked already, or a new one."""
    questions = (*call.asked, *progress.interrupts)
    asked = [question for question in questions if question.call_id == call.call.id and MARK in question.id]
    if asked:
        return asked[0]
    text = (
        f"The call {call.call.name} was begun, and then the process ended: nobody knows whether it took effect. "
        'Answer "rerun" to run it again, "fail" to tell the model that its result is unknown, or {"result": …}.'
    )
    name = f"{call.call.id}{MARK}{call.started_at}"
    return Interrupt(name, text, SCHEMA, progress.path, call.call.id, call.call.name)


def decided(call: CallProgress, progress: Progress, recovery: Recovery) -> JsonValue:
    """What was decided about a lost call: an answer to its question, or the policy."""
    question = question_of(call, progress)
    mark = f"{call.call.id}{MARK}"
    for interrupt, answer in reversed(progress.settled):
        if call.lost and interrupt.id.startswith(mark):
            return answer
    if call.lost and any(name.startswith(mark) for name in progress.cancelled):
        return "fail"
    if question.id in recovery.cancelled:
        return "fail"
    return recovery.answers.get(question.id, recovery.policy)


def given_result(name: str, answer: JsonValue) -> ToolResult:
    """The result that an answer other than "rerun" comes to."""
    if isinstance(answer, dict) and "result" in answer:
        return as_result(answer["result"], name)
    return error_result(f"{name} was begun, but the process ended before its result was kept: whether it took effect is unknown")


def check_answer(interrupt_id: str, answer: JsonValue) -> None:
    """Raises `InterruptError` for what is no answer to a question about a lost call."""
    if MARK not in interrupt_id or answer in ("rerun", "fail"):
        return
    if isinstance(answer, dict) and list(cast("JsonObject", answer)) == ["result"]:
        return
    raise InterruptError(f'interrupt {interrupt_id!r} takes "rerun", "fail" or {{"result": …}}, not {answer!r:.80}')
