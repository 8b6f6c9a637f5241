"""Anthropic Messages streams, read: chunks in, `ModelEvent`s out. Sans I/O.

Source: https://platform.claude.com/docs/en/build-with-claude/streaming
"""

import re
from collections.abc import Callable, Mapping
from contextlib import suppress

from pydantic import JsonValue
from pydantic_core import from_json

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
    tool_call_delta,
)
from rxagent.messages import JsonObject, StopReason, Usage
from rxagent.models.fields import as_count, as_list, as_object, as_text, known_sum, merge_known
from rxagent.models.stops import graver
from rxagent.models.wire import Decoder

WIRE = "anthropic"
# The second line: what servers say that translate from other protocols.
_STOP: Mapping[str, StopReason] = {
    "end_turn": "stop", "stop_sequence": "stop", "pause_turn": "stop", "tool_use": "tool_use",
    "max_tokens": "length", "model_context_window_exceeded": "length", "refusal": "content_filter",
    "stop": "stop", "tool_calls": "tool_use", "length": "length", "content_filter": "content_filter",
    "sensitive": "content_filter", "error": "error", "network_error": "error",
}  # fmt: skip
_DELTA_FIELDS: Mapping[str, str] = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "input_json_delta": "partial_json",
    "signature_delta": "signature",
}
_KINDS: Mapping[str, str] = {"text": "text", "thinking": "thinking", "partial_json": "tool_use", "signature": "thinking"}

# where a delta's text is in the bytes of its event
_BYTES: Mapping[str, re.Pattern[bytes]] = {
    name: re.compile(rb'"%b"\s*:\s*"' % name.encode()) for name in ("text", "thinking", "partial_json")
}


class _Block:
    """A block: ``input`` is what its start said of arguments, ``opened``: it is out; ``item``: not shown, after ``at`` parts."""

    __slots__ = ("at", "data", "index", "input", "item", "key", "kind", "opened", "signature", "streamed")

    def __init__(self, key: int, index: int, kind: str) -> None:
        self.key = key
        self.index = index
        self.kind = kind
        self.opened = False
        self.signature = ""
        self.data = ""
        self.input: JsonValue = None
        self.streamed = False
        self.item: JsonObject = {}
        self.at = 0


class AnthropicDecoder(Decoder):
    """Reads one answer. ``model`` is the name it was asked by: signatures are good for that one only."""

    def __init__(self, model: str = "") -> None:
        super().__init__()
        self._model = model
        self._blocks: dict[int, _Block] = {}
        self._last = 0
        self._count = 0
        self._parts = 0
        self._extras: list[JsonValue] = []
        self._started = False
        self._stop = ""
        self._usage: JsonObject = {}
        # what the next delta most likely is: more of the same
        self._hot_key: int | None = None
        self._hot_field = ""
        self._hot_index = 0
        self._hot_delta: Callable[[str, int], ModelEvent] = text_delta

    def chunk(self, name: str, value: JsonObject) -> None:
        """Reads one event of the stream; ``name`` counts where the event itself has no type."""
        kind = value.get("type") or name
        if kind == "content_block_delta":
            delta = value.get("delta")
            if isinstance(delta, dict) and value.get("index") == self._hot_key:
                piece = delta.get(self._hot_field)
                if piece and isinstance(piece, str):
                    self.out.append(self._hot_delta(piece, self._hot_index))
                    self.same(_BYTES[self._hot_field], self._hot_delta, self._hot_index, piece)
                    return
            self._delta(value)
            return
        self._hot_field = ""  # a delta may lack its index, so that the key alone could not tell
        if kind == "error" or value.get("error"):
            self.fail_with(value)
        elif kind == "content_block_start":
            self._open(self._key(value), as_object(value.get("content_block")))
        elif kind == "content_block_stop":
            block = self._blocks.pop(self._key(value), None)
            if block:
                self._close(block)
        elif kind == "message_start":
            self._message(as_object(value.get("message")))
        elif kind == "message_delta":
            merge_known(self._usage, value.get("usage"))
            self._ending(as_object(value.get("delta")))
        elif kind == "message_stop":
            self._finish()
        elif kind == "message":
            self.whole(value)

    def whole(self, value: JsonObject) -> None:
        """Reads a message that came in one piece."""
        if value.get("error") or value.get("type") == "error":
            self.fail_with(value)
            return
        content = value.get("content")
        if content is None:
            self.fail(ModelError("protocol", f"the answer is no Anthropic message: {value!r:.200}", retryable=True))
            return
        self._message(value)
        for number, block in enumerate([{"type": "text", "text": content}] if isinstance(content, str) else as_list(content)):
            self._open(number, as_object(block))
        self._finish()

    def sentinel(self) -> None:
        """``[DONE]`` is no word of this protocol, but gateways end their answers with it in place of ``message_stop``."""
        if self._stop:
            self._finish()

    def _key(self, value: JsonObject) -> int:
        index = as_count(value.get("index"))
        return self._last if index is None else index

    def _message(self, message: Mapping[str, JsonValue]) -> None:
        if not self._started:
            self._started = True
            self.out.append(ResponseStart(as_text(message.get("model")) or None, as_text(message.get("id")) or None))
        merge_known(self._usage, message.get("usage"))
        self._ending(message)

    def _ending(self, fields: Mapping[str, JsonValue]) -> None:
        said = as_text(fields.get("stop_reason"))
        if said and graver(_STOP.get(said.lower(), "stop"), _STOP.get(self._stop.lower(), "stop") if self._stop else None):
            self._stop = said

    def _open(self, key: int, content: Mapping[str, JsonValue]) -> None:
        before = self._blocks.pop(key, None)
        if before:
            self._close(before)
        kind = as_text(content.get("type"))
        block = self._blocks[key] = _Block(key, self._count, "thinking" if kind == "redacted_thinking" else kind)
        self._count += 1
        self._last = key
        if kind == "text":
            self._text(block, as_text(content.get("text")))
        elif block.kind == "thinking":
            block.signature = as_text(content.get("signature"))
            block.data = as_text(content.get("data"))
            self._thinking(block, as_text(content.get("thinking")))
        elif kind == "tool_use":
            self.has_calls = True
            self._parts += 1
            block.input = content.get("input")
            call_id = self.call_id(as_text(content.get("id")), block.index)
            self.out.append(ToolCallStart(call_id, as_text(content.get("name")), block.index))
        elif kind:
            block.item, block.at = dict(content), self._parts

    def _delta(self, value: JsonObject) -> None:
        delta = value.get("delta")
        if not isinstance(delta, dict):
            return
        field = _DELTA_FIELDS.get(as_text(delta.get("type"))) or next((name for name in _KINDS if name in delta), "")
        piece = delta.get(field)
        if not piece:
            return
        key = self._key(value)
        block = self._blocks.get(key)
        if block is not None and block.item and field == "partial_json":
            block.data += as_text(piece)
        elif block is None or block.kind != _KINDS[field]:
            self._stray(key, field, piece, block)
        elif not isinstance(piece, str):
            block.input = piece
        elif field == "text":
            self._text(block, piece)
        elif field == "thinking":
            self._thinking(block, piece)
        elif field == "signature":
            block.signature += piece
        elif piece != "{}" or block.streamed:  # some servers say the start's empty input before the real one
            block.streamed = True
            self.out.append(tool_call_delta(piece, block.index))
            self._hot(block, "partial_json", tool_call_delta)

    def _stray(self, key: int, field: str, piece: JsonValue, block: _Block | None) -> None:
        """A delta that doesn't fit the block of its index."""
        if field in ("text", "thinking"):
            if block is not None and block.kind == "tool_use":
                key = -1 - key  # the call stays open: more of its arguments may come
                block = self._blocks.get(key)
            if block is None or block.kind != field:
                self._open(key, {"type": field, field: piece})
            elif isinstance(piece, str):
                (self._text if field == "text" else self._thinking)(block, piece)
        elif field == "partial_json" and (block is None or block.kind in ("text", "thinking")):
            # neither name nor id of that call is known
            self.fail(ModelError("protocol", "the stream holds arguments of a tool call that it never began", retryable=True))

    def _text(self, block: _Block, text: str) -> None:
        if not text:
            return
        if not block.opened:
            block.opened = True
            self._parts += 1
            self.out.append(TextStart(block.index))
        self.out.append(text_delta(text, block.index))
        self._hot(block, "text", text_delta)

    def _thinking(self, block: _Block, text: str) -> None:
        if not text:
            return
        if not block.opened:
            block.opened = True
            self._parts += 1
            self.out.append(ThinkingStart(block.index))
        self.out.append(thinking_delta(text, block.index))
        self._hot(block, "thinking", thinking_delta)

    def _hot(self, block: _Block, field: str, make: Callable[[str, int], ModelEvent]) -> None:
        self._hot_key, self._hot_field, self._hot_index, self._hot_delta = block.key, field, block.index, make

    def _close(self, block: _Block) -> None:
        if block.kind == "text" and block.opened:
            self.out.append(TextEnd(block.index))
        elif block.kind == "tool_use":
            said = block.input if not block.streamed and isinstance(block.input, dict | str) else None
            self.out.append(ToolCallEnd(block.index, said or None))
        elif block.kind == "thinking":
            replay: JsonObject = {"wire": WIRE, "model": self._model}
            if block.data:
                replay["data"] = block.data
            elif block.signature:
                replay["signature"] = block.signature
            elif block.opened:
                replay["unsigned"] = True
            else:
                return
            if not block.opened:
                self._parts += 1
                self.out.append(ThinkingStart(block.index))
            self.out.append(ThinkingEnd(block.index, replay))
        elif block.item:
            with suppress(ValueError):  # without its input it can't go back
                given: JsonValue = from_json(block.data) if block.data else block.item.get("input")
                self._extras.append({"at": block.at, "item": block.item if given is None else {**block.item, "input": given}})

    def _finish(self) -> None:
        for block in self._blocks.values():
            self._close(block)
        self._blocks.clear()
        said = _STOP.get(self._stop.lower())
        if said == "error":
            self.fail_with({"message": f"the server ended its answer with the stop reason {self._stop!r}"})
        else:
            extras: JsonObject = {"wire": WIRE, "model": self._model, "extras": self._extras}
            self.end(said, usage_of(self._usage), extras if self._extras else None)


def usage_of(usage: JsonObject) -> Usage | None:
    """Token counts. Anthropic's ``input_tokens`` are those beside the cache; ours are all."""
    if not usage:
        return None
    read = as_count(usage.get("cache_read_input_tokens"))
    write = as_count(usage.get("cache_creation_input_tokens"))
    if write is None:
        write = known_sum(*[as_count(part) for part in as_object(usage.get("cache_creation")).values()])
    fresh = as_count(usage.get("input_tokens"))
    return Usage(
        input=None if fresh is None else known_sum(fresh, read, write),
        output=as_count(usage.get("output_tokens")),
        cache_read=read,
        cache_write=write,
        reasoning=as_count(as_object(usage.get("output_tokens_details")).get("thinking_tokens")),
    )
