"""When the events of a recorded run happened, and where on a drawing that is."""

from collections.abc import Sequence
from itertools import pairwise

from rxagent import events as ev
from rxagent.events import AnyEvent

_DELTA = 4.0  # pixels between the first deltas of a message; later ones come closer and closer
_WAIT = 160.0  # the longest that a wait is drawn
_AIM = 1400.0  # pixels for the whole of the measured time


def times_of(events: Sequence[AnyEvent]) -> list[float | None]:
    """The time of each event in seconds, known or interpolated; None throughout where no time passes."""
    known: list[float | None] = []
    started: dict[tuple[tuple[str, ...], str], float] = {}
    latest: float | None = None
    for event in events:
        time: float | None = None
        if isinstance(event, ev.MessageStart) and event.message.timestamp > 0:
            time = event.message.timestamp
        elif isinstance(event, ev.ToolStart) and latest is not None:
            started[event.origin.path, event.call_id] = latest
        elif isinstance(event, ev.ToolEnd) and (event.origin.path, event.call_id) in started:
            time = started[event.origin.path, event.call_id] + event.duration
        if time is not None:
            latest = time if latest is None else max(latest, time)
            time = latest
        known.append(time)
    return _interpolated(known)


def _interpolated(known: list[float | None]) -> list[float | None]:
    anchors = [(n, t) for n, t in enumerate(known) if t is not None]
    if not anchors or anchors[-1][1] - anchors[0][1] < 0.001:
        return [None] * len(known)
    filled: list[float | None] = list(known)
    for n in range(anchors[0][0]):
        filled[n] = anchors[0][1]
    for (n, t), (m, u) in pairwise(anchors):
        for k in range(n + 1, m):
            filled[k] = t + (u - t) * (k - n) / (m - n)
    for n in range(anchors[-1][0], len(known)):
        filled[n] = anchors[-1][1]
    return filled


def positions(events: Sequence[AnyEvent], times: list[float | None], step: float) -> list[float]:
    """Where each event stands, in pixels: by its time, but at least ``step`` behind the one before; deltas closer."""
    known = [t for t in times if t is not None]
    scale = _AIM / (known[-1] - known[0]) if known else 0.0
    xs: list[float] = []
    x, before, deltas = step, known[0] if known else 0.0, 0
    for event, time in zip(events, times, strict=True):
        deltas = deltas + 1 if isinstance(event, ev.MessageUpdate) else 0
        least = _DELTA * min(1.0, 40 / deltas) if deltas else step
        passed = 0.0 if time is None else (time - before) * scale
        x += min(max(least, passed), _WAIT)
        before = before if time is None else time
        xs.append(x)
    return xs
