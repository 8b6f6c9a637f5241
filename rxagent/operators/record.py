"""`record`: what a stream of events was, and when: as JSON lines, or as a marble block that plays a run again."""

import time
from dataclasses import dataclass

from reactivex import Observable, abc

from rxagent import events as e
from rxagent.flow.loops import running_loop
from rxagent.operators.kit import Operator


@dataclass(frozen=True, slots=True)
class Recording:
    """Events in the order in which they came, and ``times``: when each did, in seconds since the first."""

    events: tuple[e.AnyEvent, ...]
    times: tuple[float, ...]

    def json_lines(self) -> str:
        """One event per line, as `EventReader` and ``rxagent trace`` read them."""
        return "".join(f"{e.to_json(event).decode()}\n" for event in self.events)

    def marble(self, *, scale: float = 0.01) -> str:
        """The text of a marble block that plays the run again; put it between fences into ``marbles/``.

        ``scale`` is in seconds a column. For a recording of exactly one run. Raises ``MarbleError`` for
        one with more different events than there are symbols for them.
        """
        from rxagent.marble.record import write_run  # only who writes marbles pays for the notation

        return write_run(tuple(zip(self.times, self.events, strict=True)), scale)


def record() -> Operator[Recording]:
    """The whole stream as one `Recording`, at its end, also before an error.

        ─A─T─h─e─t─a─|
        record()
        ─────────────R|       R  Recording((A, T, h, e, t, a), (0.0, …))

    Times are the running loop's. Keeps every event until the end.
    """

    def operator(source: Observable[e.AnyEvent]) -> Observable[Recording]:
        def subscribe(observer: abc.ObserverBase[Recording], scheduler: abc.SchedulerBase | None = None) -> abc.DisposableBase:
            events: list[e.AnyEvent] = []
            times: list[float] = []

            def on_next(event: e.AnyEvent) -> None:
                loop = running_loop()
                events.append(event)
                times.append(time.monotonic() if loop is None else loop.time())

            def recording() -> Recording:
                return Recording(tuple(events), tuple(at - times[0] for at in times))

            def on_error(error: Exception) -> None:
                observer.on_next(recording())
                observer.on_error(error)

            def on_completed() -> None:
                observer.on_next(recording())
                observer.on_completed()

            return source.subscribe(on_next, on_error, on_completed, scheduler=scheduler)

        return Observable(subscribe)

    return operator
