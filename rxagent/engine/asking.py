"""The result of a call that waits for answers: it carries the questions, so that no cut of the log can lose them."""

from collections.abc import Sequence
from typing import cast

from rxagent.events import Interrupt
from rxagent.messages import JsonObject, ToolResult

WAITING = "waiting for an answer"


def waiting(questions: Sequence[Interrupt]) -> ToolResult:
    """The result of an interrupted call, before its answers are there."""
    asked = [
        {
            "id": question.id,
            "question": question.question,
            "schema": question.schema,
            "path": list(question.path),
            "call_id": question.call_id,
            "tool_name": question.tool_name,
        }
        for question in questions
    ]
    return ToolResult(details={"interrupts": asked}, summary=WAITING)


def asked_in(result: ToolResult) -> tuple[Interrupt, ...]:
    """The questions of an interrupted call's result."""
    details = result.details
    if not isinstance(details, dict) or not isinstance(details.get("interrupts"), list):
        return ()
    return tuple(_interrupt(item) for item in cast("list[JsonObject]", details["interrupts"]))


def _interrupt(item: JsonObject) -> Interrupt:
    path = tuple(str(name) for name in cast("list[object]", item["path"]))
    schema = cast("JsonObject | None", item["schema"])
    return Interrupt(str(item["id"]), str(item["question"]), schema, path, str(item["call_id"]), str(item["tool_name"]))
