"""Gemini ``streamGenerateContent``, read: chunks in, `ModelEvent`s out. Sans I/O.

The protocol has no terminal event: the answer is complete if a finish reason came before the bytes ended.
Source: https://ai.google.dev/api/generate-content
"""

import re
from collections.abc import Callable, Mapping
from typing import NotRequired, TypedDict

from pydantic import JsonValue

from rxagent.events.model import (
    ModelError,
    ModelEvent,
    ResponseStart,
    TextEnd,
    TextStart,
    ThinkingEnd,
    ThinkingStart,
    ToolCallEnd,
    ToolCallStart,
    text_delta,
    thinking_delta,
)
from rxagent.messages import JsonObject, StopReason, Usage
from rxagent.models.fields import as_count, as_list, as_object, as_text, known_sum
from rxagent.models.stops import graver
from rxagent.models.wire import Decoder

WIRE = "gemini"
_USAGES = 64  # that may wait to be read
_TEXT = re.compile(rb'"text"\s*:\s*"')
_UNSAID = ("", "FINISH_REASON_UNSPECIFIED", "BLOCK_REASON_UNSPECIFIED", "BLOCKED_REASON_UNSPECIFIED")
_STOP: Mapping[str, StopReason] = {
    "STOP": "stop",
    "MAX_TOKENS": "length",
    "CONTINUATION": "length",
    **dict.fromkeys(
        (
            "SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY",
            "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION", "MODEL_ARMOR", "ESCALATION", "PUP_LIMITED_DISABLED", "JAILBREAK",
        ),
        "content_filter",
    ),
}  # fmt: skip
# The model went astray: asked again it mostly finds its way.
_ASTRAY = (
    "MALFORMED_FUNCTION_CALL", "MALFORMED_RESPONSE", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS", "OTHER",
    "IMAGE_OTHER", "NO_IMAGE", "MISSING_THOUGHT_SIGNATURE",
)  # fmt: skip


def _means(reason: str) -> StopReason | None:
    if not reason:
        return None
    return "error" if reason.upper() in _ASTRAY else _STOP.get(reason.upper(), "stop")


class _Part(TypedDict):
    text: str
    thought: NotRequired[bool]


class _Content(TypedDict):
    parts: list[_Part]


class _Candidate(TypedDict):
    content: _Content


class _Chunk(TypedDict):
    candidates: list[_Candidate]
    usageMetadata: JsonObject


class GeminiDecoder(Decoder):
    """Reads one answer. ``model`` is the name it was asked by: thought signatures are good for that one only."""

    def __init__(self, model: str = "") -> None:
        super().__init__()
        self._model = model
        self._kind = ""  # of the open block: text, thinking, or none
        self._fields = 0  # of a part that is nothing but more of it
        self._delta: Callable[[str, int], ModelEvent] = text_delta
        self._index = -1
        self._signature = ""
        self._tail = ""
        self._started = False
        self._stop = ""
        self._said = ""
        self._usage: JsonObject = {}
        self._usages: list[JsonObject] = []

    def chunk(self, name: str, value: JsonObject) -> None:
        """Reads one ``GenerateContentResponse``."""
        try:
            # most chunks are nothing but more of the open block; where the fields are others, the reading fails
            chunk: _Chunk = value  # pyright: ignore[reportAssignmentType]
            (candidate,) = chunk["candidates"]
            (part,) = candidate["content"]["parts"]
            text = part["text"]
            usage = chunk["usageMetadata"]
            if (
                len(part) == self._fields
                and text.__class__ is str
                and text
                and usage.__class__ is dict
                and "finishReason" not in candidate
                and not candidate.get("index")
                and "error" not in chunk
                and "promptFeedback" not in chunk
                and (self._fields == 1 or part.get("thought") is True)
            ):
                self.out.append(self._delta(text, self._index))
                self._usages.append(usage)
                if len(self._usages) > _USAGES:
                    self._settle()
                self.same(_TEXT, self._delta, self._index, text)
                return
        except (LookupError, TypeError, ValueError):
            pass
        self._general(value)

    def _general(self, value: JsonObject) -> None:
        inner = value.get("response")
        if isinstance(inner, dict) and "candidates" not in value:
            value = inner  # as the gateways of Code Assist wrap it
        if value.get("error"):
            self.fail_with(value)
            return
        if not self._started:
            self._started = True
            self.out.append(ResponseStart(as_text(value.get("modelVersion")) or None, as_text(value.get("responseId")) or None))
        candidates = [as_object(candidate) for candidate in as_list(value.get("candidates"))]
        for candidate in [candidate for candidate in candidates if candidate.get("index") in (None, 0, "0")][:1]:
            self._candidate(candidate)
        usage = value.get("usageMetadata")
        if isinstance(usage, dict):
            self._usages.append(usage)
        blocked = as_object(value.get("promptFeedback"))
        if as_text(blocked.get("blockReason")) not in _UNSAID:
            self._stop = "SAFETY"
            self._said = as_text(blocked.get("blockReasonMessage"))

    def _settle(self) -> None:
        """Reads the usage that came with every chunk: only the last known value of each field counts."""
        for name in set[str]().union(*self._usages):
            known = (usage[name] for usage in reversed(self._usages) if usage.get(name) is not None)
            self._usage[name] = next(known, self._usage.get(name))
        self._usages.clear()

    def whole(self, value: JsonObject) -> None:
        """Reads an answer that came in one piece."""
        self.chunk("", value)
        if not self.done:
            self.eof(ModelError("protocol", f"the answer is no Gemini response: {value!r:.200}", retryable=True))

    def sentinel(self) -> None:
        """``[DONE]`` is no word of this protocol, but gateways end their answers with it."""
        self.eof(ModelError("protocol", "the answer ended without a finish reason", retryable=True))

    def eof(self, failure: ModelError) -> None:
        """Ends the answer: well if a finish reason came before the bytes ended by themselves."""
        if not self._stop or failure.kind != "protocol":
            self.fail(failure)
            return
        self._shut()
        if self._stop in _ASTRAY:
            said = f": {self._said}" if self._said else ""
            self.fail(ModelError("protocol", f"the model ended with {self._stop}{said}", retryable=True))
            return
        tail: JsonObject | None = {"wire": WIRE, "model": self._model, "thoughtSignature": self._tail} if self._tail else None
        self._settle()
        self.end(_STOP.get(self._stop, "stop"), usage_of(self._usage), tail)

    def _candidate(self, candidate: Mapping[str, JsonValue]) -> None:
        content = candidate.get("content")
        if isinstance(content, dict):
            for part in as_list(content.get("parts")):
                if isinstance(part, dict) and not self.done:
                    self._part(part)
        reason = candidate.get("finishReason")
        if isinstance(reason, str) and reason not in _UNSAID and graver(_means(reason) or "stop", _means(self._stop)):
            self._stop = reason.upper()
            self._said = as_text(candidate.get("finishMessage"))

    def _part(self, part: JsonObject) -> None:
        text = part.get("text")
        if text and isinstance(text, str):
            kind = "thinking" if part.get("thought") is True else "text"
            if kind != self._kind:
                self._begin(kind)
            self.out.append(self._delta(text, self._index))
        call = part.get("functionCall") or part.get("function_call")
        signature = as_text(part.get("thoughtSignature") or part.get("thought_signature"))
        if isinstance(call, dict):
            self._call(call, signature)
        elif signature and self._kind:
            self._signature = signature
            self._shut()  # signed parts must not be joined with others
        elif signature:
            self._tail = signature  # of an empty part, with nothing it could belong to

    def _begin(self, kind: str) -> None:
        self._shut()
        self._kind = kind
        self._index += 1
        if kind == "text":
            self._fields, self._delta = 1, text_delta
            self.out.append(TextStart(self._index))
        else:
            self._fields, self._delta = 2, thinking_delta
            self.out.append(ThinkingStart(self._index))

    def _shut(self) -> None:
        replay: JsonObject | None = None
        if self._signature:
            replay = {"wire": WIRE, "model": self._model, "thoughtSignature": self._signature}
        if self._kind == "text":
            self.out.append(TextEnd(self._index, replay))
        elif self._kind == "thinking":
            self.out.append(ThinkingEnd(self._index, replay))
        self._kind = self._signature = ""
        self._fields = 0

    def _call(self, call: JsonObject, signature: str) -> None:
        if call.get("willContinue") or "partialArgs" in call:
            said = "the server sends a call's arguments in parts, which it was not asked for"
            self.fail(ModelError("protocol", said))
            return
        self._shut()
        self._index += 1
        self.has_calls = True
        call_id = as_text(call.get("id"))
        arguments = call.get("args")
        replay: JsonObject = {"wire": WIRE, "model": self._model}
        if call_id:
            replay["id"] = call_id
        if signature:
            replay["thoughtSignature"] = signature
        self.out.append(ToolCallStart(self.call_id(call_id, self._index), as_text(call.get("name")), self._index))
        self.out.append(ToolCallEnd(self._index, arguments if isinstance(arguments, dict | str) else {}, replay))


def usage_of(usage: JsonObject) -> Usage | None:
    """Token counts. Gemini counts thoughts beside the answer's tokens; our output holds both."""
    if not usage:
        return None
    prompt, tools = as_count(usage.get("promptTokenCount")), as_count(usage.get("toolUsePromptTokenCount"))
    answer, thoughts = as_count(usage.get("candidatesTokenCount")), as_count(usage.get("thoughtsTokenCount"))
    total = as_count(usage.get("totalTokenCount"))
    output = known_sum(answer, thoughts)
    if answer is not None and thoughts and total == known_sum(prompt, tools, answer):
        output = answer  # a server that counts the thoughts among them
    return Usage(
        input=None if prompt is None else known_sum(prompt, tools),
        output=output,
        cache_read=as_count(usage.get("cachedContentTokenCount")),
        reasoning=thoughts,
    )
