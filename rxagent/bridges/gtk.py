"""The port of GTK (3 or 4), and of any other program on GLib's main loop."""

import importlib
import math
import threading
from collections.abc import Callable
from typing import Protocol, TypeVar, cast

from reactivex import Observable

from rxagent.bridges.frame import Frame
from rxagent.bridges.loop import CAPACITY, PERIOD, on_loop
from rxagent.bridges.port import Closing
from rxagent.errors import LoopGone, MissingExtra
from rxagent.state import AgentState

T = TypeVar("T")


class GtkWidget(Protocol):
    """What is asked of a window: to tell when it is destroyed."""

    def connect(self, signal: str, handler: Callable[..., object], /) -> int:
        """Call back on a signal."""
        ...


class _GLib(Protocol):
    PRIORITY_DEFAULT: int

    def idle_add(self, function: Callable[[], bool], *, priority: int) -> int: ...
    def timeout_add(self, interval: int, function: Callable[[], bool], *, priority: int) -> int: ...


class GtkPort(Closing):
    """A `Port` into GLib's default main loop, for as long as ``widget`` (a window, if given) exists.

    Make it on the thread of the main loop.

    Raises:
        MissingExtra: PyGObject is not installed.
    """

    def __init__(self, widget: GtkWidget | None = None) -> None:
        super().__init__()
        try:
            self._glib = cast("_GLib", importlib.import_module("gi.repository.GLib"))
        except ImportError as error:
            raise MissingExtra(
                "a bridge into GTK needs PyGObject, which comes with the system's Python: apt install python3-gi gir1.2-gtk-3.0"
            ) from error
        self._thread = threading.get_ident()
        if widget is not None:
            widget.connect("destroy", self.closer())

    def post(self, fn: Callable[[], None]) -> None:
        """See `Port`."""
        if self.closed:
            raise LoopGone("the GTK window of this bridge is destroyed")
        # Above redraws, as input is; the default of idle_add would let a busy window starve the stream.
        self._glib.idle_add(self._once(fn), priority=self._glib.PRIORITY_DEFAULT)

    def later(self, seconds: float, fn: Callable[[], None]) -> None:
        """See `Port`."""
        if self.closed:
            raise LoopGone("the GTK window of this bridge is destroyed")
        self._glib.timeout_add(math.ceil(seconds * 1000), self._once(fn), priority=self._glib.PRIORITY_DEFAULT)

    def is_current(self) -> bool:
        """See `Port`."""
        return threading.get_ident() == self._thread

    def _once(self, fn: Callable[[], None]) -> Callable[[], bool]:
        def call() -> bool:
            if not self.closed:
                fn()
            return False  # GLib's word for "not again"

        return call


def on_gtk(
    widget: GtkWidget | None = None,
    *,
    period: float = PERIOD,
    capacity: int = CAPACITY,
    state: Callable[[], AgentState] | None = None,
) -> Callable[[Observable[T]], Observable[Frame[T]]]:
    """Frames on GTK's main loop, until ``widget`` (a window, if given) is destroyed; see `on_loop`.

    Raises:
        MissingExtra: PyGObject is not installed.
    """
    return on_loop(GtkPort(widget), period=period, capacity=capacity, state=state)
