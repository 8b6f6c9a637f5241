"""When the events of a recorded run happened, as far as the log tells."""

from collections.abc import Sequence
from itertools import pairwise

from rxagent.events import AnyEvent, MessageStart, ToolEnd, ToolStart


def times(events: Sequence[AnyEvent]) -> list[float]:
    """Seconds of each event since the first, never falling.

    Events carry no clock; messages tell when they began and tool calls how long they ran. In between it is
    taken that events came evenly.
    """
    anchors: list[tuple[int, float]] = []
    started: dict[str, float] = {}
    last = 0.0
    for index, event in enumerate(events):
        at: float | None = None
        if isinstance(event, MessageStart) and event.message.timestamp:
            at = event.message.timestamp
        elif isinstance(event, ToolStart):
            started[event.call_id] = last
        elif isinstance(event, ToolEnd) and event.duration and event.call_id in started:
            at = started.pop(event.call_id) + event.duration
        if at is not None and (not anchors or at >= last):
            anchors.append((index, at))
            last = at
    if not anchors:
        return [0.0] * len(events)
    origin = anchors[0][1]
    result = [0.0] * (anchors[0][0] + 1)
    for (before, earlier), (after, later) in pairwise(anchors):
        step = (later - earlier) / (after - before)
        result.extend(earlier - origin + step * n for n in range(1, after - before + 1))
    result.extend([anchors[-1][1] - origin] * (len(events) - len(result)))
    return result
