"""The port of wxPython."""

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


class WxEvent(Protocol):
    """An event of wx."""

    def Skip(self) -> None:  # noqa: N802 - wx's name
        """Let others see it."""
        ...


class WxWindow(Protocol):
    """What is asked of a window: to tell when it is destroyed."""

    def Bind(self, event: object, handler: Callable[[WxEvent], object], /) -> None:  # noqa: N802 - wx's name
        """Call back on an event."""
        ...


class _Wx(Protocol):
    EVT_WINDOW_DESTROY: object

    def CallAfter(self, fn: Callable[[], None], /) -> None: ...  # noqa: N802 - wx's name
    def CallLater(self, ms: int, fn: Callable[[], None], /) -> object: ...  # noqa: N802 - wx's name
    def GetApp(self) -> object: ...  # noqa: N802 - wx's name


class WxPort(Closing):
    """A `Port` into wx's main loop, for as long as ``window`` (a frame, any window) exists.

    Make it on the main thread, when there is a ``wx.App``.

    Raises:
        MissingExtra: wxPython is not installed.
    """

    def __init__(self, window: WxWindow) -> None:
        super().__init__()
        try:
            self._wx = cast("_Wx", importlib.import_module("wx"))
        except ImportError as error:
            raise MissingExtra(
                "a bridge into wx needs wxPython: apt install python3-wxgtk4.0 (for the system's Python), or pip install wxPython"
            ) from error
        self._thread = threading.get_ident()
        self._window = window
        self._timers: dict[object, object] = {}
        close = self.closer()

        def destroyed(event: WxEvent) -> None:
            event.Skip()
            if not window:  # its own end, not one of its children's: wx's half of the object is gone
                close()

        window.Bind(self._wx.EVT_WINDOW_DESTROY, destroyed)

    def post(self, fn: Callable[[], None]) -> None:
        """See `Port`."""
        if self.closed or not self._window or not self._wx.GetApp():
            raise LoopGone("the wx window of this bridge is destroyed")
        self._wx.CallAfter(lambda: self._call(fn))

    def later(self, seconds: float, fn: Callable[[], None]) -> None:
        """See `Port`."""
        if self.closed:
            raise LoopGone("the wx window of this bridge is destroyed")
        key = object()

        def fire() -> None:
            self._timers.pop(key, None)
            self._call(fn)

        self._timers[key] = self._wx.CallLater(max(1, math.ceil(seconds * 1000)), fire)  # kept: wx forgets it otherwise

    def is_current(self) -> bool:
        """See `Port`."""
        return threading.get_ident() == self._thread

    def _call(self, fn: Callable[[], None]) -> None:
        if not self.closed:
            fn()

    def close(self) -> None:
        """The window is gone."""
        self._timers.clear()
        super().close()


def on_wx(
    window: WxWindow,
    *,
    period: float = PERIOD,
    capacity: int = CAPACITY,
    state: Callable[[], AgentState] | None = None,
) -> Callable[[Observable[T]], Observable[Frame[T]]]:
    """Frames in wx's main loop, until ``window`` is destroyed; see `on_loop`.

    Raises:
        MissingExtra: wxPython is not installed.
    """
    return on_loop(WxPort(window), period=period, capacity=capacity, state=state)
