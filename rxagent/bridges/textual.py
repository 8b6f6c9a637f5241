"""The port of a Textual app."""

import importlib.util
from collections.abc import Callable
from typing import Protocol, TypeVar, cast

from reactivex import Observable

from rxagent.bridges.aio import AsyncioPort
from rxagent.bridges.frame import Frame
from rxagent.bridges.loop import CAPACITY, PERIOD, on_loop
from rxagent.errors import LoopGone, MissingExtra, NoRunningLoop, UsageError
from rxagent.state import AgentState

T = TypeVar("T")


class _App(Protocol):
    @property
    def return_code(self) -> int | None: ...
    @property
    def is_running(self) -> bool: ...


class _InApp(Protocol):
    @property
    def app(self) -> _App: ...


class Node(Protocol):
    """What is asked of a Textual app, screen or widget."""

    @property
    def is_running(self) -> bool:
        """Whether it is mounted and its app is alive."""
        ...


class TextualPort(AsyncioPort):
    """A `Port` into a Textual app, for as long as ``node`` (the app, a screen, a widget) is mounted.

    Make it in ``on_mount`` or later, on the app's loop: what it calls runs in that context, so that
    queries, timers and workers find their app.

    Raises:
        NoRunningLoop: the app isn't running yet.
        MissingExtra: Textual is not installed.
    """

    def __init__(self, node: Node) -> None:
        if importlib.util.find_spec("textual") is None:
            raise MissingExtra("a bridge into Textual needs Textual: pip install 'rxagent[textual]'")
        if not hasattr(node, "is_running"):
            raise UsageError(f"on_textual takes an app, a screen or a widget, not {node!r:.100}")
        try:
            super().__init__()
            self._node, self._app = node, cast("_InApp", node).app
            running = self._app.is_running
        except (NoRunningLoop, RuntimeError):  # no loop; a widget of no app
            running = False
        if not running:
            raise NoRunningLoop("a bridge into a Textual app is made where the app runs: in on_mount or later")

    def post(self, fn: Callable[[], None]) -> None:
        """See `Port`."""
        if not self._alive():
            raise LoopGone(f"{self._node!r} is not running any more")
        super().post(lambda: self._call(fn))

    def later(self, seconds: float, fn: Callable[[], None]) -> None:
        """See `Port`."""
        super().later(seconds, lambda: self._call(fn))

    def _call(self, fn: Callable[[], None]) -> None:
        if self._alive():  # else it is dropped, and with it the bridge
            fn()

    def _alive(self) -> bool:
        return self._node.is_running and self._app.return_code is None


def on_textual(
    node: Node,
    *,
    period: float = PERIOD,
    capacity: int = CAPACITY,
    state: Callable[[], AgentState] | None = None,
) -> Callable[[Observable[T]], Observable[Frame[T]]]:
    """Frames in a Textual app, until ``node`` (the app, a screen, a widget) is unmounted; see `on_loop`.

    Raises:
        NoRunningLoop: called before the app runs; call it in ``on_mount`` or later.
    """
    return on_loop(TextualPort(node), period=period, capacity=capacity, state=state)
