"""`Frame`: what a GUI is handed at each tick."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar, overload

from rxagent.state import AgentState

T = TypeVar("T")


@dataclass(frozen=True, slots=True, repr=False)
class Frame(Sequence[T], Generic[T]):
    """The values of one tick, in order; a sequence of them.

    Args:
        events: the values; empty only in a last frame that has nothing else to say.
        state: the agent's state just after the last of them, where the bridge knows it: its values are
            states, or it was made with ``state`` (``AgentHost.frames`` does that).
        first_seq: the ``seq`` of the first event; for values without one, their position in the stream, from 0.
        last_seq: the same of the last one; both None when there is none.
        final: whether this is the last frame; the end of the stream follows at once.
        error: what the stream failed with, in a last frame.
    """

    events: tuple[T, ...] = ()
    state: AgentState | None = None
    first_seq: int | None = None
    last_seq: int | None = None
    final: bool = False
    error: Exception | None = None

    def __repr__(self) -> str:
        span = "" if self.first_seq is None else f", {self.first_seq} to {self.last_seq}"
        end = "" if not self.final else ", final" if self.error is None else f", final: {self.error!r}"
        return f"<Frame of {len(self.events)}{span}{end}>"

    def __len__(self) -> int:
        return len(self.events)

    def __iter__(self) -> Iterator[T]:
        return iter(self.events)

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[T, ...]: ...
    def __getitem__(self, index: int | slice) -> T | tuple[T, ...]:
        return self.events[index]
