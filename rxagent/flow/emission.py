"""Emissions: one value sent as a unit that its consumers can hold, and the wait for them.

- ``publish`` opens an emission around one call of ``send``; ``emit`` also waits for the holds.
- Without holds nothing is awaited, but for the loop's turn every 16 values or 2 ms.
"""

import asyncio
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import coroutine
from typing import TypeVar

from rxagent.errors import WouldDeadlock
from rxagent.flow.holds import BUDGET_SECONDS, Emission, Link, Slot, Source, carry, chain, held_here, local
from rxagent.flow.loops import running_loop, wakeup

T = TypeVar("T")

# Values or time, whichever is first: by time alone a thousand runs on one loop, 2 ms each, would come
# round every two seconds. The time is looked at on every fourth value: a look costs a quarter of one.
BUDGET_EVENTS = 16


class Gate(Source):
    """One run's waits as a whole: its identity in deadlock checks, and the way to end them all.

    Pass it to ``publish`` or ``emit``. After ``open`` (an abort) nothing of this run waits for a
    consumer any more; values are still delivered.
    """

    __slots__ = ("_waiting", "is_open")

    def __init__(self) -> None:
        super().__init__()
        self.is_open = False
        self._waiting: set[Emission] | None = None

    def open(self) -> None:
        """Release whatever is held now and wait for nothing from now on; from any thread."""
        self.is_open = True
        for emission in tuple(self._waiting or ()):
            emission.drop_all()

    @contextmanager
    def serving(self) -> Generator[None]:
        """Mark the enclosed code as something this run waits for, such as a tool of it."""
        link = Link(self)
        before = chain()
        carry((*before, link))
        try:
            yield
        finally:
            link.open = False
            carry(before)

    @property
    def held_here(self) -> bool:
        """Whether the calling code is (part of) a handler that this run waits for."""
        return held_here(self)

    def check(self, action: str) -> None:
        """Raise ``WouldDeadlock`` when ``action`` (such as "await run") could never end here."""
        if held_here(self):
            raise WouldDeadlock(
                f"{action}: called from a handler that this run is waiting for. Let the handler "
                "return first, or start a task of its own after it."
            )

    def enter(self, emission: Emission) -> None:
        """Let ``open`` reach this emission, which is being waited for."""
        if self._waiting is None:
            self._waiting = set()
        self._waiting.add(emission)
        if self.is_open:
            emission.drop_all()

    def leave(self, emission: Emission) -> None:
        """Forget an emission whose wait is over."""
        if self._waiting is not None:
            self._waiting.discard(emission)


class Pending:
    """What an emission still waits for: await it, be called back, or let everything go."""

    __slots__ = ("_emission", "_gate")

    def __init__(self, emission: Emission | None, gate: Gate | None) -> None:
        self._emission = emission
        self._gate = gate

    @property
    def held(self) -> bool:
        """Whether somebody holds; false when the loop is only due its turn."""
        return self._emission is not None and bool(self._emission.holds)

    def release_all(self) -> None:
        """Release every hold of this emission, from any thread."""
        if self._emission is not None:
            self._emission.drop_all()

    def then(self, callback: Callable[[], None]) -> None:
        """Call back once nothing holds any more: now, or on the thread of the last release."""
        emission, gate = self._emission, self._gate
        if emission is None or emission.held_by_own_source():
            callback()
            return
        if gate is not None:
            gate.enter(emission)
            emission.then(lambda: gate.leave(emission))
        emission.then(callback)

    def __await__(self) -> Generator[object, None, None]:
        emission = self._emission
        if emission is None or not emission.holds or emission.held_by_own_source():
            yield  # as in _turn
        else:
            yield from self._wait(emission)
        local.slot.renew(running_loop())

    def _wait(self, emission: Emission) -> Generator[object, None, None]:
        free, wake = wakeup()
        emission.then(wake)
        gate = self._gate
        if gate is None:
            yield from free
            return
        gate.enter(emission)
        try:
            yield from free
        finally:
            gate.leave(emission)


def publish(send: Callable[[T], object], value: T, gate: Gate | None = None) -> Pending | None:
    """Call ``send(value)`` as one emission; None when there is nothing to wait for.

    Otherwise await the result: somebody holds, or 16 values or 2 ms went by without the loop
    having had its turn. ``gate`` names the run that the value belongs to.
    """
    slot = local.slot
    outer = slot.emission
    slot.emission = source = send if gate is None else gate
    try:
        send(value)
    finally:
        emission = slot.emission
        slot.emission = outer
    slot.count = count = slot.count + 1
    if emission is source and (count & 3 or (count < BUDGET_EVENTS and slot.clock() < slot.deadline)):
        return None
    return _pending(slot, emission, gate)


async def emit(send: Callable[[T], object], value: T, gate: Gate | None = None) -> None:
    """Call ``send(value)`` and return when every hold on it is released.

    Without holds it doesn't suspend, but for a turn of the loop every 16 values or 2 ms.
    """
    # The body of publish and the likely end of Pending once more: calls less on the path of every value.
    slot = local.slot
    outer = slot.emission
    slot.emission = source = send if gate is None else gate
    try:
        send(value)
    finally:
        emission = slot.emission
        slot.emission = outer
    slot.count = count = slot.count + 1
    if emission is source:
        if count & 3 or (count < BUDGET_EVENTS and slot.clock() < slot.deadline):
            return
        if slot.loop is running_loop():
            await _turn()
            slot.count = 0
            slot.deadline = slot.clock() + BUDGET_SECONDS
            return
    pending = _pending(slot, emission, gate)
    if pending is not None:
        await pending


@coroutine
def _turn() -> Generator[None]:
    yield  # what asyncio.sleep(0) does: the loop takes its turn


def _pending(slot: Slot, emission: object, gate: Gate | None) -> Pending | None:
    """What is left to wait for after a value that was held, or that used up the budget."""
    if isinstance(emission, Emission) and emission.holds:
        return Pending(emission, gate)
    if slot.count < BUDGET_EVENTS and slot.clock() < slot.deadline:
        return None  # held, and released again before the end of the call
    loop = running_loop()
    if loop is slot.loop and loop is not None:
        return Pending(None, None)
    slot.renew(loop)  # a thread's first value, or its first under another loop
    return None


def start_budget(loop: asyncio.AbstractEventLoop) -> None:
    """Begin to count this thread's values afresh, by the clock of ``loop``.

    A virtual loop calls it when it starts, so that turns fall on the same values in every run.
    """
    local.slot.renew(loop)
