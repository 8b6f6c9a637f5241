"""The port of a Textual app."""

from collections.abc import Callable
from typing import Protocol, TypeVar

from reactivex import Observable

from rxagent.bridges.aio import AsyncioPort
from rxagent.bridges.frame import Frame
from rxagent.bridges.loop import CAPACITY, PERIOD, on_loop
from rxagent.errors import LoopGone, NoRunningLoop
from rxagent.state import AgentState

T = TypeVar("T")


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
    """

    def __init__(self, node: Node) -> None:
        try:
            super().__init__()
        except NoRunningLoop:
            raise NoRunningLoop("a bridge into a Textual app is made where the app runs: in on_mount or later") from None
        self._node = node

    def post(self, fn: Callable[[], None]) -> None:
        """See `Port`."""
        if not self._node.is_running:
            raise LoopGone(f"{self._node!r} is not running any more")
        super().post(lambda: self._call(fn))

    def later(self, seconds: float, fn: Callable[[], None]) -> None:
        """See `Port`."""
        super().later(seconds, lambda: self._call(fn))

    def _call(self, fn: Callable[[], None]) -> None:
        if self._node.is_running:  # else it is dropped, and with it the bridge
            fn()


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
