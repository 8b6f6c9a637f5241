"""A session's events under another session's id."""

from collections.abc import Sequence
from dataclasses import replace

from rxagent.events import AnyEvent, Origin, UnknownEvent
from rxagent.messages import JsonObject


def moved(events: Sequence[AnyEvent], session_id: str) -> list[AnyEvent]:
    """Copies of the events, of the other session; they share origins as the originals do."""
    origins: dict[Origin, Origin] = {}
    result: list[AnyEvent] = []
    for event in events:
        origin = origins.get(event.origin)
        if origin is None:
            origin = origins[event.origin] = replace(event.origin, session_id=session_id)
        if isinstance(event, UnknownEvent):
            result.append(replace(event, data=_renamed(event.data, session_id), origin=origin))
        else:
            result.append(replace(event, origin=origin))
    return result


def _renamed(data: JsonObject, session_id: str) -> JsonObject:
    origin = data.get("origin")
    return {**data, "origin": {**origin, "session_id": session_id}} if isinstance(origin, dict) else data
