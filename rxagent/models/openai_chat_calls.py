"""Tool calls of a chat stream: whose a fragment is, and what it adds."""

from collections.abc import Mapping

from pydantic import JsonValue
from pydantic_core import from_json, to_json

from rxagent.events.model import ToolCallEnd, ToolCallStart, tool_call_delta
from rxagent.messages import JsonObject
from rxagent.models.deltas import Out
from rxagent.models.fields import as_object, as_text


class Call:
    """One call. Its start waits for the arguments, so that an id or the rest of a name may still come."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.index = -1  # of its block; given when it opens
        self.said = ""  # the id that the server gave, which may be that of another call as well
        self.id = ""
        self.name = ""
        self.started = False
        self._fragments = 0
        self._pieces: list[str] = []
        self._sent = 0
        self._restarts = False  # some piece may begin the arguments again
        self._object: JsonObject | None = None
        self._extra: JsonValue = None

    def take(self, fragment: Mapping[str, JsonValue], out: Out) -> None:
        """Takes one fragment in: id and name are assigned, arguments appended."""
        self._fragments += 1
        function = as_object(fragment.get("function"))
        self.name = _name(self.name, as_text(function.get("name")) or as_text(fragment.get("name")))
        self._extra = fragment.get("extra_content") or self._extra
        arguments = function.get("arguments")
        if arguments is None:
            arguments = fragment.get("arguments")
        if isinstance(arguments, dict):
            self._object = arguments
        elif arguments is not None:
            self._piece(arguments if isinstance(arguments, str) else to_json(arguments).decode())
        if self.started:
            self._send(out)
        elif self.name and self._pieces and (self.id or self._fragments > 1):
            self.start(out)

    def more(self, pieces: list[str]) -> None:
        """Takes arguments only, which are sent already; the call is under way."""
        for piece in pieces:
            self._restarts = self._restarts or (piece[0] == "{" and bool(self._pieces))
            self._pieces.append(piece)
        self._sent += len(pieces)

    def start(self, out: Out) -> None:
        """Opens the block, if it isn't open."""
        if not self.started:
            self.started = True
            out.append(ToolCallStart(self.id or f"call_{self.number}", self.name, self.index))
            self._send(out)

    def close(self, out: Out) -> None:
        """The call is complete."""
        self.start(out)
        if self._object is not None and not self._pieces:
            out.append(tool_call_delta(to_json(self._object).decode(), self.index))
        replay: JsonObject | None = {"wire": "openai-chat", "extra_content": self._extra} if self._extra else None
        # an empty object before pieces holds their place
        whole = self._object is not None and bool(self._object or not self._pieces)
        arguments = self._object if whole else self._repeated() if self._restarts else None
        out.append(ToolCallEnd(self.index, arguments, replay))

    @property
    def under_way(self) -> bool:
        """Some of its arguments are sent, and nothing of it is held back."""
        return self.started and 0 < self._sent == len(self._pieces)

    @property
    def has_arguments(self) -> bool:
        """Something of its arguments came."""
        return bool(self._pieces) or self._object is not None

    @property
    def unfinished(self) -> bool:
        """Its arguments so far are the beginning of something."""
        if not self._pieces:
            return False
        return not self._pieces[-1].rstrip().endswith("}") or _object("".join(self._pieces)) is None

    def _piece(self, piece: str) -> None:
        if not piece:
            return
        if self._pieces == ["{}"] and piece.lstrip().startswith("{") and not self._sent:
            self._pieces.clear()  # a placeholder; the arguments follow
        self._restarts = self._restarts or (bool(self._pieces) and piece.startswith("{"))
        self._pieces.append(piece)

    def _send(self, out: Out) -> None:
        pieces = self._pieces
        while self._sent < len(pieces) and pieces != ["{}"]:
            out.append(tool_call_delta(pieces[self._sent], self.index))
            self._sent += 1

    def _repeated(self) -> JsonObject | None:
        """The arguments, where a server sent them again: all of them so far in each piece, or whole after their pieces."""
        last = self._pieces[-1]
        if (found := _object(last)) is None or _object("".join(self._pieces)) is not None:
            return None
        before = self._pieces[:-1]
        grew = all(later.startswith(earlier) for earlier, later in zip(before, self._pieces[1:], strict=True))
        return found if grew or "".join(before) == last else None


def _name(known: str, said: str) -> str:
    """A name said again is the same name; another is the rest of it."""
    if not said or said == known:
        return known
    return said if said.startswith(known) else known + said


def _object(text: str) -> JsonObject | None:
    try:
        value: JsonValue = from_json(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


class Calls:
    """The calls of one answer, told apart by index, without one by id, without both by having a name."""

    def __init__(self) -> None:
        self._all: list[Call] = []
        self._by_index: dict[int, Call] = {}
        self._by_id: dict[str, Call] = {}

    def going_on(self, fragments: JsonValue) -> tuple[Call, str] | None:
        """The call and the piece of a single fragment that only adds arguments to a call under way; None for all others."""
        if not isinstance(fragments, list) or len(fragments) != 1:
            return None
        fragment = fragments[0]
        if not isinstance(fragment, dict) or "id" in fragment or "extra_content" in fragment:
            return None
        index, function = fragment.get("index"), fragment.get("function")
        if not isinstance(index, int) or not isinstance(function, dict) or function.get("name"):
            return None
        call, arguments = self._by_index.get(index), function.get("arguments")
        if call is None or not isinstance(arguments, str) or not arguments:
            return None
        return (call, arguments) if call.under_way else None

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
        if call_id and not call.said:
            call.said = call_id
            taken = self._by_id.setdefault(call_id, call) is not call
            call.id = f"{call_id}_{call.number}" if taken else call_id
        return call

    def settle(self, out: Out) -> None:
        """Another block opens: calls that wait for more than their name wait no longer."""
        for call in self._all:
            if call.index >= 0 and call.name:
                call.start(out)

    def close(self, out: Out) -> None:
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
            # one index for several calls: their ids tell whose a fragment is
            return call if call_id in ("", call.said) else self._by_id.get(call_id, call)
        if call_id and call.said and call_id != call.said:
            return None
        if not call.name or not call.has_arguments or call.unfinished:
            return call
        # one index, and one id or none, for all calls: a name after whole arguments begins the next one
        return call if call_id and name == call.name else None

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
