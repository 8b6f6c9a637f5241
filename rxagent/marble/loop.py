"""An asyncio event loop on virtual time: waiting costs nothing and repeats exactly.

- Time moves only when nothing is ready, and then straight to the next timer.
- Timers due at one instant run in the order in which they were set.
- Work for threads (``run_in_executor``, ``asyncio.to_thread``) runs inline, at the instant it is asked for.
"""

import asyncio
import enum
import itertools
import threading
from collections.abc import Callable, Coroutine
from contextvars import Context
from heapq import heapify, heappush
from typing import Any, NoReturn, TypeVar, TypeVarTuple

from rxagent.flow import start_budget
from rxagent.marble.faults import (
    ClockStandsStill,
    NothingToWaitFor,
    SocketsNotSimulated,
    VirtualTimeUp,
)
from rxagent.marble.timer import OrderedTimer
from rxagent.marble.waiting import task_order, where_it_waits

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

HOUR = 3600.0
_NEW_YEAR_2026 = 1_767_225_600.0
_DIGITS = 9  # times are kept to the nanosecond, so that 0.1 + 0.2 and 0.3 are one instant
_STEPS_AT_ONE_INSTANT = 100_000
_FOREIGN_THREAD_PATIENCE = 2.0  # real seconds


class Ending(enum.Enum):
    """Why ``VirtualLoop.play`` returned."""

    DONE = "done"
    QUIET = "quiet"
    TIME_UP = "time up"


class _Stepper:
    """Takes the selector's place in the base loop: where that would wait, the clock moves."""

    def __init__(self, loop: "VirtualLoop") -> None:
        self._loop = loop

    def select(self, timeout: float | None) -> tuple[()]:
        self._loop.between_steps(must_wait=timeout is None or timeout > 0)
        return ()


class VirtualLoop(asyncio.BaseEventLoop):
    """An event loop whose clock starts at ``start`` seconds and jumps from timer to timer.

    ``limit`` is the virtual time, in seconds, at which ``run_until_complete`` gives up with
    ``VirtualTimeUp``. A loop in which everything waits for nothing raises ``NothingToWaitFor`` and
    lists what waits where; one that goes round without time passing raises ``ClockStandsStill``.
    Sockets, pipes and subprocesses are not simulated: ``SocketsNotSimulated``.
    """

    # What the base class keeps; declared because its stubs list the public methods only.
    _ready: Any
    _scheduled: list[asyncio.TimerHandle]

    def __init__(self, *, start: float = 0.0, limit: float = 24 * HOUR) -> None:
        super().__init__()
        self._now = start
        self._limit = limit
        self._turns = itertools.count()
        self._steps = 0
        self._until: float | None = None
        self._done: Callable[[], bool] | None = None
        self._ending = Ending.DONE
        self._woken = threading.Event()
        self._threads_before = frozenset(threading.enumerate())
        self._selector = _Stepper(self)
        self._clock_resolution = 10.0**-_DIGITS / 2

    # -- the clock ---------------------------------------------------------------------------

    def time(self) -> float:
        """The virtual time in seconds."""
        return self._now

    def wall_time(self) -> float:
        """Seconds since 1970 in a world that began with the year 2026 at virtual time zero; timestamps repeat, too."""
        return _NEW_YEAR_2026 + self._now

    def call_at(
        self,
        when: float,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """Run ``callback`` at virtual time ``when`` (seconds, kept to the nanosecond)."""
        if self.is_closed():
            raise RuntimeError("Event loop is closed")
        timer = OrderedTimer((round(when, _DIGITS), next(self._turns)), callback, args, self, context)
        timer._scheduled = True
        heappush(self._scheduled, timer)
        return timer

    def call_later(
        self,
        delay: float,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """Run ``callback`` after ``delay`` virtual seconds."""
        return self.call_at(self._now + delay, callback, *args, context=context)

    def between_steps(self, *, must_wait: bool) -> None:
        """Called by the base loop before each round of callbacks; moves the clock if nothing is ready."""
        if not must_wait:
            self._steps += 1
            if self._steps > _STEPS_AT_ONE_INSTANT:
                raise ClockStandsStill(self._now, self.waiting())
            return
        self._steps = 0
        if self._done is not None and self._done():
            self._stop(Ending.DONE)
        elif self._scheduled:
            self._advance(self._scheduled[0].when())
        elif not self._wait_for_threads():
            self._nothing_left()

    def _advance(self, when: float) -> None:
        until = self._limit if self._until is None else self._until
        if when <= until:
            self._now = max(self._now, when)
        elif self._until is None:
            raise VirtualTimeUp(self._limit, self.waiting())
        else:
            self._now = max(self._now, until)
            self._stop(Ending.TIME_UP)

    def _nothing_left(self) -> None:
        if self._until is None:
            raise NothingToWaitFor(self._now, self.waiting())
        self._stop(Ending.QUIET)

    def _stop(self, ending: Ending) -> None:
        self._ending = ending
        self.stop()

    # -- running -----------------------------------------------------------------------------

    def run_forever(self) -> None:
        """Run until stopped; turns of the loop fall on the same values in every run."""
        start_budget(self)
        super().run_forever()

    def play(self, until: float, done: Callable[[], bool] | None = None) -> Ending:
        """Run what there is up to and including virtual time ``until`` and say why it stopped.

        It stops early when nothing is left to do, or when, between two instants, ``done()`` holds.
        """
        self._until, self._done, self._ending = round(until, _DIGITS), done, Ending.DONE
        self._steps = 0
        try:
            self.run_forever()
        finally:
            self._until = self._done = None
        return self._ending

    def settle(self) -> None:
        """Run everything that is due at the present instant, and nothing later."""
        self.play(self._now, lambda: not self._scheduled or self._scheduled[0].when() > self._now)

    def pending_timers(self) -> list[asyncio.TimerHandle]:
        """The timers that are still set, earliest first."""
        return sorted(timer for timer in self._scheduled if not timer.cancelled())

    def pending_tasks(self) -> list[asyncio.Task[Any]]:
        """The tasks that have not ended, in the order in which they were made."""
        return sorted(asyncio.all_tasks(self), key=task_order)

    def foreign_threads(self) -> list[threading.Thread]:
        """The living threads that were started after this loop was made."""
        return [t for t in threading.enumerate() if t not in self._threads_before and t.is_alive()]

    def waiting(self) -> tuple[str, ...]:
        """One line for each pending task: its name and the place where it waits."""
        return tuple(where_it_waits(task) for task in self.pending_tasks())

    def close(self) -> None:
        """Cancel what is pending, give it the chance to clean up at the present instant, and close."""
        if self.is_closed() or self.is_running():
            super().close()
            return
        try:
            self._clean_up()
        except ClockStandsStill:
            pass  # what refuses to end was told to; it goes with the loop
        finally:
            super().close()

    def _clean_up(self) -> None:
        for timer in self.pending_timers():
            timer.cancel()
        self._drop_cancelled()
        for task in self.pending_tasks():
            task.cancel()
        self.set_exception_handler(lambda _loop, _context: None)
        self.settle()
        generators = self.create_task(self.shutdown_asyncgens())
        self.settle()
        generators.cancel()

    def _drop_cancelled(self) -> None:
        self._scheduled[:] = [timer for timer in self._scheduled if not timer.cancelled()]
        heapify(self._scheduled)

    # -- threads and sockets -----------------------------------------------------------------

    def run_in_executor(self, executor: object, func: Callable[[*Ts], T], *args: *Ts) -> asyncio.Future[T]:
        """Run ``func`` here and now, as if a thread had done it at once.

        It stays on the loop's own thread, and can tell: code that would block until the loop has
        done something finds the loop running and refuses, instead of waiting for ever.
        """
        future: asyncio.Future[T] = self.create_future()
        try:
            future.set_result(func(*args))
        except (KeyboardInterrupt, SystemExit):
            raise
        except StopIteration as error:
            future.set_exception(RuntimeError(f"the thread's function raised {error!r}"))
        except BaseException as error:
            future.set_exception(error)
        return future

    def _write_to_self(self) -> None:
        self._woken.set()

    def _process_events(self, event_list: object) -> None:
        """There is no I/O, so there is nothing to process."""

    def _wait_for_threads(self) -> bool:
        """Give threads that the code under test has started a little real time to call back."""
        if self._ready:
            return True
        if not self.foreign_threads():
            return False
        self._woken.clear()
        return bool(self._ready) or self._woken.wait(_FOREIGN_THREAD_PATIENCE)

    async def getaddrinfo(self, *args: object, **kwargs: object) -> NoReturn:
        """Refuse: there is no network here."""
        raise SocketsNotSimulated("getaddrinfo")

    async def create_connection(self, *args: object, **kwargs: object) -> NoReturn:
        """Refuse: there is no network here."""
        raise SocketsNotSimulated("create_connection")

    async def create_server(self, *args: object, **kwargs: object) -> NoReturn:
        """Refuse: there is no network here."""
        raise SocketsNotSimulated("create_server")

    async def subprocess_exec(self, *args: object, **kwargs: object) -> NoReturn:
        """Refuse: there are no subprocesses here."""
        raise SocketsNotSimulated("subprocess_exec")

    async def subprocess_shell(self, *args: object, **kwargs: object) -> NoReturn:
        """Refuse: there are no subprocesses here."""
        raise SocketsNotSimulated("subprocess_shell")


def run_virtual(main: Coroutine[Any, Any, T], *, limit: float = 24 * HOUR) -> T:
    """Run ``main`` to its end on a fresh ``VirtualLoop`` and return its result.

    ``limit`` is in virtual seconds. Raises what ``main`` raises, and the faults of ``VirtualLoop``.
    """
    loop = VirtualLoop(limit=limit)
    try:
        return loop.run_until_complete(main)
    finally:
        loop.close()
