"""Where reading must begin so that every update finds the start of its message.

An update is stored as its delta alone. Whoever reads from the middle of an answer needs the answer's
beginning as well, so a store notes beside each event which answers are still being streamed after it.
"""

from typing import NamedTuple

from rxagent.events import AnyEvent, MessageEnd, MessageStart


class Speaker(NamedTuple):
    """Whose answer it is: the agent's path, and the call it works for (children of one name may speak at once)."""

    path: tuple[str, ...]
    call_id: str


class Openings:
    """The answers that are being streamed at one point of a log."""

    __slots__ = ("_earliest", "_open")

    def __init__(self) -> None:
        self._open: dict[Speaker, int] = {}
        self._earliest: int | None = None

    def copy(self) -> "Openings":
        """One that goes on by itself."""
        twin = Openings()
        twin._open = dict(self._open)
        twin._earliest = self._earliest
        return twin

    def after(self, event: AnyEvent) -> int | None:
        """Takes an event in; the seq of the earliest answer that is streaming after it, or None."""
        kind = event.type
        if kind == "message_update":
            return self._earliest
        role = event.message.role if isinstance(event, MessageStart | MessageEnd) else ""
        return self.step(event.seq, kind, role, Speaker(event.origin.path, event.origin.call_id))

    def step(self, seq: int, kind: str, role: str, speaker: Speaker) -> int | None:
        """The same for an event of which only this is known: its seq and type, its message's role, who speaks."""
        if kind == "message_start" and role == "assistant":
            self._open[speaker] = seq
        elif kind == "model_retry" or (kind == "message_end" and role == "assistant"):
            self._open.pop(speaker, None)
        elif kind == "agent_start":
            self._begin_run(speaker)
        else:
            return self._earliest
        self._earliest = min(self._open.values(), default=None)
        return self._earliest

    def _begin_run(self, speaker: Speaker) -> None:
        """Forgets what a crashed run left open: the agent's own answer and, for one that is nobody's tool, all below."""
        self._open.pop(speaker, None)
        if not speaker.call_id:
            depth = len(speaker.path)
            for other in [each for each in self._open if len(each.path) > depth and each.path[:depth] == speaker.path]:
                del self._open[other]


def message_time(event: AnyEvent) -> float | None:
    """When the message was made that begins with this event, in seconds since 1970; None: it begins none, or unknown."""
    return event.message.timestamp or None if isinstance(event, MessageStart) else None
