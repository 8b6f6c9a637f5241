"""When the events of a recorded run happened, as far as the log tells."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
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


class Replayed:
    """The events of a stored session, at their pace; iterable as often as one likes."""

    def __init__(self, load: Callable[[], Awaitable[Sequence[AnyEvent]]], speed: float | None) -> None:
        self._load = load
        self._speed = speed

    async def __aiter__(self) -> AsyncIterator[AnyEvent]:
        log = await self._load()
        at = times(log) if self._speed is not None else []
        clock = asyncio.get_running_loop().time
        began = clock()
        for index, event in enumerate(log):
            if self._speed is not None and (early := began + at[index] / self._speed - clock()) > 0:
                await asyncio.sleep(early)
            yield event
