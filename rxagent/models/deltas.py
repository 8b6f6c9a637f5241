"""`Deltas`: a stretch of deltas as the strings they are made of, until they are taken.

With a thousand streams at once each object that waits is walked by the garbage collector again and again; a string is not.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple, cast

from rxagent.events.model import ModelEvent

MakeDelta = Callable[[str, int], ModelEvent]


class Deltas(NamedTuple):
    """Deltas of one block that came one right after the other; ``make`` makes each of its text and the block's index."""

    make: MakeDelta
    block: int
    texts: list[str]


Out = list[ModelEvent | Deltas]


def each(out: Out) -> Iterator[ModelEvent]:
    """The events one by one."""
    for item in out:
        if type(item) is Deltas:
            make, index, texts = item
            for text in texts:
                yield make(text, index)
        else:
            yield cast("ModelEvent", item)
