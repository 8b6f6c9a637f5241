"""Playing a block: its inputs, its expression and everything that waits, on one virtual clock."""

import asyncio
import contextlib
import inspect
import random
import traceback
import types
from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVarTuple, cast

import reactivex as rx
from reactivex import Observable, abc
from reactivex.disposable import Disposable
from reactivex.scheduler import TimeoutScheduler

from rxagent.flow import LoopClock
from rxagent.marble.block import OUT, Block
from rxagent.marble.faults import ClockStandsStill, MarbleSyntaxError, Place, VirtualLoopError, show_duration
from rxagent.marble.loop import Ending, VirtualLoop
from rxagent.marble.meaning import Control, Failure, Legend, Value
from rxagent.marble.notation import COMPLETE
from rxagent.marble.streams import HotSource, Source, Timed, build_sources, now_ns

Ts = TypeVarTuple("Ts")

DEFAULT_UNTIL = 3_600_000_000_000
_MAX_INSTANTS = 100_000
_MAX_AT_ONCE = 100_000


@dataclass(slots=True)
class Played:
    """What came of a block. Times are nanoseconds since its time zero."""

    outputs: dict[str, list[Timed]] = field(default_factory=dict[str, list[Timed]])
    subscriptions: dict[str, list[Timed]] = field(default_factory=dict[str, list[Timed]])
    legend: Legend | None = None
    result: object = None
    raised: str | None = None  # the expression or a callback raised: the traceback, ours left out
    ending: Ending = Ending.DONE
    at: int = 0
    cut: bool = False
    left: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()


def play(block: Block, world: Mapping[str, object]) -> Played:
    """Play ``block``; ``world`` holds the names its expression may use besides the inputs."""
    zero = max((i.zero for i in block.inputs.values()), default=0)
    loop = VirtualLoop(start=-zero / 1_000_000_000)
    dice = random.getstate()
    random.seed(0)  # jitter and the like fall the same way each time
    try:
        with _virtual_defaults(loop):
            return _Play(block, loop).run(dict(world))
    finally:
        random.setstate(dice)
        loop.close()


@contextlib.contextmanager
def _virtual_defaults(loop: VirtualLoop) -> Generator[None]:
    """Put stock time operators on the virtual clock.

    They fall back to the singleton of TimeoutScheduler, which makes threads. Passing a scheduler at
    subscribe would reach them too, but it changes what other operators do (start_with loses events).
    """
    stock = TimeoutScheduler.__dict__["singleton"]
    clock = LoopClock(loop)
    setattr(TimeoutScheduler, "singleton", classmethod(lambda _cls: clock))  # noqa: B010 - pyright can't assign it
    try:
        yield
    finally:
        setattr(TimeoutScheduler, "singleton", stock)  # noqa: B010


class _Play:
    def __init__(self, block: Block, loop: VirtualLoop) -> None:
        self.block = block
        self.loop = loop
        self.played = Played()
        self.sources: dict[str, Source] = {}
        self.open: dict[str, abc.DisposableBase | None] = {}
        self.instants = 0
        self.own_timers: list[asyncio.TimerHandle] = []

    def run(self, names: dict[str, object]) -> Played:
        self.loop.set_exception_handler(self._report)
        for source, place in self.block.imports:
            _import(source, place, names)
        legend = Legend(self.block, names)
        self.played.legend = legend
        # First of all at time zero: what is hot may have an event at this very instant.
        self.loop.call_at(0.0, self._begin, names)
        self.sources = build_sources(self.block, legend, self.loop, self._fault)
        names.update(self.sources)
        until = DEFAULT_UNTIL if self.block.until is None else self.block.until
        try:
            self.played.ending = self.loop.play(until / 1_000_000_000, self._is_done)
            self._close()
        except (VirtualLoopError, SystemExit) as error:  # the clock stands still, or a callback gives up
            self._fault(error)
        return self.played

    def _begin(self, names: dict[str, object]) -> None:
        try:
            result = eval(self._code(), names)  # noqa: S307 - the block is the test's own code
            self.played.result = result
            outputs = {name: observable(value) for name, value in _named(result).items()}
        except (Exception, SystemExit) as error:
            self._fault(error)
            return
        for name, output in outputs.items():
            window = self.block.windows.get(name) or self.block.windows.get("")
            self.played.outputs[name] = []
            self.open[name] = None
            # Set first, so that the disposal comes before whatever else happens at its instant.
            if window is not None and window.dispose is not None:
                self._at(window.dispose, self._dispose, name)
            if window is None or window.subscribe == 0:
                self._subscribe(name, output)
            else:
                self._at(window.subscribe, self._subscribe, name, output)

    def _at(self, instant: int, action: Callable[[*Ts], None], *args: *Ts) -> None:
        self.own_timers.append(self.loop.call_at(instant / 1_000_000_000, action, *args))

    def _code(self) -> types.CodeType:
        place = self.block.expression_place
        source = "\n" * max(place.line - 2, 0) + f"(\n{self.block.expression}\n)"
        return compile(source.lstrip("\n") if place.line < 2 else source, place.file, "eval")

    def _subscribe(self, name: str, output: Observable[object]) -> None:
        events = self.played.outputs[name]

        def on_next(value: object) -> None:
            at = now_ns(self.loop)
            events.append((at, Value(value)))
            if len(events) > _MAX_AT_ONCE and events[-_MAX_AT_ONCE][0] == at:  # it would go on for ever
                raise ClockStandsStill(self.loop.time(), (f"{name} gave {_MAX_AT_ONCE} values at once",))

        def on_error(error: Exception) -> None:
            events.append((now_ns(self.loop), Failure(error)))
            self.open.pop(name, None)

        def on_completed() -> None:
            events.append((now_ns(self.loop), Control(COMPLETE)))
            self.open.pop(name, None)

        try:
            subscription = output.subscribe(on_next, on_error, on_completed)
        except Exception as error:
            self._fault(error)
            return
        if name in self.open:
            self.open[name] = subscription

    def _dispose(self, name: str) -> None:
        subscription = self.open.pop(name, None)
        if subscription is not None:
            subscription.dispose()

    def _is_done(self) -> bool:
        self.instants += 1
        if self.instants > _MAX_INSTANTS:
            self.played.cut = True
            return True
        if self.played.raised is not None:
            return True
        return self.loop.time() >= 0 and bool(self.played.outputs) and not self.open

    def _close(self) -> None:
        """Note what has been seen, dispose what is still open, then see what is left over."""
        played, loop = self.played, self.loop
        played.at = now_ns(loop)
        for timer in self.own_timers:
            timer.cancel()
        played.waiting = loop.waiting()
        played.cut = played.cut or (played.ending is Ending.TIME_UP and self.block.until is None)
        for name, source in self.sources.items():
            for n, subscription in enumerate(source.subscriptions):
                key = name if n == 0 else f"{name}.{n + 1}"
                played.subscriptions[key] = subscription.happenings(self.block.scale, played.at)
            if isinstance(source, HotSource):
                source.silence()
        loop.call_soon(lambda: [self._dispose(name) for name in list(self.open)])
        loop.settle()
        played.left = tuple(self._leftovers())

    def _leftovers(self) -> Iterator[str]:
        counts = {
            "timer": len(self.loop.pending_timers()),
            "task": len(self.loop.pending_tasks()),
            "thread": len(self.loop.foreign_threads()),
            "subscription": sum(s.open_subscriptions for s in self.sources.values()),
        }
        for what, count in counts.items():
            if count:
                yield f"{count} {what}{'s' if count > 1 else ''}"

    def _fault(self, error: BaseException) -> None:
        if self.played.raised is None:
            self.played.raised = str(error) if isinstance(error, VirtualLoopError) else foreign_traceback(error)

    def _report(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if isinstance(error, BaseException):
            self._fault(error)
        elif self.played.raised is None:
            self.played.raised = str(context.get("message", context))


def _import(source: str, place: Place, names: dict[str, object]) -> None:
    try:
        exec(compile("\n" * (place.line - 1) + source, place.file, "exec"), names)  # noqa: S102 - the test's own code
    except Exception as error:
        shown = foreign_traceback(error).replace("\n", "\n    ")
        raise MarbleSyntaxError(place, f"{type(error).__name__}: {error}\n    {shown}") from None


def _named(result: object) -> dict[str, object]:
    if isinstance(result, Mapping):
        return {str(name): value for name, value in cast("Mapping[object, object]", result).items()}
    return {OUT: result}


def observable(value: object) -> Observable[object]:
    """What an expression gave, as an Observable: one already, a coroutine, or an async iterable."""
    if isinstance(value, Observable):
        return cast("Observable[object]", value)
    if inspect.isawaitable(value):

        async def one(observer: abc.ObserverBase[object]) -> None:
            observer.on_next(await value)

        return _from_coroutine(one)
    if hasattr(value, "__aiter__"):

        async def each(observer: abc.ObserverBase[object]) -> None:
            async for item in cast("AsyncIterator[object]", value):
                observer.on_next(item)

        return _from_coroutine(each)
    raise TypeError(
        f"the expression gives {type(value).__name__}; expected an Observable, an awaitable, "
        "an async iterable, or a dict of them by name"
    )


def _from_coroutine(run: Callable[[abc.ObserverBase[object]], Coroutine[Any, Any, None]]) -> Observable[object]:
    """Subscribe to start a task that feeds the observer; dispose to cancel it."""

    def subscribe(observer: abc.ObserverBase[object], _: abc.SchedulerBase | None = None) -> abc.DisposableBase:
        async def drive() -> None:
            try:
                await run(observer)
            except Exception as error:
                observer.on_error(error)
            else:
                observer.on_completed()

        task = asyncio.get_running_loop().create_task(drive())

        def cancel() -> None:
            if task is not asyncio.current_task():  # the end of the stream disposes, from within
                task.cancel()

        return Disposable(cancel)

    return rx.create(subscribe)


def foreign_traceback(error: BaseException) -> str:
    """The traceback without the frames of this room: what the author of the block wrote and called."""
    own = __file__.rpartition("/")[0]
    frames = [f for f in traceback.extract_tb(error.__traceback__) if not f.filename.startswith(own)]
    shown = "".join(traceback.format_list(frames))
    return f"{shown}{type(error).__name__}: {error}"


def ended_how(played: Played) -> str:
    """One clause on why the observation ended, for reports."""
    if played.cut:
        return f"cut at {show_duration(played.at)} of virtual time"
    if played.ending is Ending.QUIET:
        return f"nothing is left to happen after {show_duration(played.at)}"
    if played.ending is Ending.TIME_UP:
        return f"observed until {show_duration(played.at)}"
    return f"all that was observed had ended at {show_duration(played.at)}"
