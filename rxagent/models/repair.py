"""Transcripts that every provider accepts: each call has its one result right after it, ids have the form a wire demands."""

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from rxagent.messages import (
    AnyMessage,
    AssistantMessage,
    SystemMessage,
    TextPart,
    ThinkingPart,
    ToolResultMessage,
    UserMessage,
)

KnownMessage = SystemMessage | UserMessage | AssistantMessage | ToolResultMessage
MISSING_RESULT = "No result: this call was not run to its end."


def repaired(messages: Iterable[AnyMessage]) -> list[KnownMessage]:
    """Puts each call's result right after the message that asked for it, in the order of the calls.

    A call without a result gets an error result, a result without a call is left out, a second
    result of one call too, and so are answers without anything in them. Custom messages are left out.
    """
    known = [m for m in messages if isinstance(m, KnownMessage)]
    results: dict[str, list[ToolResultMessage]] = {}
    for message in known:
        if isinstance(message, ToolResultMessage):
            results.setdefault(message.call_id, []).append(message)
    repaired: list[KnownMessage] = []
    for message in known:
        if isinstance(message, AssistantMessage):
            if not _says_something(message):
                continue
            repaired.append(message)
            for call in message.tool_calls:
                found = results.get(call.id)
                repaired.append(found.pop(0) if found else ToolResultMessage(call.id, call.name, MISSING_RESULT, is_error=True))
        elif not isinstance(message, ToolResultMessage):
            repaired.append(message)
    return repaired


def _says_something(message: AssistantMessage) -> bool:
    return bool(message.replay) or any(
        part.text or part.replay if isinstance(part, TextPart | ThinkingPart) else True for part in message.content
    )


class CallIds:
    """Call ids in the form a wire demands; the same id always becomes the same, two never become one.

    Args:
        allowed: characters that may stand in an id, as the inside of a regex class.
        longest: characters that an id may have.
        exact: it must have just that many.

    """

    def __init__(self, allowed: str = "a-zA-Z0-9_-", longest: int = 64, *, exact: bool = False) -> None:
        self._shortest = longest if exact else 1
        self._bad = re.compile(f"[^{allowed}]")
        self._longest = longest

    def of(self, call_id: str) -> str:
        """The id as the wire takes it."""
        if self._shortest <= len(call_id) <= self._longest and not self._bad.search(call_id):
            return call_id
        digest = hashlib.sha256(call_id.encode("utf-8", "replace")).hexdigest()[
            : self._longest if self._shortest > 1 else min(12, self._longest)
        ]
        kept = self._bad.sub("_", call_id)[: max(self._longest - 13, 0) if self._shortest == 1 else 0]
        return f"{kept}_{digest}" if kept else digest


def without_foreign_replay(messages: Sequence[KnownMessage], wire: str) -> list[KnownMessage]:
    """Drops what another wire wanted back, and reasoning that means nothing to this one."""
    return [_own(message, wire) if isinstance(message, AssistantMessage) else message for message in messages]


def _own(message: AssistantMessage, wire: str) -> AssistantMessage:
    replay = message.replay if message.replay and message.replay.get("wire") == wire else None
    content = tuple(
        replace(part, replay=None) if part.replay and part.replay.get("wire") != wire else part for part in message.content
    )
    return replace(message, content=content, replay=replay)
