"""Reading OpenAI chat completions, and what the many servers that speak it make of them. No I/O here.

Source: https://platform.openai.com/docs/api-reference/chat/streaming
"""

from collections.abc import Mapping
from typing import cast

from pydantic import JsonValue

from rxagent.events.model import (
    ModelError,
    ResponseStart,
    TextEnd,
    TextStart,
    ThinkingEnd,
    ThinkingStart,
    text_delta,
    thinking_delta,
)
from rxagent.messages import JsonObject, StopReason
from rxagent.models.fields import as_list, as_object, as_text, merge_known
from rxagent.models.openai_chat_calls import Calls
from rxagent.models.openai_chat_usage import usage_of
from rxagent.models.wire import Decoder

WIRE = "openai-chat"

_STOPS: Mapping[str, StopReason] = {
    "length": "length",
    "max_tokens": "length",
    "max_output_tokens": "length",
    "max_length": "length",
    "model_length": "length",
    "token_limit": "length",
    "content_filter": "content_filter",
    "content-filter": "content_filter",
    "safety": "content_filter",
    "refusal": "content_filter",
    "recitation": "content_filter",
    "prohibited_content": "content_filter",
    "blocklist": "content_filter",
    "sensitive": "content_filter",
    "tool_calls": "tool_use",
    "tool_call": "tool_use",
    "tool_use": "tool_use",
    "function_call": "tool_use",
    "error": "error",
    "network_error": "error",
    "insufficient_system_resource": "error",
    "malformed_function_call": "error",
    "abort": "error",
    "aborted": "error",
    "cancelled": "error",
}
_RANK: Mapping[StopReason, int] = {"error": 3, "content_filter": 2, "length": 2, "tool_use": 1, "stop": 0}


class ChatDecoder(Decoder):
    """Reads one chat completion, streamed or whole."""

    def __init__(self) -> None:
        super().__init__()
        self._started = False
        self._answered = False  # some choice was seen: an empty stream is no answer
        self._index = -1  # of the newest block
        self._kind = ""  # of the open block: text, thinking or none
        self._calls = Calls()
        self._finish: StopReason | None = None
        self._finished = False
        self._reason = ""
        self._usage: JsonObject = {}
        self._details: list[JsonObject] = []
        self._reasoning_field = ""

    def chunk(self, name: str, value: JsonObject) -> None:
        """Reads one ``chat.completion.chunk``."""
        choices = value.get("choices")
        if isinstance(choices, list) and len(choices) == 1 and "error" not in value:
            # nine of ten chunks: nothing but more of the text or of a call's arguments
            choice = choices[0]
            if isinstance(choice, dict) and not (choice.get("finish_reason") or choice.get("index") or value.get("usage")):
                delta = choice.get("delta")
                if isinstance(delta, dict) and len(delta) == 1:
                    text = delta.get("content")
                    if self._kind == "text" and isinstance(text, str) and text:
                        self._finished = False
                        self.out.append(text_delta(text, self._index))
                        return
                    if (more := self._calls.more(delta.get("tool_calls"))) is not None:
                        self._finished = False
                        self.out.append(more)
                        return
        self._general(name, value)

    def whole(self, value: JsonObject) -> None:
        """Reads a ``chat.completion``."""
        self._general("", value)
        if self.done:
            return
        if self._answered:
            self._close()
        else:
            self.fail(ModelError("protocol", f"the answer is no chat completion: {value!r:.300}"))

    @property
    def complete(self) -> bool:
        """The finish reason was seen and nothing of the answer since; usage and ``[DONE]`` may follow."""
        return self._finished

    def sentinel(self) -> None:
        """``[DONE]``: the stream is over, with or without a finish reason."""
        if self._finish is not None or self._answered:
            self._close()
        else:
            self.fail(ModelError("protocol", "the stream held no answer", retryable=True))

    def eof(self, failure: ModelError) -> None:
        """Complete if a finish reason was seen, though ``[DONE]`` or usage is missing."""
        if self._finish is not None:
            self._close()
        else:
            self.fail(failure)

    def _general(self, name: str, value: JsonObject) -> None:
        if not self._started and (value.get("choices") or value.get("id")) and not value.get("error"):
            self._started = True
            self.out.append(ResponseStart(as_text(value.get("model")) or None, as_text(value.get("id")) or None))
        merge_known(self._usage, value.get("usage"))
        merge_known(self._usage, as_object(value.get("x_groq")).get("usage"))
        for item in as_list(value.get("choices")):
            if isinstance(item, dict) and item.get("index") in (None, 0, "0"):
                self._choice(item)
                if self.done:
                    return
        silent = not isinstance(value.get("choices"), list) and not value.get("usage")
        if value.get("error") or name == "error" or (silent and _complains(value)):
            self.fail_with(value)

    def _choice(self, choice: JsonObject) -> None:
        self._answered = True
        said = len(self.out)
        delta = choice.get("delta")
        if not isinstance(delta, dict):
            # a whole message; some servers repeat it at the end of a stream
            delta = choice.get("message") if self._index < 0 else None
        if isinstance(delta, dict):
            self._delta(delta)
        elif isinstance(choice.get("text"), str):
            self._text(as_text(choice.get("text")))
        if len(self.out) > said:
            self._finished = False  # the finish reason came too early
        merge_known(self._usage, choice.get("usage"))
        if choice.get("error"):
            self.fail_with(choice)
            return
        reason = choice.get("finish_reason")
        if isinstance(reason, str) and reason:
            self._finished = True
            stop = _STOPS.get(reason.lower(), "stop")
            if self._finish is None or _RANK[stop] > _RANK[self._finish]:
                self._finish, self._reason = stop, reason

    def _delta(self, delta: JsonObject) -> None:
        reasoning, field = _reasoning(delta)
        if reasoning:
            self._reasoning_field = self._reasoning_field or field
            self._thinking(reasoning)
        for item in as_list(delta.get("reasoning_details")):
            self._detail(as_object(item))
        content = delta.get("content")
        if isinstance(content, str):
            self._text(content)
        elif isinstance(content, list):
            self._parts(content)
        self._text(as_text(delta.get("refusal")))
        fragments = delta.get("tool_calls")
        if isinstance(fragments, dict):
            fragments = [fragments]
        if isinstance(fragments, list) and fragments:
            for fragment in fragments:
                self._call(as_object(fragment))
        elif isinstance(delta.get("function_call"), dict):
            self._call({"index": 0, "function": delta["function_call"]})

    def _call(self, fragment: Mapping[str, JsonValue]) -> None:
        call = self._calls.find(fragment)
        if call is None:
            return
        if call.index < 0:
            self._shut()
            self._calls.settle(self.out)
            self._index += 1
            call.index = self._index
            self.has_calls = True
        call.take(fragment, self.out)

    def _text(self, text: str) -> None:
        if not text:
            return
        if self._kind != "text":
            self._shut()
            self._calls.settle(self.out)
            self._index += 1
            self._kind = "text"
            self.out.append(TextStart(self._index))
        self.out.append(text_delta(text, self._index))

    def _thinking(self, text: str) -> None:
        if self._kind != "thinking":
            self._shut()
            self._calls.settle(self.out)
            self._index += 1
            self._kind = "thinking"
            self.out.append(ThinkingStart(self._index))
        self.out.append(thinking_delta(text, self._index))

    def _shut(self) -> None:
        if self._kind == "text":
            self.out.append(TextEnd(self._index))
        elif self._kind == "thinking":
            self.out.append(ThinkingEnd(self._index, {"wire": WIRE, "field": self._reasoning_field}))
        self._kind = ""

    def _parts(self, parts: list[JsonValue]) -> None:
        for part in parts:
            if isinstance(part, str):
                self._text(part)
                continue
            value = as_object(part)
            thinking = value.get("thinking")
            if isinstance(thinking, list):
                thinking = "".join(as_text(as_object(item).get("text")) for item in thinking)
            if isinstance(thinking, str) and thinking:
                self._reasoning_field = self._reasoning_field or "content"
                self._thinking(thinking)
            self._text(as_text(value.get("text")) or as_text(value.get("refusal")))

    def _detail(self, detail: Mapping[str, JsonValue]) -> None:
        """Pieces of one detail are joined, so that they can go back as one."""
        last = self._details[-1] if self._details else None
        if last is not None and last.get("type") == detail.get("type") and last.get("index") == detail.get("index"):
            for key, piece in detail.items():
                before = last.get(key)
                if key in ("text", "summary", "data") and isinstance(before, str) and isinstance(piece, str):
                    last[key] = before + piece
                elif piece is not None:
                    last[key] = piece
        elif detail:
            self._details.append(dict(detail))

    def _close(self) -> None:
        self._shut()
        self._calls.close(self.out)
        if self._finish == "error":
            self.fail(ModelError("server", f"the server ended the answer with finish reason {self._reason!r}", retryable=True))
            return
        replay: JsonObject | None = None
        if self._details:
            replay = {"wire": WIRE, "reasoning_details": cast("list[JsonValue]", self._details)}
        self.end(self._finish, usage_of(self._usage), replay)


def _reasoning(delta: JsonObject) -> tuple[str, str]:
    for field in ("reasoning_content", "reasoning", "reasoning_text", "thinking"):
        value = delta.get(field)
        if isinstance(value, str) and value:
            return value, field
        if isinstance(value, dict) and (text := as_text(value.get("content")) or as_text(value.get("text"))):
            return text, field
    pieces = [as_object(item) for item in as_list(delta.get("reasoning_details"))]
    return "".join(as_text(p.get("text")) or as_text(p.get("summary")) for p in pieces), "reasoning_details"


def _complains(value: JsonObject) -> bool:
    return (
        value.get("object") == "error"
        or value.get("type") == "error"
        or any(
            isinstance(value.get(key), str | list | dict) and value.get(key)
            for key in ("message", "detail", "errors", "msg", "error_message")
        )
    )
