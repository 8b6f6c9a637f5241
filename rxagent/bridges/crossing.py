"""The toolkit-neutral core of every bridge: a bounded queue into a GUI's event loop, emptied frame by frame.

1. The source's thread appends; only when nothing is under way does it wake the GUI, once.
2. Everything else happens on the GUI thread, in ticks: a tick delivers one frame and sets the next.
3. A tick that is lost (its loop or window is gone) ends the bridge and lets the source go on.
"""

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

from reactivex import abc

from rxagent.bridges.frame import Frame
from rxagent.bridges.port import ClosingPort, Port
from rxagent.errors import LoopGone, UsageError
from rxagent.flow.holds import Release, hold
from rxagent.flow.loops import running_loop
from rxagent.flow.outlet import Outlet
from rxagent.state import AgentState

T = TypeVar("T")

FRAME_SECONDS = 0.008
"""A frame that keeps the GUI thread longer than this makes the next ones shorter."""
SHORTEST = 256
"""Frames are not made shorter than this many values: what costs so much then is not their number."""

STRETCH = 1024
"""A source on another thread pauses after this many values without a frame between them …"""
PAUSE_SECONDS = 0.008
"""… for this long, or until the frame."""


class FrameOutlet(Outlet[Frame[T]]):
    """An outlet whose observer stays when it raises: the next frame may well be fine."""

    __slots__ = ()

    def fail(self, error: BaseException, value: object) -> None:
        """Report only."""
        self.report(error, value)


class Tick:
    """One turn on the GUI thread; knows when it is dropped without having had it."""

    __slots__ = ("_had", "_lost", "_number", "_take")

    def __init__(self, number: int, take: Callable[[int], None], lost: Callable[[int], None]) -> None:
        self._number = number
        self._take = take
        self._lost = lost
        self._had = False

    def __call__(self) -> None:
        """Take the turn."""
        self._had = True
        self._take(self._number)

    def __del__(self) -> None:
        if not self._had:
            self._lost(self._number)


class Crossing(Generic[T]):
    """From the source's thread (``push``, ``finish``) to the GUI's (``tick``)."""

    def __init__(
        self,
        observer: abc.ObserverBase[Frame[T]],
        port: Port,
        period: float,
        capacity: int,
        state: Callable[[], AgentState] | None,
    ) -> None:
        self.outlet: FrameOutlet[T] = FrameOutlet(observer)
        self._port = port
        self._period = period
        self._capacity = capacity
        self._low = capacity // 2
        self._brake = min(STRETCH, capacity)
        self._pause: Release | None = None
        self._limit = capacity
        self._state = state
        self._queue: deque[tuple[T, AgentState | None]] = deque()
        self._taken = 0
        self._shown: AgentState | None = None
        self._holds: list[Release] = []
        # Re-entrant: a dropped tick may be collected while this very thread is inside.
        self._lock = threading.RLock()
        self._end: tuple[Exception | None] | None = None
        self._ended = False
        self._active = False
        self._idling = False
        self._number = 0
        self._forget_close: Callable[[], None] | None = None
        if isinstance(port, ClosingPort):
            self._forget_close = port.on_close(self.dispose)

    # -- the source's side

    def push(self, value: T) -> None:
        """Queue ``value``; holds the emission it came in when the queue is full."""
        self.outlet.meet()
        if self._end is not None or self.outlet.stopped:
            return
        queue = self._queue
        state = self._state
        queue.append((value, None if state is None else state()))
        if not self._active:
            self._activate()
        if len(queue) >= self._brake:
            self._slow_down(len(queue))

    def finish(self, error: Exception | None = None) -> None:
        """Deliver the end with, or after, what is queued."""
        if self._end is None:
            self._end = (error,)
            if not self._active:
                self._activate()

    def dispose(self) -> None:
        """Drop what is queued, release what is held, deliver no more; from any thread."""
        self.outlet.dispose()
        with self._lock:
            self._number += 1
        self._queue.clear()
        self._relax()
        self._go_on()
        forget, self._forget_close = self._forget_close, None
        if forget is not None:
            forget()

    def _go_on(self) -> None:
        pause, self._pause = self._pause, None
        if pause is not None:
            pause.release()

    def lost(self, number: int) -> None:
        """A tick was dropped without its turn: there is no GUI any more."""
        if number == self._number and not self.outlet.stopped:
            self.dispose()

    def _activate(self) -> None:
        with self._lock:
            if self._active:
                return
            self._active = True
        self._post()

    def _post(self) -> None:
        tick = self._next_tick()
        self._ask(lambda: self._port.post(tick))

    def _next_tick(self) -> Tick:
        """The tick that counts from now on; an earlier one does nothing any more."""
        with self._lock:
            self._number += 1
            return Tick(self._number, self.tick, self.lost)

    def _ask(self, call: Callable[[], None]) -> None:
        if self.outlet.stopped:
            return
        try:
            call()
        except LoopGone:
            self.dispose()
        except Exception as error:  # a fault of the port; the agent's thread is the last that should suffer
            self.outlet.report(error, None)
            self.dispose()

    def _slow_down(self, count: int) -> None:
        if count >= self._capacity:
            self._fill()
            return
        # A source that does nothing but compute keeps the interpreter to itself: each of the GUI's calls into
        # its toolkit then waits 5 ms to get it back. So it pauses, until the next frame is shown or a moment long.
        self._brake = min(count + STRETCH, self._capacity)
        loop = running_loop()
        if loop is not None and not self._port.is_current():
            self._pause = pause = hold()
            loop.call_later(PAUSE_SECONDS, pause.release)

    def _fill(self) -> None:
        """The queue is full: the source waits, and an idling GUI needs not wait for its period."""
        with self._lock:
            if len(self._queue) >= self._capacity:
                self._holds.append(hold())
            tick = self._next_tick() if self._idling else None
            self._idling = False
        if self.outlet.stopped or len(self._queue) <= self._low:  # disposed or emptied before the hold was there
            self._relax()
        if tick is not None:
            self._ask(lambda: self._port.post(tick))

    def _relax(self) -> None:
        """Let the source go on once half the queue is free."""
        with self._lock:
            if len(self._queue) > self._low and not self.outlet.stopped:
                return
            holds, self._holds = self._holds, []
        for release in holds:
            release.release()

    # -- the GUI's side

    def tick(self, number: int) -> None:
        """Deliver one frame, if there is something to deliver, and see to the next tick."""
        with self._lock:
            if number != self._number or self.outlet.stopped:
                return  # another one was posted in its place, or nobody wants it any more
            self._idling = False
            self._number += 1
        if not self._port.is_current():
            self.outlet.report(UsageError(f"{self._port!r} called back outside of its GUI thread"), None)
            self.dispose()
            return
        if not self._queue and self._end is None:
            self._rest()
            return
        if self._ended:
            self._complete()
            return
        started = time.monotonic()
        frame = self._take()
        pending = self.outlet.send(frame)
        self._brake = min(STRETCH, self._capacity)
        self._go_on()
        if self._holds:
            self._relax()
        if self.outlet.stopped:
            self.dispose()
            return
        self._ended = frame.final
        if pending is not None:
            pending.then(self._post)
        elif frame.final:
            self._complete()
        else:
            self._pace(len(frame), time.monotonic() - started)

    def _take(self) -> Frame[T]:
        queue = self._queue
        count = min(len(queue), self._limit)
        taken = [queue.popleft() for _ in range(count)]
        first = self._taken
        self._taken += count
        end = self._end if not queue else None
        error = None if end is None else end[0]
        if not taken:
            state = self._shown if self._shown is not None or self._state is None else self._state()
            return Frame(state=state, final=True, error=error)
        events = tuple([value for value, _ in taken])
        last, state = taken[-1]
        self._shown = last if isinstance(last, AgentState) else state
        return Frame(
            events,
            self._shown,
            _seq(events[0], first),
            _seq(last, first + count - 1),
            end is not None,
            error,
        )

    def _pace(self, count: int, took: float) -> None:
        """Set the next tick: a period after this one, and never so soon that the GUI has less time than the frames."""
        if took > FRAME_SECONDS and count >= self._limit:
            self._limit = max(self._limit // 2, min(SHORTEST, self._capacity))
        elif took < FRAME_SECONDS / 2:
            self._limit = min(self._limit * 2, self._capacity)
        rest = min(took, self._period)
        with self._lock:
            if len(self._queue) < self._limit:
                rest = max(rest, self._period - took)
                self._idling = True
            tick = self._next_tick()
        self._ask(lambda: self._port.later(rest, tick))

    def _rest(self) -> None:
        """Nothing came for a period: the next value wakes the GUI again."""
        # Idle first, then look again: whoever pushed in between has seen one or the other.
        self._active = False
        if self._queue or self._end is not None:
            self._activate()

    def _complete(self) -> None:
        assert self._end is not None
        self.outlet.end(self._end[0])
        self.dispose()


def _seq(value: object, position: int) -> int:
    seq = getattr(value, "seq", None)
    return seq if isinstance(seq, int) else position
