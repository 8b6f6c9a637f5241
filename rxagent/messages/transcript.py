"""An immutable sequence that appends in constant time.

Successive transcripts share one growing list, each seeing its own prefix of it. Appending to an
older one copies, so a fork never shows in the original.
"""

import threading
from collections.abc import Iterable, Iterator, Sequence
from typing import Generic, TypeVar, cast, overload

T = TypeVar("T")


class _Shared(Generic[T]):
    __slots__ = ("items", "lock")

    def __init__(self, items: list[T]) -> None:
        self.items = items
        self.lock = threading.Lock()


class Transcript(Sequence[T]):
    """An immutable sequence; equal to any tuple, list or transcript with the same items."""

    __slots__ = ("_length", "_shared")

    def __init__(self, items: Iterable[T] = ()) -> None:
        self._shared = _Shared(list(items))
        self._length = len(self._shared.items)

    def append(self, item: T) -> "Transcript[T]":
        """A transcript with one more item; this one stays as it is. O(1) at the newest end."""
        shared, length = self._shared, self._length
        with shared.lock:
            if len(shared.items) == length:
                shared.items.append(item)
            else:
                shared = _Shared([*shared.items[:length], item])
        longer = cast("Transcript[T]", object.__new__(Transcript))
        longer._shared = shared
        longer._length = length + 1
        return longer

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[T, ...]: ...
    def __getitem__(self, index: int | slice) -> T | tuple[T, ...]:
        if isinstance(index, slice):
            start, stop, step = index.indices(self._length)
            return tuple(self._shared.items[i] for i in range(start, stop, step))
        if not -self._length <= index < self._length:
            raise IndexError(f"index {index} of a transcript of {self._length}")
        return self._shared.items[index + self._length if index < 0 else index]

    def __iter__(self) -> Iterator[T]:
        items = self._shared.items
        return (items[i] for i in range(self._length))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Transcript | tuple | list):
            return NotImplemented
        items = cast("Transcript[object] | tuple[object, ...] | list[object]", other)
        if isinstance(items, Transcript) and items._shared is self._shared:
            return items._length == self._length
        return tuple(self) == tuple(items)

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __reduce__(self) -> tuple[type["Transcript[T]"], tuple[list[T]]]:
        return Transcript, (list(self),)  # its own prefix, without what it shares with longer ones

    def __repr__(self) -> str:
        return f"Transcript({list(self)!r})"
