"""How operators of this room are made: one closure between source and observer, and whose events they speak of."""

from collections.abc import Callable
from typing import TypeVar

from reactivex import Observable, abc

from rxagent.events import agent as e
from rxagent.flow.direct import Direct

T = TypeVar("T")
OnEvent = Callable[[e.AnyEvent], None]
Operator = Callable[[Observable[e.AnyEvent]], Observable[T]]


def fused(start: Callable[[abc.ObserverBase[T]], OnEvent]) -> Operator[T]:
    """An operator from a function that, given the observer, makes the handler of one subscription's events.

    Errors and completion pass through. The observer is called within the source's call, so its
    holds reach the source.
    """

    def operator(source: Observable[e.AnyEvent]) -> Observable[T]:
        def subscribe(observer: abc.ObserverBase[T]) -> abc.DisposableBase:
            return source.subscribe(start(observer), observer.on_error, observer.on_completed)

        return Direct(subscribe)

    return operator


class Outermost:
    """Tells the events of the agents a stream is about from those of agents that work for a call of theirs.

    An agent that runs as a tool speaks to the agent that called it, so its text is no part of the
    answer. Put `by_agent` first to hear one such agent alone: in its stream nothing is further out.
    Ask about every event: a stream that is joined late may have no other sign of an outer agent.
    """

    __slots__ = ("_latest", "_rank")

    def __init__(self) -> None:
        self._rank = 1_000_000
        self._latest: e.Origin | None = None  # taken; a run's events share one

    def takes(self, origin: e.Origin) -> bool:
        """Whether nothing further out has been heard than this."""
        if origin is self._latest:
            return True
        rank = len(origin.path) if origin.call_id else 0
        if rank > self._rank:
            return False
        self._rank = rank
        self._latest = origin
        return True
