"""`Port`: the three things a bridge needs of a toolkit's event loop."""

import weakref
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar, runtime_checkable

P = TypeVar("P")


class Port(Protocol):
    """One toolkit's event loop. The loop's thread is called the GUI thread here.

    A function that was posted and is dropped without having been called, because the loop or the
    window is gone, ends the bridge; so a port has to let go of what it will not call.
    """

    def post(self, fn: Callable[[], None]) -> None:
        """Call ``fn`` on the GUI thread soon; from any thread, and without ever blocking.

        Raises:
            LoopGone: the loop has ended or the window is closed.
        """
        ...

    def later(self, seconds: float, fn: Callable[[], None]) -> None:
        """Call ``fn`` after ``seconds``; only called on the GUI thread."""
        ...

    def is_current(self) -> bool:
        """Whether the calling code runs on the GUI thread."""
        ...


@runtime_checkable
class ClosingPort(Protocol):
    """A port that also hears when its window closes; without it a bridge finds out at its next post."""

    def on_close(self, fn: Callable[[], None]) -> Callable[[], None]:
        """Call ``fn`` when the loop or the window is gone, now if it already is; returns the way to take it back."""
        ...


class Held(Generic[P]):
    """A port as its toolkit holds it: not at all, but while something that was posted waits to be called.

    A bridge that nobody refers to any more is left to the garbage collector, and what was posted is not lost with it.
    """

    __slots__ = ("_weak", "busy")

    def __init__(self, port: P) -> None:
        self._weak = weakref.ref(port)
        self.busy: P | None = None

    def port(self) -> P | None:
        """The port, None if it is gone."""
        return self.busy or self._weak()


class Closing:
    """The ``on_close`` of a port: keeps who wants to hear, tells each once."""

    def __init__(self) -> None:
        self.closed = False
        self._callbacks: dict[object, Callable[[], None]] = {}

    def on_close(self, fn: Callable[[], None]) -> Callable[[], None]:
        """See `ClosingPort`."""
        key = object()
        self._callbacks[key] = fn
        if self.closed:
            self.close()

        def forget() -> None:
            self._callbacks.pop(key, None)

        return forget

    def close(self) -> None:
        """The loop or the window is gone."""
        self.closed = True
        while self._callbacks:
            try:
                _, fn = self._callbacks.popitem()
            except KeyError:  # another thread took the last one
                return
            fn()

    def closer(self) -> Callable[..., None]:
        """A function that closes, whatever it is called with, and doesn't keep the port: for the window to keep."""
        weak = weakref.ref(self)

        def close(*_: object) -> None:
            target = weak()
            if target is not None:
                target.close()

        return close
