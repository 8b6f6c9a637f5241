"""Holds: how whoever needs time delays the source of what it is being given.

- The open emission lives in a thread-local slot: a context would be copied into tasks and go stale.
- A hold belongs to the subscription that is being served; disposing that releases it.
- What a handler's source waits for is in that handler's chain, so no source waits for itself.
"""

import asyncio
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextvars import ContextVar

BUDGET_SECONDS = 0.002


class Link:
    """One "waits for": while ``open``, ``source`` may be waiting for the code that carries it."""

    __slots__ = ("open", "source")

    def __init__(self, source: object) -> None:
        self.source = source
        self.open = True


Chain = tuple[Link, ...]

_chain: ContextVar[Chain] = ContextVar("rxagent_chain", default=())


class Owner(ABC):
    """A subscription that holds belong to; releasing them is part of disposing it."""

    __slots__ = ("holds", "live")

    def __init__(self) -> None:
        self.holds: set[Release] = set()
        self.live = True

    @abstractmethod
    def fail(self, error: BaseException, value: object) -> None:
        """Drop the subscription and report that it raised ``error`` on ``value``."""

    @abstractmethod
    def report(self, error: BaseException, value: object) -> None:
        """Report that it raised ``error`` on ``value``; it stays subscribed."""

    def release_holds(self) -> None:
        """Release every hold opened on behalf of this subscription, from any thread."""
        while self.holds:
            try:
                release = self.holds.pop()
            except KeyError:  # another thread took the last one
                return
            release.release()


class Source:
    """What an emission comes from, when that is more than a function.

    ``via`` is what waits for this source in turn; empty means: whatever waits for the caller.
    """

    __slots__ = ("via",)

    def __init__(self) -> None:
        self.via: Chain = ()


class Release:
    """The right to let a held emission go on: one-shot, idempotent, callable from any thread."""

    __slots__ = ("_emission", "_owner")

    def __init__(self, emission: "Emission | None", owner: Owner | None = None) -> None:
        self._emission = emission
        self._owner = owner

    @property
    def active(self) -> bool:
        """Whether an emission is being held by this; false from the start when none was open."""
        return self._emission is not None and self in self._emission.holds

    def release(self) -> None:
        """Stop holding; does nothing the second time."""
        if self._owner is not None:
            self._owner.holds.discard(self)
        if self._emission is not None:
            self._emission.drop(self)

    def __call__(self) -> None:
        """Release."""
        self.release()


class Emission:
    """One value on its way, and who holds it.

    Lock-free: set and list operations are atomic, and whoever comes last of "the last hold is
    gone" and "somebody waits" sees both, so the callbacks run exactly once.
    """

    __slots__ = ("_callbacks", "chain", "holds", "source")

    def __init__(self, source: object, chain: Chain) -> None:
        self.source = source
        self.chain = chain
        self.holds: set[Release] = set()
        self._callbacks: list[Callable[[], None]] = []

    def hold(self, owner: Owner | None) -> Release:
        """Add one more party to wait for."""
        release = Release(self, owner)
        self.holds.add(release)
        if owner is not None:
            owner.holds.add(release)
            if not owner.live:  # disposed meanwhile, perhaps by another thread
                release.release()
        return release

    def drop(self, release: Release) -> None:
        """One party less; the last one lets the emission go on."""
        self.holds.discard(release)
        if not self.holds:
            self._fire()

    def drop_all(self) -> None:
        """Release every hold, from any thread."""
        for release in tuple(self.holds):
            release.release()

    def then(self, callback: Callable[[], None]) -> None:
        """Call back once nothing holds any more: now, or on the thread of the last release."""
        self._callbacks.append(callback)
        if not self.holds:
            self._fire()

    def held_by_own_source(self) -> bool:
        """Whether this was emitted by code that its own source is waiting for."""
        return _leads_to(self.chain, self.source)

    def _fire(self) -> None:
        while self._callbacks:
            try:
                callback = self._callbacks.pop()
            except IndexError:  # another thread took the last one
                return
            callback()


class Slot:
    """What one thread knows: the open emission, who is being served, the yield budget."""

    __slots__ = ("clock", "count", "deadline", "emission", "loop", "owner")

    def __init__(self) -> None:
        # Between opening and the first hold, the source itself stands for its emission: most
        # emissions are never held, and this saves making an object for each.
        self.emission: object | None = None
        self.owner: Owner | None = None
        self.loop: asyncio.AbstractEventLoop | None = None
        self.clock: Callable[[], float] = time.monotonic
        self.count = 0
        self.deadline = 0.0

    def renew(self, loop: asyncio.AbstractEventLoop | None) -> None:
        """Start a new budget, on the clock of ``loop``."""
        if loop is not self.loop:
            self.loop = loop
            # The stock loops' time() is a Python wrapper around this; a virtual loop's is not.
            stock = loop is None or type(loop).time is asyncio.BaseEventLoop.time
            self.clock = time.monotonic if stock or loop is None else loop.time
        self.count = 0
        self.deadline = self.clock() + BUDGET_SECONDS


class _Local(threading.local):
    def __init__(self) -> None:
        self.slot = Slot()


# The one piece of module state of this room: "what is being emitted on this thread right now"
# has no other place, since stock operators between the two ends can't carry it.
local = _Local()


def hold() -> Release:
    """Delay the source of the value that is just being delivered, until the result is released.

    Reached synchronously from within an emission, through any operators. Elsewhere (no emission
    is open, or it closed already) the result does nothing and says so: ``active`` is false.
    The hold belongs to the hub subscription being served; disposing that releases it.
    """
    slot = local.slot
    emission = slot.emission
    if emission is None:
        return Release(None)
    if not isinstance(emission, Emission):
        emission = slot.emission = Emission(emission, _behind(emission))
    return emission.hold(slot.owner)


def held_here(source: object) -> bool:
    """Whether the calling code is (part of) a handler that ``source`` may be waiting for.

    ``source`` is what was given to ``publish``: its gate, or else its ``send``.
    """
    return _leads_to(_chain.get(), source)


def lineage() -> Chain:
    """The chain of whoever handles the value being delivered; for operators.

    Its last link is new: close it (``link.open = False``) when the handler is done.
    """
    emission = local.slot.emission
    if isinstance(emission, Emission):
        return (*emission.chain, Link(emission.source))
    return (*_behind(emission), Link(emission))


def chain() -> Chain:
    """What may be waiting for the calling code."""
    return _chain.get()


def carry(new: Chain) -> None:
    """Make ``new`` the chain of the current context; for operators, in a task of their own."""
    _chain.set(new)


def _behind(source: object) -> Chain:
    return source.via if isinstance(source, Source) and source.via else _chain.get()


def _leads_to(chain: Chain, source: object) -> bool:
    """Whether ``source`` waits for the carrier of ``chain``: every link from there on is open."""
    for link in reversed(chain):
        if not link.open:
            return False
        if link.source == source:
            return True
    return False
