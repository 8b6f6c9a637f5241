"""OpenAI Responses streams, read: events in, `ModelEvent`s out. Sans I/O.

Servers and gateways disagree on how an event names its item: ids may change from event to event, or one
index may name several items. So an item is looked for by id, then by index, then by its kind.
Source: https://developers.openai.com/api/docs/api-reference/responses-streaming
"""

from collections.abc import Callable, Mapping

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
    tool_call_delta,
)
from rxagent.messages import JsonObject, StopReason
from rxagent.models.fields import as_count, as_list, as_object, as_text
from rxagent.models.openai_responses_events import (
    ARGUMENTS,
    BEGINNING,
    DELTA_BYTES,
    DELTAS,
    DONES,
    PART,
    TERMINAL,
    part_number,
    usage_of,
)
from rxagent.models.wire import Decoder

WIRE = "openai-responses"


class _Item:
    """An output item. ``part`` names the last text it got, ``parts`` all of them; ``opened`` and ``closed``: what is out."""

    __slots__ = ("arguments", "call_id", "closed", "index", "kind", "opened", "part", "parts")

    def __init__(self, index: int, kind: str) -> None:
        self.index = index
        self.kind = kind
        self.opened = False
        self.closed = False
        self.part: tuple[str, int] = ("", 0)
        self.parts: set[tuple[str, int]] = set()
        self.call_id = ""
        self.arguments: JsonValue = None


class ResponsesDecoder(Decoder):
    """Reads one answer. ``model`` is the name it was asked by: encrypted reasoning is good for that one only."""

    def __init__(self, model: str = "") -> None:
        super().__init__()
        self._model = model
        self._items: list[_Item] = []
        self._by_id: dict[str, _Item] = {}
        self._by_index: dict[int, _Item] = {}
        self._extras: list[JsonValue] = []
        self._started = False
        self._nameless = False
        # what the next delta most likely is: more of the same
        self._hot_kind: str | None = None
        self._hot_names: tuple[object, object, object] = (None, None, None)
        self._hot_index = 0
        self._hot_delta: Callable[[str, int], ModelEvent] = text_delta

    def chunk(self, name: str, value: JsonObject) -> None:
        """Reads one event of the stream; ``name`` counts where the event itself has no type."""
        kind = value.get("type")
        if not isinstance(kind, str):
            kind = name
        if kind == self._hot_kind:
            item_id, index, part = self._hot_names
            if value.get("item_id") == item_id and value.get("output_index") == index and value.get(PART[kind]) == part:
                piece = value.get("delta")
                if piece and isinstance(piece, str):
                    self.out.append(self._hot_delta(piece, self._hot_index))
                    self.same(DELTA_BYTES, self._hot_delta, self._hot_index, piece)
                    return
        self._hot_kind = None
        if kind in DELTAS:
            self._piece(kind, value)
        elif kind in ARGUMENTS:
            self._arguments(kind, value)
        else:
            self._event(kind, value)

    def _event(self, kind: str, value: JsonObject) -> None:
        if kind in DONES:
            self._part_done(kind, value)
        elif kind == "response.output_item.added":
            self._added(value.get("output_index"), as_object(value.get("item")))
        elif kind == "response.output_item.done":
            self._item_done(value.get("output_index"), as_object(value.get("item")))
        elif kind in TERMINAL:
            self._finish(kind, as_object(value.get("response")))
        elif kind in BEGINNING:
            self._begin(as_object(value.get("response")))
        elif kind == "error" or value.get("error"):
            self.fail_with(value)
        elif value.get("object") == "response":
            self.whole(value)

    def whole(self, value: JsonObject) -> None:
        """Reads a response object that came in one piece."""
        if isinstance(value.get("output"), list):
            self._begin(value)
            self._finish("response.done", value)
        elif value.get("error") or value.get("type") == "error":
            self.fail_with(value)
        else:
            self.fail(ModelError("protocol", f"the answer is no OpenAI response: {value!r:.200}", retryable=True))

    def _begin(self, response: Mapping[str, JsonValue]) -> None:
        if not self._started and response:
            self._started = True
            self.out.append(ResponseStart(as_text(response.get("model")) or None, as_text(response.get("id")) or None))

    # which item

    def _find(self, item_id: object, index: object, kind: str) -> _Item | None:
        item = self._by_id.get(item_id) if isinstance(item_id, str) else None
        number = as_count(index)
        if item is None and number is not None:
            item = self._by_index.get(number)
        if item is None or item.kind != kind or item.closed:
            item = next((it for it in reversed(self._items) if it.kind == kind and not it.closed), None)
        return item

    def _new(self, kind: str, index: object, item_id: object) -> _Item:
        item = _Item(len(self._items), kind)
        self._items.append(item)
        number = as_count(index)
        if number is not None:
            self._by_index[number] = item
        if isinstance(item_id, str) and item_id:
            self._by_id[item_id] = item
        return item

    def _added(self, index: object, fields: Mapping[str, JsonValue]) -> None:
        kind, item_id = as_text(fields.get("type")), as_text(fields.get("id"))
        known = self._by_id.get(item_id)
        if kind not in ("message", "reasoning", "function_call") or (known and not known.closed):
            return
        item = self._new(kind, index, item_id)
        if kind == "function_call":
            self._call(item, fields)

    # pieces

    def _piece(self, kind: str, value: JsonObject) -> None:
        item_kind, source = DELTAS[kind]
        delta = value.get("delta")
        piece = as_text(as_object(delta).get("text") or delta)
        if not piece:
            return
        item = self._find(value.get("item_id"), value.get("output_index"), item_kind)
        if item is None:
            item = self._new(item_kind, value.get("output_index"), value.get("item_id"))
        if self._text(item, piece, (source, part_number(value))):
            self._hot(kind, value, item, text_delta if item_kind == "message" else thinking_delta)

    def _hot(self, kind: str, value: JsonObject, item: _Item, make: Callable[[str, int], ModelEvent]) -> None:
        self._hot_kind = kind
        self._hot_names = (value.get("item_id"), value.get("output_index"), value.get(PART.get(kind, "")))
        self._hot_index = item.index
        self._hot_delta = make

    def _text(self, item: _Item, piece: str, part: tuple[str, int]) -> bool:
        """Puts a piece of text out; tells whether it was wanted."""
        # Some servers send reasoning as it is and its summary: the first kind is the one that is shown.
        if item.kind == "reasoning" and item.opened and part[0] != item.part[0]:
            return False
        if not item.opened:
            item.opened = True
            self.out.append(TextStart(item.index) if item.kind == "message" else ThinkingStart(item.index))
        elif item.kind == "reasoning" and part != item.part:
            piece = "\n\n" + piece
        item.part = part
        item.parts.add(part)
        self.out.append(text_delta(piece, item.index) if item.kind == "message" else thinking_delta(piece, item.index))
        return True

    def _part_done(self, kind: str, value: JsonObject) -> None:
        item_kind, source, field = DONES[kind]
        text = value.get(field)
        if isinstance(text, dict):
            source = "refusal" if text.get("refusal") else source
            text = text.get("text") or text.get("refusal")
        if not text or not isinstance(text, str):
            return
        item = self._find(value.get("item_id"), value.get("output_index"), item_kind)
        if item is None:
            if any(it.kind == item_kind for it in self._items):
                return
            item = self._new(item_kind, value.get("output_index"), value.get("item_id"))
        if (source, part_number(value)) not in item.parts:
            self._text(item, text, (source, part_number(value)))

    def _arguments(self, kind: str, value: JsonObject) -> None:
        item = self._find(value.get("item_id"), value.get("output_index"), "function_call")
        piece, whole = value.get("delta"), value.get("arguments")
        if item is None:
            self._nameless = True  # the name may still come with the whole item
        elif whole:
            item.arguments = whole
        elif piece and isinstance(piece, str) and item.opened:
            self.out.append(tool_call_delta(piece, item.index))
            self._hot(kind, value, item, tool_call_delta)
        elif piece:
            item.arguments = as_text(item.arguments) + piece if isinstance(piece, str) else piece

    def _call(self, item: _Item, fields: Mapping[str, JsonValue]) -> None:
        self.has_calls = True
        name = as_text(fields.get("name"))
        if name and not item.opened:
            item.opened = True
            item.call_id = as_text(fields.get("call_id")) or as_text(fields.get("id")) or f"call_{item.index}"
            self._by_id.setdefault(item.call_id, item)  # some servers name items by it
            self.out.append(ToolCallStart(self.call_id(item.call_id, item.index), name, item.index))
        if fields.get("arguments"):
            item.arguments = fields.get("arguments")

    # ends

    def _item_done(self, index: object, fields: Mapping[str, JsonValue]) -> None:
        kind, item_id, call_id = as_text(fields.get("type")), as_text(fields.get("id")), as_text(fields.get("call_id"))
        if kind not in ("message", "reasoning", "function_call"):
            if kind and item_id:
                self._extras.append({"at": sum(it.opened for it in self._items), "item": dict(fields)})
            return
        known = self._by_id.get(item_id) or next((it for it in self._items if call_id and it.call_id == call_id), None)
        if known and known.closed:
            return
        item = known or self._find("", index, kind)
        if item is None or (call_id and item.call_id and item.call_id != call_id):
            item = self._new(kind, index, item_id)
        self._close(item, fields)

    def _close(self, item: _Item, fields: Mapping[str, JsonValue]) -> None:
        item.closed = True
        replay: JsonObject = {"wire": WIRE, "model": self._model}
        item_id = as_text(fields.get("id"))
        if item.kind == "function_call":
            self._call(item, fields)
            if item.opened:
                whole = item.arguments if isinstance(item.arguments, dict | str) else None
                self.out.append(ToolCallEnd(item.index, whole or None, {**replay, "id": item_id} if item_id else None))
        elif item.kind == "message":
            if not item.opened:
                for number, part in enumerate(as_list(fields.get("content"))):
                    shown = as_object(part)
                    if text := as_text(shown.get("text") or shown.get("refusal")):
                        self._text(item, text, ("text", number))
            if item.opened:
                phase: JsonObject = {"phase": fields["phase"]} if fields.get("phase") else {}
                self.out.append(TextEnd(item.index, {**replay, "id": item_id, **phase} if item_id else None))
        else:
            self._close_reasoning(item, fields, replay)

    def _close_reasoning(self, item: _Item, fields: Mapping[str, JsonValue], replay: JsonObject) -> None:
        if not item.opened:
            for source in ("summary", "content"):
                for number, part in enumerate(as_list(fields.get(source))):
                    if text := as_text(as_object(part).get("text")):
                        self._text(item, text, (source, number))
        kept = bool(fields.get("encrypted_content") or fields.get("content"))
        if kept and not item.opened:
            item.opened = True
            self.out.append(ThinkingStart(item.index))
        if item.opened:
            whole: JsonObject = {key: field for key, field in fields.items() if field is not None and key != "status"}
            self.out.append(ThinkingEnd(item.index, {**replay, "item": whole} if kept else None))

    def _finish(self, kind: str, response: Mapping[str, JsonValue]) -> None:
        status = response.get("status")
        if kind == "response.failed" or status == "failed" or response.get("error"):
            self.fail_with({"error": response.get("error") or "the response failed, the server does not say why"})
            return
        if kind == "response.cancelled" or status == "cancelled":
            self.fail_with({"message": "the server cancelled the response", "type": "server_error"})
            return
        self._reconcile([as_object(item) for item in as_list(response.get("output"))])
        for item in self._items:
            if not item.closed:
                self._close(item, {})
        nameless = any(item.kind == "function_call" and not item.opened for item in self._items)
        if nameless or (self._nameless and not self.has_calls):
            self.fail(ModelError("protocol", "the stream holds arguments of a tool call that has no name", retryable=True))
            return
        reason = as_object(response.get("incomplete_details")).get("reason")
        stop: StopReason = "stop"
        if kind == "response.incomplete" or status == "incomplete":
            stop = "content_filter" if reason == "content_filter" else "length"
        replay: JsonObject | None = {"wire": WIRE, "model": self._model, "extras": self._extras} if self._extras else None
        self.end(stop, usage_of(response.get("usage")), replay)

    def _reconcile(self, output: list[Mapping[str, JsonValue]]) -> None:
        """Takes from the final list of items what the stream did not say."""
        streamed = bool(self._items)
        for kind in ("reasoning", "message", "function_call") if streamed else ():
            listed = [fields for fields in output if fields.get("type") == kind]
            seen = [item for item in self._items if item.kind == kind]
            for item, fields in zip(seen, listed, strict=False):
                if not item.closed and not (item.call_id and fields.get("call_id") not in (item.call_id, None, "")):
                    self._close(item, fields)
            # reasoning that comes after what it led to could not be sent back in its place
            for fields in listed[len(seen) :] if kind != "reasoning" else ():
                self._item_done(None, fields)
        for number, fields in enumerate(output if not streamed else ()):
            self._item_done(number, fields)
