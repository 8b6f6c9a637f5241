"""`AgentHost`: an agent on a loop of its own, in the background, and its calls from any thread."""

import asyncio
import atexit
import concurrent.futures
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Self, TypeVar

from reactivex import Observable, abc
from reactivex.disposable import Disposable, SingleAssignmentDisposable

from rxagent.bridges.background import BackgroundLoop
from rxagent.bridges.frame import Frame
from rxagent.bridges.loop import CAPACITY, PERIOD, on_loop
from rxagent.bridges.port import Port
from rxagent.engine import Agent, Run, RunResult
from rxagent.errors import UsageError, WouldDeadlock
from rxagent.events import AnyEvent
from rxagent.flow import Fault, Hub, print_fault
from rxagent.flow.direct import Direct
from rxagent.flow.faults import CallSite, call_site, called_from
from rxagent.messages import AnyMessage, ImagePart, as_messages
from rxagent.state import AgentState

R = TypeVar("R")
V = TypeVar("V")

PATIENCE = 10.0
"""How long a call waits for the host's loop to take it, in seconds."""

Input = str | AnyMessage | Sequence[str | AnyMessage]


class AgentHost:
    """Runs an agent on a background thread; every method may be called from any thread, a GUI's above all.

    Nothing here waits for a run but ``wait`` and ``close``. ``events``, ``states`` and ``frames`` deliver
    for as long as the host is open and complete when it closes. Also a context manager. A program that
    ends without ``close`` aborts what runs and ends.

    Args:
        agent: the agent; from now on it is only to be used through its host.
    """

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self._loop = BackgroundLoop(f"rxagent host of {agent.name}")
        self._lock = threading.RLock()
        self._observers: dict[object, tuple[Callable[[], None], CallSite]] = {}
        self._run: Run | None = None
        self._closed = False
        atexit.register(self.close)

    def __repr__(self) -> str:
        return f"<AgentHost of {self.agent!r}: {'closed' if self._closed else 'open'}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- what there is to see

    @property
    def state(self) -> AgentState:
        """The present state, a snapshot."""
        return self.agent.state

    @property
    def is_running(self) -> bool:
        """Whether a run is going."""
        return self.agent.is_running

    @property
    def events(self) -> Observable[AnyEvent]:
        """All events, on the host's thread; pipe them through `on_qt`, `on_tk`, … to a GUI's."""
        return self._live(lambda: self.agent.events)

    @property
    def states(self) -> Observable[AgentState]:
        """The current state first, then every change, on the host's thread."""
        return self._live(lambda: self.agent.states)

    @property
    def errors(self) -> Observable[Fault]:
        """Faults of observers, listeners and abandoned tools; printed to stderr while nobody subscribes here."""
        return self._live(lambda: self.agent.errors)

    def frames(self, port: Port, *, period: float = PERIOD, capacity: int = CAPACITY) -> Observable[Frame[AnyEvent]]:
        """The events as frames on a GUI's thread, each with the state just after its last event."""
        return self.events.pipe(on_loop(port, period=period, capacity=capacity, state=lambda: self.agent.state))

    # -- what there is to do

    def prompt(self, input: Input, *, images: ImagePart | Sequence[ImagePart] = ()) -> Run:  # noqa: A002 - the contract's word
        """Starts a run; see `Agent.prompt` for what it raises. Its events come on the host's thread."""
        return self._start(lambda: self.agent.prompt(input, images=images))

    def continue_(self) -> Run:
        """See `Agent.continue_`."""
        return self._start(self.agent.continue_)

    def retry(self) -> Run:
        """See `Agent.retry`."""
        return self._start(self.agent.retry)

    def resume(self, answers: Mapping[str, object]) -> Run:
        """See `Agent.resume`."""
        return self._start(lambda: self.agent.resume(answers))

    def steer(self, message: Input, *, interrupt: bool = False) -> None:
        """Queues a message for the running run's next turn; doesn't wait until it is there. See `Agent.steer`."""
        messages = as_messages(message)
        self._post(lambda: self.agent.steer(messages, interrupt=interrupt))

    def follow_up(self, message: Input) -> None:
        """Queues a message for when the run would stop; doesn't wait until it is there."""
        messages = as_messages(message)
        self._post(lambda: self.agent.follow_up(messages))

    def clear_queues(self) -> tuple[AnyMessage, ...]:
        """Empties both queues and returns what they held."""
        return self.call(self.agent.clear_queues)

    def abort(self, reason: str | None = None) -> None:
        """Aborts the running run, if there is one; doesn't wait until it has ended."""
        self.agent.abort(reason)
        with self._lock:
            if not self._closed:  # a run that was asked for just before may not have begun yet
                self._loop.post(lambda: self.agent.abort(reason))

    def reset(self) -> None:
        """Clears transcript and queues; see `Agent.reset`."""
        self.call(self.agent.reset)

    def call(self, function: Callable[[], R]) -> R:
        """Calls ``function()`` on the host's thread and returns what it returns, or raises what it raises.

        For whatever has no method here: ``host.call(lambda: setattr(host.agent, "model", "demo"))``.

        Raises:
            UsageError: the host is closed.
            TimeoutError: the loop did not get to it within 10 seconds.
        """
        if self._loop.is_current():
            return function()
        answer: concurrent.futures.Future[R] = concurrent.futures.Future()

        def work() -> None:
            if answer.set_running_or_notify_cancel():
                try:
                    answer.set_result(function())
                except BaseException as error:  # it is the caller's, on the other thread; a cancellation, too
                    answer.set_exception(error)

        self._post(work)
        try:
            return answer.result(PATIENCE)
        except TimeoutError:
            if not answer.cancel():  # it is being done now, or what it raised is a TimeoutError
                return answer.result()
            raise TimeoutError(
                f"the loop of {self!r} has been blocked for {PATIENCE:.0f} s. Something synchronous stands in its way: "
                "a hook, a listener or an observer that waits, perhaps for this very thread."
            ) from None

    def wait(self, timeout: float | None = None) -> RunResult | None:
        """Blocks until no run is going and every listener is done; returns the last run's result, None if there was none.

        Not on a GUI thread that the run delivers to: a run that is held by it could never end.

        Raises:
            TimeoutError: it took longer than ``timeout`` seconds.
            WouldDeadlock: called on the host's own thread.
        """
        if self._loop.is_current():
            raise WouldDeadlock("host.wait() on the host's own thread would wait for itself; use `await agent.wait_for_idle()`")
        with self._lock:
            if self._closed:
                return None
            waiting = self._loop.submit(self._idle())
        try:
            return waiting.result(timeout)
        except TimeoutError:
            if waiting.done():  # just now, or what it raised is a TimeoutError
                return waiting.result()
            raise TimeoutError(f"the run of {self!r} has not ended within {timeout} s") from None
        except concurrent.futures.CancelledError:
            raise UsageError("the AgentHost was closed before its run had ended") from None
        finally:
            waiting.cancel()

    def close(self, timeout: float | None = None) -> None:
        """Aborts what runs, completes all observers and ends the thread. The second time it does nothing.

        Waits for the run's end, but at most ``timeout`` seconds (one more than the agent's ``grace``
        if not given); called on the host's own thread it doesn't wait.
        """
        with self._lock:
            if self._closed:
                return
            self._closed = True
        atexit.unregister(self.close)
        limit = self.agent.limits.grace + 1.0 if timeout is None else timeout
        self._loop.stop(lambda: self._shut(limit), limit + 1.0)

    async def _idle(self) -> RunResult | None:
        await self.agent.wait_for_idle()
        run = self._run
        return None if run is None else await run

    async def _shut(self, limit: float) -> None:
        self.agent.abort("the host was closed")
        try:
            async with asyncio.timeout(limit):
                await self.agent.wait_for_idle()
        except TimeoutError:
            pass  # what still runs is cancelled with the loop
        finally:
            observers, self._observers = self._observers, {}
            for complete, site in tuple(observers.values()):
                try:
                    complete()
                except Exception as error:  # the others are told all the same; of `errors`, some no longer listen
                    print_fault(Fault(error, None, str(site)))

    def _start(self, begin: Callable[[], Run]) -> Run:
        def work() -> Run:
            self._run = begin()
            return self._run

        return self.call(work)

    def _post(self, work: Callable[[], object]) -> None:
        with self._lock:
            if self._closed:
                raise UsageError("the AgentHost is closed: make a new one")
            self._loop.post(work)

    def _live(self, source: Callable[[], Observable[V]]) -> Observable[V]:
        """What ``source`` emits on the host's thread, until the host closes. Subscribed there, too: no value is missed."""

        def subscribe(observer: abc.ObserverBase[V], _: abc.SchedulerBase | None = None) -> abc.DisposableBase:
            subscription, site = SingleAssignmentDisposable(), call_site()

            def join() -> None:
                if not subscription.is_disposed:
                    self._observers[subscription] = observer.on_completed, site
                    try:
                        with called_from(site):
                            subscription.disposable = source().subscribe(observer)
                    except Exception as error:  # of the observer, on a first value; nobody here could catch it
                        dispose()
                        self._report(Fault(error, None, str(site)))

            def dispose() -> None:
                self._observers.pop(subscription, None)
                subscription.dispose()

            with self._lock:
                if not self._closed:
                    self._loop.post(join)
                    return Disposable(dispose)
            observer.on_completed()
            return subscription

        return Direct(subscribe)

    def _report(self, fault: Fault) -> None:
        errors = self.agent.errors
        if isinstance(errors, Hub) and errors.observed:
            errors.on_next(fault)
        else:
            print_fault(fault)
