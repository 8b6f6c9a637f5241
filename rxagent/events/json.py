"""Events and messages as JSON, both ways, linear in the size of the stream.

`to_json` writes one event; a `MessageUpdate` is its delta alone. `EventReader` reads a stream of
events and folds the deltas, so each update has its message again.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import cache

from pydantic import TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError
from pydantic_core import to_json as json_bytes

from rxagent.errors import CorruptLog
from rxagent.events.agent import (
    AgentEvent,
    AnyEvent,
    MessageEnd,
    MessageStart,
    MessageUpdate,
    ModelRetry,
    Origin,
)
from rxagent.events.draft import Draft
from rxagent.messages import AnyMessage, AssistantMessage, JsonObject, Message
from rxagent.messages.parts import without_surrogates


@cache
def event_adapter() -> TypeAdapter[AnyEvent]:
    """The pydantic adapter of all events; built at first use."""
    return TypeAdapter(AgentEvent)


@cache
def message_adapter() -> TypeAdapter[AnyMessage]:
    """The pydantic adapter of all messages; built at first use."""
    return TypeAdapter(Message)


@cache
def _writer(kind: type[AnyEvent]) -> Callable[[AnyEvent], bytes]:
    """What writes events of one kind; half the time of finding the kind in the union each time."""
    return TypeAdapter(kind).serializer.to_json


def to_json(event: AnyEvent) -> bytes:
    """One event as one line of JSON, without the line end. Lone surrogates, which JSON in UTF-8 can't hold, are replaced."""
    try:
        return _writer(type(event))(event)
    except PydanticSerializationError:
        return json_bytes(without_surrogates(to_object(event)))


def to_object(event: AnyEvent) -> JsonObject:
    """One event as a JSON object."""
    return event_adapter().dump_python(event, mode="json")


class EventReader:
    """Reads the events of one stream, in order; gives each update the message so far.

    Origins are shared again between events. Event types it doesn't know become `UnknownEvent`.
    """

    def __init__(self) -> None:
        self._origins: dict[Origin, Origin] = {}
        self._drafts: dict[tuple[tuple[str, ...], str], Draft] = {}
        self._count = 0

    def read(self, line: bytes | str, *, place: str = "") -> AnyEvent:
        """Reads one line. ``place`` says where it stands; by default "line N", counted from 1.

        Raises:
            CorruptLog: it is no event; names the place and what is wrong.
        """
        self._count += 1
        try:
            event = event_adapter().validate_json(line)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = ".".join(str(step) for step in first["loc"][2:])
            shown = line if isinstance(line, str) else line.decode("utf-8", "replace")
            raise CorruptLog(
                f"{place or f'line {self._count}'} is no event: {first['msg']}"
                f"{f' at {where}' if where else ''}; it reads {shown:.120}"
            ) from error
        return self.fold(event)

    def read_all(self, lines: Iterable[bytes | str]) -> Iterator[AnyEvent]:
        """Reads lines as they come; blank ones are skipped."""
        for line in lines:
            if line.strip():
                yield self.read(line)

    def fold(self, event: AnyEvent) -> AnyEvent:
        """Completes one event that was read without its message."""
        origin = self._origins.setdefault(event.origin, event.origin)
        speaker = (origin.path, origin.call_id)  # children of one name may speak at once, each for its call
        if isinstance(event, MessageUpdate):
            draft = self._drafts.get(speaker)
            message = draft.add(event.delta) if draft is not None else event.message
            return replace(event, message=message, origin=origin)
        if isinstance(event, MessageStart) and isinstance(event.message, AssistantMessage):
            start = event.message
            self._drafts[speaker] = draft = Draft(start.id, start.timestamp, start.model)
            return replace(event, message=draft.message(), origin=origin)
        if isinstance(event, ModelRetry) or (isinstance(event, MessageEnd) and isinstance(event.message, AssistantMessage)):
            self._drafts.pop(speaker, None)
        return event if event.origin is origin else replace(event, origin=origin)
