"""A timer that keeps its place among timers of the same instant."""

import asyncio
from collections.abc import Callable
from contextvars import Context


class OrderedTimer(asyncio.TimerHandle):
    """Ordered by instant, then by turn (a heap alone forgets the turn). ``key``: seconds, and the turn."""

    __slots__ = ("_turn",)

    def __init__(
        self,
        key: tuple[float, int],
        callback: Callable[..., object],
        args: tuple[object, ...],
        loop: asyncio.AbstractEventLoop,
        context: Context | None,
    ) -> None:
        super().__init__(key[0], callback, args, loop, context)
        self._turn = key[1]

    def __lt__(self, other: object) -> bool:
        if not isinstance(other, OrderedTimer):
            return NotImplemented
        return (self.when(), self._turn) < (other.when(), other._turn)

    def __hash__(self) -> int:
        return id(self)

    def __eq__(self, other: object) -> bool:
        return self is other
