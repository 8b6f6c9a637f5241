"""Input lines as Observables that remember who subscribed when, and for how long they were held."""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from reactivex import Observable, abc
from reactivex.disposable import Disposable

from rxagent.flow import publish
from rxagent.marble.block import Block, Input
from rxagent.marble.meaning import Control, Failure, Happening, Legend, Value
from rxagent.marble.notation import COMPLETE, DISPOSE, FAIL, HELD, SUBSCRIBE

Timed = tuple[int, Happening]  # nanoseconds since the block's time zero
OnFault = Callable[[BaseException], None]


@dataclass(slots=True)
class Subscription:
    """When one subscription began, was held, and ended; in nanoseconds."""

    begin: int
    end: int | None = None
    holds: list[tuple[int, int | None]] = field(default_factory=list[tuple[int, int | None]])

    def happenings(self, frame: int, until: int) -> list[Timed]:
        """The subscription as a line says it: ``^``, ``=`` for each frame held, ``!``."""
        found: list[Timed] = [(self.begin, Control(SUBSCRIBE))]
        frames: set[int] = set()
        for start, stop in self.holds:
            first = -(-start // frame) if start == self.begin else start // frame
            frames |= {f * frame for f in range(first, -(-(until if stop is None else stop) // frame))}
        frames -= {self.begin, *([self.end] if self.end is not None else [])}
        found += [(at, Control(HELD)) for at in sorted(frames)]
        if self.end is not None:
            found.append((self.end, Control(DISPOSE)))
        return found


def now_ns(loop: asyncio.AbstractEventLoop) -> int:
    """The loop's time in whole nanoseconds."""
    return round(loop.time() * 1_000_000_000)


class _Playing:
    """One subscriber's copy of a line; waits while its consumer holds, late events follow at once."""

    def __init__(self, source: "Source", observer: abc.ObserverBase[object]) -> None:
        self._source = source
        self._observer = observer
        self._due: deque[Happening] = deque()
        self._held = False
        self._timers: list[asyncio.TimerHandle] = []
        self.log = Subscription(now_ns(source.loop))
        source.subscriptions.append(self.log)

    def start(self, events: list[Timed]) -> None:
        loop = self._source.loop
        begin = loop.time()
        for at, happening in events:
            self._timers.append(loop.call_at(begin + at / 1_000_000_000, self._arrive, happening))

    def _arrive(self, happening: Happening) -> None:
        self._due.append(happening)
        if not self._held:
            self._deliver()

    def _deliver(self) -> None:
        while self._due and not self._held and self.log.end is None:
            happening = self._due.popleft()
            if not isinstance(happening, Value):
                self._finish(happening)
                return
            try:
                pending = publish(self._observer.on_next, happening.value)
            except Exception as error:
                self._source.on_fault(error)
                self.dispose()
                return
            if pending is not None and pending.held:
                self._held = True
                self.log.holds.append((now_ns(self._source.loop), None))
                pending.then(self._release)

    def _release(self) -> None:
        self._source.loop.call_soon_threadsafe(self._released)

    def _released(self) -> None:
        self._held = False
        self._close_hold()
        self._deliver()

    def _close_hold(self) -> None:
        if self.log.holds and self.log.holds[-1][1] is None:
            begin, end = self.log.holds.pop()[0], now_ns(self._source.loop)
            if end > begin:
                self.log.holds.append((begin, end))

    def _finish(self, happening: Happening) -> None:
        try:
            if isinstance(happening, Failure):
                self._observer.on_error(_as_exception(happening.error))
            else:
                self._observer.on_completed()
        except Exception as error:
            self._source.on_fault(error)
        self.dispose()

    def dispose(self) -> None:
        if self.log.end is None:
            self.log.end = now_ns(self._source.loop)
            self._close_hold()
        for timer in self._timers:
            timer.cancel()
        self._timers.clear()


def _as_exception(error: BaseException) -> Exception:
    return error if isinstance(error, Exception) else RuntimeError(repr(error))


class Source(Observable[object]):
    """An input of a block. Subscriber n of a cold one gets line n, or the last line there is."""

    def __init__(self, name: str, loop: asyncio.AbstractEventLoop, lines: list[list[Timed]], on_fault: OnFault) -> None:
        super().__init__()
        self.name = name
        self.loop = loop
        self.lines = lines
        self.on_fault = on_fault
        self.subscriptions: list[Subscription] = []

    @property
    def open_subscriptions(self) -> int:
        """How many subscriptions have not ended."""
        return sum(s.end is None for s in self.subscriptions)

    def next_line(self) -> list[Timed]:
        """What the next subscriber is going to get."""
        return self.lines[min(len(self.subscriptions), len(self.lines) - 1)]

    def _subscribe_core(
        self, observer: abc.ObserverBase[object], scheduler: abc.SchedulerBase | None = None
    ) -> abc.DisposableBase:
        line = self.next_line()
        playing = _Playing(self, observer)
        playing.start(line)
        return Disposable(playing.dispose)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"


class HotSource(Source):
    """A hot input: its events come when they come, whoever listens, and it can't wait."""

    def __init__(self, name: str, loop: asyncio.AbstractEventLoop, lines: list[list[Timed]], on_fault: OnFault) -> None:
        super().__init__(name, loop, lines, on_fault)
        self._observers: dict[int, tuple[abc.ObserverBase[object], Subscription]] = {}
        self._end: Happening | None = None
        self._timers = [loop.call_at(at / 1_000_000_000, self._arrive, happening) for at, happening in lines[0]]

    def _subscribe_core(
        self, observer: abc.ObserverBase[object], scheduler: abc.SchedulerBase | None = None
    ) -> abc.DisposableBase:
        log = Subscription(now_ns(self.loop))
        self.subscriptions.append(log)
        key = id(log)
        if self._end is not None:
            self._tell(observer, self._end)
            log.end = log.begin
            return Disposable()
        self._observers[key] = (observer, log)
        return Disposable(lambda: self._leave(key))

    def _leave(self, key: int) -> None:
        _, log = self._observers.pop(key, (None, None))
        if log is not None and log.end is None:
            log.end = now_ns(self.loop)

    def _arrive(self, happening: Happening) -> None:
        if not isinstance(happening, Value):
            self._end = happening
        for key, (observer, _) in list(self._observers.items()):
            if key in self._observers:
                self._tell(observer, happening)
            if self._end is not None:
                self._leave(key)

    def _tell(self, observer: abc.ObserverBase[object], happening: Happening) -> None:
        try:
            if isinstance(happening, Value):
                observer.on_next(happening.value)
            elif isinstance(happening, Failure):
                observer.on_error(_as_exception(happening.error))
            else:
                observer.on_completed()
        except Exception as error:
            self.on_fault(error)

    def silence(self) -> None:
        """Cancel what was still to come: it is the block's, not a leftover of what was tested."""
        for timer in self._timers:
            timer.cancel()


def build_sources(block: Block, legend: Legend, loop: asyncio.AbstractEventLoop, on_fault: OnFault) -> dict[str, Source]:
    """The inputs of ``block`` by name."""
    sources: dict[str, Source] = {}
    for name in block.input_names:
        given = [i for key, i in block.inputs.items() if key.partition(".")[0] == name]
        kind = HotSource if given[0].hot else Source
        sources[name] = kind(name, loop, [timed(i, block, legend) for i in given], on_fault)
    return sources


def timed(given: Input, block: Block, legend: Legend) -> list[Timed]:
    """An input line as happenings, groups taken apart."""
    events: list[Timed] = []
    for mark in given.line.marks:
        for symbol in block.expand(mark.symbol):
            place = given.line.where(mark)
            at = mark.at - given.zero
            if symbol == COMPLETE:
                events.append((at, Control(COMPLETE)))
            elif symbol == FAIL:
                events.append((at, Failure(legend.failure(place))))
            elif symbol != SUBSCRIBE:
                events.append((at, Value(legend.make(symbol, place))))
    return events
