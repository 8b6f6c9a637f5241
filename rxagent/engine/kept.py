"""`Kept`: the events of a run, kept for whoever subscribes late, without an object for each delta.

Event, delta and partial message of every delta would be walked by the garbage collector again and again:
half of the time of 1,000 concurrent runs. The answer's draft holds all that they say, so a stretch of
deltas is kept as (draft, position, count) and each is made again when it is read.
"""

from bisect import bisect_right
from collections.abc import Iterator

from rxagent.events import AnyEvent, Draft, MessageUpdate, Origin, TextDelta, ThinkingDelta, ToolCallDelta, message_update
from rxagent.events.draft import PartialMessage

Delta = TextDelta | ThinkingDelta | ToolCallDelta


class Stretch:
    """Deltas of one kind and one answer that came one right after the other, up to ``next_seq``."""

    __slots__ = ("draft", "kind", "next_seq", "origin", "position", "seq")

    def __init__(self, message: PartialMessage, event: MessageUpdate) -> None:
        self.draft: Draft = message.draft
        self.position = message.position
        self.kind: type[object] = type(event.delta)
        self.seq = event.seq
        self.origin: Origin = event.origin
        self.next_seq = event.seq + 1

    def __len__(self) -> int:
        return self.next_seq - self.seq

    def event(self, offset: int) -> MessageUpdate:
        """One of the updates, made again."""
        position = self.position + offset
        return message_update(self.draft.delta_at(position), self.draft.message_at(position), self.seq + offset, self.origin)


class Kept:
    """Events in order; append-only. What is read equals what was kept, and need not be the same object.

    ``last`` is the stretch that the next event may prolong, by its ``next_seq`` alone.
    """

    __slots__ = ("_items", "_settled", "_starts", "last")

    def __init__(self) -> None:
        self.last: Stretch | None = None
        self._items: list[AnyEvent | Stretch] = []
        self._starts: list[int] = []  # the index of each item's first event
        self._settled = 0  # events before ``last``

    def __len__(self) -> int:
        return self._settled if self.last is None else self._settled + len(self.last)

    def __getitem__(self, index: int) -> AnyEvent:
        size = len(self)
        if index < 0:
            index += size
        if not 0 <= index < size:
            raise IndexError(index)
        at = bisect_right(self._starts, index) - 1
        item = self._items[at]
        return item.event(index - self._starts[at]) if isinstance(item, Stretch) else item

    def __iter__(self) -> Iterator[AnyEvent]:
        at = 0
        while at < len(self):
            yield self[at]
            at += 1

    def append(self, event: AnyEvent) -> None:
        """Keeps the next event."""
        last = self.last
        if type(event) is MessageUpdate:
            # updates of one origin that follow without a gap are of one answer, one after the other
            if last is not None and event.seq == last.next_seq and type(event.delta) is last.kind and event.origin is last.origin:
                last.next_seq += 1
                return
            if type(event.message) is PartialMessage and isinstance(event.delta, Delta):
                self._put(stretch := Stretch(event.message, event))
                self.last = stretch
                return
        self._put(event)
        self._settled += 1

    def _put(self, item: AnyEvent | Stretch) -> None:
        last, self.last = self.last, None
        if last is not None:
            self._settled += len(last)
        self._starts.append(self._settled)
        self._items.append(item)
