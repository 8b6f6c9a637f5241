"""Tool calls of a chat stream: whose a fragment is, and what it adds."""

from collections.abc import Mapping

from pydantic import JsonValue
from pydantic_core import from_json, to_json

from rxagent.events.model import ModelEvent, ToolCallEnd, ToolCallStart, tool_call_delta
from rxagent.messages import JsonObject
from rxagent.models.fields import as_object, as_text


class Call:
    """One call. Its start is held back until its name is known, and for one fragment if the id isn't."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.index = -1  # of its block; given when it opens
        self.id = ""
        self.name = ""
        self.started = False
        self._fragments = 0
        self._pieces: list[str] = []
        self._sent = 0
        self._object: JsonObject | None = None
        self._extra: JsonValue = None

    def take(self, fragment: Mapping[str, JsonValue], out: list[ModelEvent]) -> None:
        """Takes one fragment in: id and name are assigned, arguments appended."""
        self._fragments += 1
        function = as_object(fragment.get("function"))
        self.id = self.id or as_text(fragment.get("id"))
        self.name = self.name or as_text(function.get("name")) or as_text(fragment.get("name"))
        self._extra = fragment.get("extra_content") or self._extra
        arguments = function.get("arguments")
        if arguments is None:
            arguments = fragment.get("arguments")
        if isinstance(arguments, dict):
            self._object = arguments
        elif isinstance(arguments, str):
            if arguments:
                self._pieces.append(arguments)
        elif arguments is not None:
            self._pieces.append(to_json(arguments).decode())
        if self.started:
            self._send(out)
        elif self.name and (self.id or self._fragments > 1):
            self._start(out)

    def close(self, out: list[ModelEvent]) -> None:
        """The call is complete."""
        if not self.started:
            self._start(out)
        if self._object is not None and not self._pieces:
            out.append(tool_call_delta(to_json(self._object).decode(), self.index))
        replay: JsonObject | None = {"wire": "openai-chat", "extra_content": self._extra} if self._extra else None
        out.append(ToolCallEnd(self.index, self._object, replay))

    @property
    def has_arguments(self) -> bool:
        """Something of its arguments came."""
        return bool(self._pieces) or self._object is not None

    @property
    def unfinished(self) -> bool:
        """Its arguments so far are the beginning of something."""
        if not self._pieces:
            return False
        if not self._pieces[-1].rstrip().endswith("}"):
            return True
        try:
            from_json("".join(self._pieces))
        except ValueError:
            return True
        return False

    def _start(self, out: list[ModelEvent]) -> None:
        self.started = True
        out.append(ToolCallStart(self.id or f"call_{self.number}", self.name, self.index))
        self._send(out)

    def _send(self, out: list[ModelEvent]) -> None:
        pieces = self._pieces
        while self._sent < len(pieces):
            out.append(tool_call_delta(pieces[self._sent], self.index))
            self._sent += 1


class Calls:
    """The calls of one answer, told apart by index, without one by id, without both by having a name."""

    def __init__(self) -> None:
        self._all: list[Call] = []
        self._by_index: dict[int, Call] = {}
        self._by_id: dict[str, Call] = {}

    def find(self, fragment: Mapping[str, JsonValue]) -> Call | None:
        """The call that a fragment belongs to, made if it is new; None for a fragment that says nothing."""
        index, call_id = _index(fragment.get("index")), as_text(fragment.get("id"))
        function = as_object(fragment.get("function"))
        name = as_text(function.get("name")) or as_text(fragment.get("name"))
        if not (call_id or name or function.get("arguments") or fragment.get("arguments")):
            return None if not self._all else self._by_index.get(-1 if index is None else index)
        call = self._at(index, call_id, name) if index is not None else self._unnumbered(call_id, name)
        if call is None:
            call = Call(len(self._all))
            self._all.append(call)
        if index is not None:
            self._by_index[index] = call
        if call_id:
            self._by_id.setdefault(call_id, call)
        return call

    def close(self, out: list[ModelEvent]) -> None:
        """All calls are complete."""
        for call in self._all:
            call.close(out)

    def _at(self, index: int, call_id: str, name: str) -> Call | None:
        call = self._by_index.get(index)
        if call is None:
            # the index counts fragments, not calls: the id knows better, unless a name opens a call
            known = self._by_id.get(call_id) if call_id else None
            return known if not name else None
        if not name:
            return call
        if call_id and call.id and call_id != call.id:
            return None
        if not call_id and call.name and (name != call.name or not call.unfinished) and call.has_arguments:
            return None
        return call

    def _unnumbered(self, call_id: str, name: str) -> Call | None:
        last = self._all[-1] if self._all else None
        if call_id:
            # an id made anew for every fragment comes without a name
            return self._by_id.get(call_id) or (None if name else last)
        if not name:
            return last
        return last if last is not None and last.name == name and last.unfinished else None


def _index(value: JsonValue) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, str) and value.isdigit():
        return int(value)
    return int(value) if isinstance(value, int | float) else None
