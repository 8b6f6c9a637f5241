"""The port of Qt: PySide6, or PyQt6, whichever the parent is of."""

import contextlib
import importlib
import importlib.util
import math
import threading
import weakref
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol, TypeVar, cast

from reactivex import Observable

from rxagent.bridges.frame import Frame
from rxagent.bridges.loop import CAPACITY, PERIOD, on_loop
from rxagent.bridges.port import Closing, Held
from rxagent.errors import LoopGone, MissingExtra, UsageError
from rxagent.state import AgentState

T = TypeVar("T")

BINDINGS = ("PySide6", "PyQt6")


class QtObject(Protocol):
    """What a QObject of any binding is known by."""

    def objectName(self) -> str:  # noqa: N802 - Qt's name
        """Its name."""
        ...


class _Signal(Protocol):
    def connect(self, slot: Callable[..., object], /) -> object: ...


class _Object(Protocol):
    destroyed: _Signal

    def thread(self) -> object: ...
    def installEventFilter(self, watcher: object, /) -> None: ...  # noqa: N802 - Qt's name
    def isWidgetType(self) -> bool: ...  # noqa: N802 - Qt's name
    def isWindowType(self) -> bool: ...  # noqa: N802 - Qt's name


class _Relay(Protocol):
    """A QObject on the GUI thread: where posted events and timers arrive."""

    def wake(self) -> None: ...
    def start(self, milliseconds: int, fn: Callable[[], None]) -> None: ...
    def deleteLater(self) -> None: ...  # noqa: N802 - Qt's name


class QtPort(Closing):
    """A `Port` into Qt's event loop, for as long as ``parent`` (a window, any QObject) and the application live.

    A window lives until it is closed, too, where Qt would only hide it. To go on beyond that, take an object
    that lives longer, such as the application; a window that refuses to close (to hide itself) goes on as well.

    Make it on the GUI thread. It posts a plain event to a QObject of its own; there is no signal
    per event, and none at all between threads.

    Raises:
        UsageError: ``parent`` is no QObject of PySide6 or PyQt6, or this is another thread than its own.
        MissingExtra: Qt is not installed.
    """

    def __init__(self, parent: QtObject) -> None:
        super().__init__()
        self._thread = threading.get_ident()
        self._queue: deque[Callable[[], None]] = deque()
        self._lock = threading.Lock()
        self._held: Held[QtPort] = Held(self)
        self._relay = _relay(parent, self, self._held)
        weakref.finalize(self, _delete, self._relay).atexit = False

    def post(self, fn: Callable[[], None]) -> None:
        """See `Port`."""
        with self._lock:  # the window can't go in between: it would wait for this
            if self.closed:
                raise LoopGone("the Qt window of this bridge is gone, or its application has quit")
            self._queue.append(fn)
            self._held.busy = self
            self._relay.wake()

    def later(self, seconds: float, fn: Callable[[], None]) -> None:
        """See `Port`."""
        if self.closed:
            raise LoopGone("the Qt window of this bridge is gone, or its application has quit")
        self._relay.start(math.ceil(seconds * 1000), fn)

    def is_current(self) -> bool:
        """See `Port`."""
        return threading.get_ident() == self._thread

    def close(self) -> None:
        """The window or the application is gone."""
        with self._lock:
            self.closed = True
            self._held.busy = None
        super().close()
        self._queue.clear()

    def drain(self) -> None:
        """Calls one of what was posted."""
        if self._queue:
            fn = self._queue.popleft()
            with self._lock:
                if not self._queue:
                    self._held.busy = None
            fn()


def on_qt(
    parent: QtObject,
    *,
    period: float = PERIOD,
    capacity: int = CAPACITY,
    state: Callable[[], AgentState] | None = None,
) -> Callable[[Observable[T]], Observable[Frame[T]]]:
    """Frames on Qt's GUI thread, until ``parent`` is closed or destroyed, or the application quits; see `QtPort`, `on_loop`.

    Raises:
        UsageError: ``parent`` is no QObject of PySide6 or PyQt6, or this is another thread than its own.
    """
    return on_loop(QtPort(parent), period=period, capacity=capacity, state=state)


def _delete(relay: _Relay) -> None:
    with contextlib.suppress(RuntimeError):  # its parent has done it already
        relay.deleteLater()


def _core(parent: QtObject) -> Any:
    names = {base.__module__.partition(".")[0] for base in type(parent).__mro__}
    binding = next((name for name in BINDINGS if name in names), None)
    if binding is None:
        if not any(importlib.util.find_spec(name) for name in BINDINGS):
            raise MissingExtra("a bridge into Qt needs PySide6: pip install 'rxagent[qt]'")
        raise UsageError(f"on_qt takes a window or another QObject of {' or '.join(BINDINGS)}, not {parent!r:.100}")
    core = importlib.import_module(f"{binding}.QtCore")
    if core.QThread.currentThread() != cast("_Object", parent).thread():
        raise UsageError("a bridge into Qt is made on the GUI thread, where its parent lives")
    return core


def _relay(parent: QtObject, port: QtPort, held: Held[QtPort]) -> _Relay:
    """Where the port's events arrive; it belongs to Qt and must not keep the port, which keeps it."""
    core, inner = _core(parent), cast("_Object", parent)
    relay = _relay_class(core, held, port.closer())(parent)
    relay.timers, relay.asks = {}, False
    if inner.isWidgetType() or inner.isWindowType():  # not the application, which would show it every event there is
        inner.installEventFilter(relay)
    inner.destroyed.connect(relay.gone)  # comes while the relay, a child, is still there
    application = core.QCoreApplication.instance()
    if application is not None:
        application.aboutToQuit.connect(relay.gone)
    return relay


def _relay_class(core: Any, held: Held[QtPort], close: Callable[..., None]) -> Callable[..., Any]:
    # The bindings have the same names here; whichever it is, its base class is known at run time only.
    class Relay(core.QObject):  # pyright: ignore[reportUntypedBaseClass]
        timers: dict[int, Callable[[], None]]
        asks: bool

        def wake(self) -> None:
            core.QCoreApplication.postEvent(self, core.QEvent(core.QEvent.Type.User))

        def customEvent(self, _event: object) -> None:  # noqa: N802 - Qt's name
            target = held.port()
            if target is not None:
                target.drain()

        def start(self, milliseconds: int, fn: Callable[[], None]) -> None:
            self.timers[self.startTimer(milliseconds, core.Qt.TimerType.PreciseTimer)] = fn

        def timerEvent(self, event: "_TimerEvent") -> None:  # noqa: N802 - Qt's name
            self.killTimer(event.timerId())
            self.timers.pop(event.timerId())()

        def gone(self, *_: object) -> None:
            close()

        def eventFilter(self, watched: "_Window", event: "_Event") -> bool:  # noqa: N802 - Qt's name
            if event.type() != core.QEvent.Type.Close or self.asks:
                return False
            self.asks = True
            try:
                watched.event(event)  # whether it closes is the window's own decision, so it is made here
            finally:
                self.asks = False
            if event.isAccepted():
                close()
            return True

    return Relay


class _Event(Protocol):
    def type(self) -> object: ...
    def isAccepted(self) -> bool: ...  # noqa: N802 - Qt's name


class _Window(Protocol):
    def event(self, event: object, /) -> bool: ...


class _TimerEvent(Protocol):
    def timerId(self) -> int: ...  # noqa: N802 - Qt's name
