"""The port of Tk."""

import atexit
import os
import sys
import threading
import traceback
import weakref
from collections import deque
from collections.abc import Callable
from typing import Protocol, TypeVar, cast

from reactivex import Observable

from rxagent.bridges.frame import Frame
from rxagent.bridges.loop import CAPACITY, PERIOD, on_loop
from rxagent.bridges.port import Closing, Held
from rxagent.errors import LoopGone, UsageError
from rxagent.state import AgentState

T = TypeVar("T")

READABLE = 2  # Tcl's TCL_READABLE
POLL_MILLISECONDS = 16


class TkWidget(Protocol):
    """What a Tk window or widget is known by."""

    def winfo_toplevel(self) -> object:
        """Its window."""
        ...


class _Event(Protocol):
    widget: object


class _Root(Protocol):
    def report_callback_exception(self, kind: object, error: object, trace: object, /) -> None: ...


class _Widget(Protocol):
    tk: object

    def nametowidget(self, name: str, /) -> _Root: ...
    def after(self, ms: int, func: Callable[[], object], /) -> str: ...
    def after_cancel(self, id: str, /) -> None: ...  # noqa: A002 - Tk's name
    def bind(self, sequence: str, func: Callable[[_Event], object], add: str, /) -> object: ...


class TkPort(Closing):
    """A `Port` into Tk's event loop, for as long as ``widget`` (the root, any window or widget) exists.

    Make it on the thread that runs the main loop. Tcl is called on that thread only: another thread
    writes a byte into a pipe that Tk watches. Where Tcl can't watch files (Windows), Tk looks for
    work 60 times a second.
    """

    def __init__(self, widget: TkWidget) -> None:
        if not hasattr(widget, "winfo_toplevel"):
            raise UsageError(f"on_tk takes the root, a window or a widget of Tk, not {widget!r:.100}")
        super().__init__()
        inner = cast("_Widget", widget)
        self._widget: _Widget | None = inner
        self._thread = threading.get_ident()
        self._queue: deque[Callable[[], None]] = deque()
        self._timers: dict[object, str] = {}
        self._lock = threading.Lock()
        self._awake = False
        # The window must not keep the port, or each bridge that was ever made would stay with it.
        self._held: Held[TkPort] = Held(self)
        drain, close = _drain(self._held), self.closer()
        self._files = _Pipe(inner.tk, drain) if hasattr(inner.tk, "createfilehandler") else None
        if self._files is None:
            _poll(inner, drain)
        else:
            weakref.finalize(self, self._files.retire).atexit = False

        def destroyed(event: _Event) -> None:
            if event.widget is widget:  # a window hears of its children, too
                close()
                # An interpreter that another thread's garbage collection comes upon takes the whole
                # process down ("Tcl_AsyncDelete"), so this one stays until the main thread ends.
                atexit.register(_keep, inner.tk)

        inner.bind("<Destroy>", destroyed, "+")

    def post(self, fn: Callable[[], None]) -> None:
        """See `Port`."""
        with self._lock:
            if self.closed:
                raise LoopGone("the Tk window of this bridge is destroyed")
            self._queue.append(fn)
            self._held.busy = self
            if self._files is not None and not self._awake:
                self._awake = True
                self._files.wake()

    def later(self, seconds: float, fn: Callable[[], None]) -> None:
        """See `Port`."""
        if self._widget is None:
            raise LoopGone("the Tk window of this bridge is destroyed")
        timers = self._timers

        def fire() -> None:
            timers.pop(key, None)
            fn()

        key = object()
        timers[key] = self._widget.after(max(1, round(seconds * 1000)), fire)

    def is_current(self) -> bool:
        """See `Port`."""
        return threading.get_ident() == self._thread

    def close(self) -> None:
        """The window is gone."""
        with self._lock:
            self.closed = True
            self._held.busy = None
            if self._files is not None:
                self._files.close()
        widget, self._widget = self._widget, None
        if widget is not None:
            for timer in self._timers.values():  # Tk would call them yet, and complain that they are gone
                widget.after_cancel(timer)
        self._timers.clear()
        super().close()
        self._queue.clear()

    def drain(self) -> None:
        """Calls what was posted."""
        with self._lock:
            self._awake = False
            self._held.busy = None
            count = len(self._queue)
        for _ in range(count):
            if not self._queue:  # the window was destroyed by one of them
                return
            try:
                self._queue.popleft()()
            except Exception:  # raised into a file handler, it would end the main loop
                self._report()

    def _report(self) -> None:
        """Reports what is being handled, as Tk does it for a callback."""
        root = None if self._widget is None else self._widget.nametowidget(".")
        if root is None:
            traceback.print_exc()
        else:
            root.report_callback_exception(*sys.exc_info())


def _keep(_interpreter: object) -> None:
    """Does nothing at exit; until then it is what an interpreter is kept by."""


def _drain(held: Held[TkPort]) -> Callable[[], bool]:
    """Drains the port if it is still wanted; says whether it is."""

    def drain() -> bool:
        target = held.port()
        if target is None or target.closed:
            return False
        target.drain()
        return True

    return drain


def _poll(widget: _Widget, drain: Callable[[], bool]) -> None:
    if drain():
        widget.after(POLL_MILLISECONDS, lambda: _poll(widget, drain))


class _FileHandlers(Protocol):
    def createfilehandler(self, file: int, mask: int, func: Callable[[object, int], object], /) -> None: ...
    def deletefilehandler(self, file: int, /) -> None: ...


class _Pipe:
    """A pipe whose far end is watched by Tcl. Only ``wake`` and ``retire`` are called from other threads."""

    def __init__(self, tk: object, drain: Callable[[], bool]) -> None:
        self._tk: _FileHandlers = tk  # pyright: ignore[reportAttributeAccessIssue] - asked for by name, above
        self._read, self._write = os.pipe()
        os.set_blocking(self._read, False)
        os.set_blocking(self._write, False)
        self._open = True
        self._drain = drain
        self._tk.createfilehandler(self._read, READABLE, self._readable)

    def _readable(self, _file: object, _mask: int) -> None:
        if self._open:
            os.read(self._read, 64)
            if not self._drain():
                self.close()

    def wake(self) -> None:
        os.write(self._write, b"\0")

    def retire(self) -> None:
        """Nobody needs it any more: wake Tk's thread, which will find that out."""
        if self._open:
            self.wake()

    def close(self) -> None:
        if not self._open:
            return
        self._open = False
        self._tk.deletefilehandler(self._read)
        os.close(self._read)
        os.close(self._write)


def on_tk(
    widget: TkWidget,
    *,
    period: float = PERIOD,
    capacity: int = CAPACITY,
    state: Callable[[], AgentState] | None = None,
) -> Callable[[Observable[T]], Observable[Frame[T]]]:
    """Frames in Tk's main loop, until ``widget`` (the root, a window) is destroyed; see `on_loop`.

    Call it on the thread of the main loop; the loop needn't run yet.
    """
    return on_loop(TkPort(widget), period=period, capacity=capacity, state=state)
