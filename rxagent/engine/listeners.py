"""Listeners of an agent: plain and coroutine functions of an event, and where their failures go."""

import inspect
from collections.abc import Awaitable, Callable
from typing import cast

from reactivex import Observable

from rxagent.errors import InvalidOption
from rxagent.events import AnyEvent
from rxagent.flow import Fault, Listener, OnFault
from rxagent.signals import Signal

ListenerLike = Callable[[AnyEvent], object] | Callable[[AnyEvent, Signal | None], object]


def _takes_signal(listener: Callable[..., object]) -> bool:
    try:
        parameters = inspect.signature(listener).parameters.values()
    except (TypeError, ValueError):
        return False
    by_place = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    # a second parameter with a default is the listener's own, unless its name says that it is the signal
    return len(by_place) > 1 and (by_place[1].default is by_place[1].empty or by_place[1].name == "signal")


def _refuse_awaitable(value: object, handler: Callable[..., object]) -> None:
    if inspect.isawaitable(value):
        if inspect.iscoroutine(value):
            value.close()
        raise TypeError(f"listener {handler!r} gave an awaitable; define it with 'async def', so that it is awaited")


class Listeners:
    """The listeners of one agent."""

    def __init__(self, source: Observable[AnyEvent], signal: Callable[[], Signal | None]) -> None:
        self._source = source
        self._signal = signal
        self._async: list[Listener[AnyEvent]] = []

    def add(
        self, listener: ListenerLike, *, capacity: int, hold_timeout: float | None, on_fault: OnFault | None
    ) -> Callable[[], None]:
        """Subscribes; returns a function that ends the subscription."""
        if not callable(listener):
            raise InvalidOption(f"a listener is a function of an event, not {listener!r:.100}")
        if not isinstance(capacity, int) or capacity < 0:  # pyright: ignore[reportUnnecessaryIsInstance] callers without a type checker
            raise InvalidOption(f"capacity is a number of events, 0 or more, not {capacity!r}")
        handler = self._with_signal(listener)
        if self.is_async(listener):
            waiting = cast("Callable[[AnyEvent], Awaitable[object]]", handler)
            # between the runs of a script there is no loop, and what happens then is for the listener, too
            subscription = Listener(waiting, capacity=capacity, hold_timeout=hold_timeout, on_fault=on_fault, patient=True)
            subscription.attach(self._source)
            self._async.append(subscription)
            return lambda: self._leave(subscription)
        return self._plain(handler, on_fault)

    @staticmethod
    def is_async(listener: ListenerLike) -> bool:
        """Whether it is a coroutine function, or an object that is called as one."""
        return inspect.iscoroutinefunction(listener) or inspect.iscoroutinefunction(type(listener).__call__)

    async def drained(self) -> None:
        """Returns when every coroutine listener has handled its last event."""
        while busy := [listener for listener in self._async if listener.waiting]:
            for listener in busy:
                await listener.drained()

    def _leave(self, subscription: Listener[AnyEvent]) -> None:
        subscription.dispose()
        if subscription in self._async:
            self._async.remove(subscription)

    def _plain(self, handler: Callable[[AnyEvent], object], on_fault: OnFault | None) -> Callable[[], None]:
        def on_next(event: AnyEvent) -> None:
            try:
                _refuse_awaitable(handler(event), handler)
            except Exception as error:
                if on_fault is not None:
                    on_fault(Fault(error, event, "agent.subscribe"))
                raise

        return self._source.subscribe(on_next).dispose

    def _with_signal(self, listener: ListenerLike) -> Callable[[AnyEvent], object]:
        if _takes_signal(listener):
            with_signal = cast("Callable[[AnyEvent, Signal | None], object]", listener)
            return lambda event: with_signal(event, self._signal())
        return cast("Callable[[AnyEvent], object]", listener)
