"""What can go wrong in a marble block or on the virtual loop, apart from a difference."""

from dataclasses import dataclass

from rxagent.errors import RxAgentError


@dataclass(frozen=True, slots=True)
class Place:
    """A position in a file; ``line`` and ``column`` count from 1."""

    file: str
    line: int
    column: int = 1

    def right(self, columns: int) -> "Place":
        """The place ``columns`` further to the right on the same line."""
        return Place(self.file, self.line, self.column + columns)

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


class MarbleError(RxAgentError):
    """The root of the faults of this room."""


class MarbleSyntaxError(MarbleError):
    """A block is malformed: says where, what stands there and what was expected."""

    def __init__(self, place: Place, what: str) -> None:
        self.place = place
        self.what = what
        super().__init__(f"{place}: {what}")


class VirtualLoopError(MarbleError):
    """The root of the faults of a virtual loop; ``waiting`` says which tasks wait where."""

    def __init__(self, what: str, waiting: tuple[str, ...] = ()) -> None:
        self.waiting = waiting
        super().__init__("\n  ".join([what, *waiting]))


class NothingToWaitFor(VirtualLoopError):
    """Every task waits, and nothing is left that could wake one."""

    def __init__(self, now: float, waiting: tuple[str, ...]) -> None:
        super().__init__(
            f"at {show_seconds(now)} everything waits for nothing: no timer is set, no callback is due, "
            "and no thread is at work that could wake a task",
            waiting,
        )


class VirtualTimeUp(VirtualLoopError):
    """The program had not ended at the virtual time that was allowed."""

    def __init__(self, limit: float, waiting: tuple[str, ...]) -> None:
        super().__init__(f"not ended at {show_seconds(limit)} of virtual time, which is the limit", waiting)


class ClockStandsStill(VirtualLoopError):
    """Callbacks follow one another for ever without any time passing."""

    def __init__(self, now: float, waiting: tuple[str, ...]) -> None:
        super().__init__(
            f"the clock stands still at {show_seconds(now)}: callbacks make new callbacks without end; "
            "does a loop await sleep(0), or an event that is always set?",
            waiting,
        )


class SocketsNotSimulated(VirtualLoopError):
    """The program asked the virtual loop for the outside world."""

    def __init__(self, call: str) -> None:
        super().__init__(
            f"{call} was called on a virtual loop, which has neither sockets nor subprocesses; "
            "replace the transport by a scripted one, or run this test on a real loop"
        )


def show_seconds(seconds: float) -> str:
    """A duration in its handiest unit: ``250ms``, ``1.5s``, ``10m``, ``1h``."""
    return show_duration(round(seconds * 1_000_000_000))


def show_duration(nanoseconds: int) -> str:
    """A duration given in nanoseconds, in its handiest unit, without loss."""
    for unit, size in (("h", 3_600_000_000_000), ("m", 60_000_000_000)):
        if nanoseconds and nanoseconds % size == 0:
            return f"{nanoseconds // size}{unit}"
    unit, size = ("s", 1_000_000_000) if nanoseconds >= 1_000_000_000 else ("ms", 1_000_000)
    whole, rest = divmod(nanoseconds, size)
    digits = f"{rest:0{len(str(size)) - 1}d}".rstrip("0")
    return f"{whole}.{digits}{unit}" if digits else f"{whole}{unit}"
