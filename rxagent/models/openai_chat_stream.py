"""Reading OpenAI chat completions, and what the many servers that speak it make of them. No I/O here.

Source: https://platform.openai.com/docs/api-reference/chat/streaming
"""

import re
from collections.abc import Mapping
from typing import cast

from pydantic import JsonValue

from rxagent.events.model import (
    ModelError,
    ModelEvent,
    ResponseStart,
    TextDelta,
    TextEnd,
    TextStart,
    ThinkingDelta,
    ThinkingEnd,
    ThinkingStart,
    text_delta,
    thinking_delta,
    tool_call_delta,
)
from rxagent.messages import JsonObject, StopReason
from rxagent.models.deltas import Deltas
from rxagent.models.fields import as_list, as_object, as_text, merge_known
from rxagent.models.openai_chat_calls import Calls
from rxagent.models.openai_chat_usage import usage_of
from rxagent.models.openai_chat_words import STOPS, complains, reasoning_in
from rxagent.models.stops import graver
from rxagent.models.wire import Decoder

WIRE = "openai-chat"

_ARGUMENTS = re.compile(rb'"arguments"\s*:\s*"')
_CONTENT = re.compile(rb'"content"\s*:\s*"')


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
            if isinstance(choice, dict) and not (
                choice.get("finish_reason")
                or choice.get("index")
                or value.get("usage")
                or choice.get("usage")
                or choice.get("error")
                or value.get("x_groq")
            ):
                delta = choice.get("delta")
                if isinstance(delta, dict) and len(delta) == 1:
                    text = delta.get("content")
                    if self._kind == "text" and isinstance(text, str) and text:
                        self._finished = False
                        self.out.append(text_delta(text, self._index))
                        self.same(_CONTENT, text_delta, self._index, text)
                        return
                    if (more := self._calls.going_on(delta.get("tool_calls"))) is not None:
                        call, arguments = more
                        self._finished = False
                        call.more([arguments])
                        self.out.append(tool_call_delta(arguments, call.index))
                        self.same(_ARGUMENTS, tool_call_delta, call.index, arguments, call.more)
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
        said = len(self.out)
        merge_known(self._usage, value.get("usage"))
        merge_known(self._usage, as_object(value.get("x_groq")).get("usage"))
        for item in as_list(value.get("choices")):
            if isinstance(item, dict) and item.get("index") in (None, 0, "0"):
                self._choice(item)
                if self.done:
                    return
        silent = not isinstance(value.get("choices"), list) and not value.get("usage")
        if value.get("error") or name == "error" or (silent and complains(value)):
            self.fail_with(value)
        elif len(self.out) == said + 1:
            self._again(value, self.out[-1])

    def _again(self, value: JsonObject, event: ModelEvent | Deltas) -> None:
        """Tells whether a chunk that gave one delta would give just that for any other text in it."""
        choices = as_list(value.get("choices"))
        choice = as_object(choices[0] if len(choices) == 1 else None)
        if choice.get("finish_reason") or value.get("usage") or choice.get("usage") or value.get("x_groq"):
            return
        delta = as_object(choice.get("delta"))
        fields = [field for field, said in delta.items() if said and field != "role"]
        if len(fields) == 1 and isinstance(event, TextDelta | ThinkingDelta) and delta[fields[0]] == event.text:
            make = text_delta if isinstance(event, TextDelta) else thinking_delta
            self.same(re.compile(rb'"%b"\s*:\s*"' % re.escape(fields[0]).encode()), make, event.index, event.text)

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
            stop = STOPS.get(reason.lower(), "stop")
            if graver(stop, self._finish):
                self._finish, self._reason = stop, reason

    def _delta(self, delta: JsonObject) -> None:
        reasoning, field = reasoning_in(delta)
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
