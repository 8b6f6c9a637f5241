"""The downstream end of an operator that crosses a thread or time: it opens emissions of its own."""

from typing import Generic, TypeVar

from reactivex import abc
from reactivex.disposable import SingleAssignmentDisposable

from rxagent.flow.emission import Gate, Pending, publish
from rxagent.flow.faults import Fault, call_site, print_fault
from rxagent.flow.holds import Owner, lineage, local
from rxagent.flow.hub import OBSERVER_FAULTS

T = TypeVar("T")


class _Served(Owner):
    """The observer of an outlet as the owner of its holds; outlives the end of the upstream subscription."""

    __slots__ = ("_fail", "_report")

    def __init__(self, outlet: "Outlet[T]") -> None:
        super().__init__()
        self._fail = outlet.fail
        self._report = outlet.report

    def fail(self, error: BaseException, value: object) -> None:
        """Drop the observer; the report goes to whoever is upstream."""
        self._fail(error, value)

    def report(self, error: BaseException, value: object) -> None:
        """The report goes to whoever is upstream."""
        self._report(error, value)


class Outlet(Gate, abc.DisposableBase, Generic[T]):
    """Sends to one observer, as a source that knows what waits for it in turn.

    An observer that raises is reported the way its hub reports (found on ``meet``), or else to
    stderr, and the subscription is disposed: it must not end the thread or timer it was called on.
    Disposing also disposes ``upstream`` and ends every wait for the observer.
    """

    __slots__ = ("_met", "_observer", "_owner", "_served", "_site", "stopped", "upstream")

    def __init__(self, observer: abc.ObserverBase[T]) -> None:
        super().__init__()
        self.upstream = SingleAssignmentDisposable()
        self.stopped = False
        self._observer = observer
        self._owner: Owner | None = None
        self._served = _Served(self)
        self._met = False
        self._site = call_site()

    def meet(self) -> None:
        """Note who is upstream; call it from within every upstream ``on_next``."""
        if not self._met:
            slot = local.slot
            self._owner = slot.owner
            self._met = slot.owner is not None  # a first value, given on subscribing, is nobody's yet
            if slot.emission is not None:
                self.via = lineage()

    def send(self, value: T) -> Pending | None:
        """Deliver ``value`` as an emission; the result, if any, is held by somebody."""
        if self.stopped:
            return None
        slot = local.slot
        owner = slot.owner
        slot.owner = self._served
        try:
            pending = publish(self._observer.on_next, value, self)
        except OBSERVER_FAULTS as error:
            self.fail(error, value)
            return None
        finally:
            slot.owner = owner
        return pending if pending is not None and pending.held else None

    def end(self, error: Exception | None) -> None:
        """Deliver the end, once."""
        if self.stopped:
            return
        self.stopped = True
        try:
            if error is None:
                self._observer.on_completed()
            else:
                self._observer.on_error(error)
        except OBSERVER_FAULTS as fault:
            self._report(fault, error)
        self.dispose()

    def fail(self, error: BaseException, value: object) -> None:
        """Dispose, and report that the observer raised ``error`` on ``value``."""
        self.dispose()
        self._report(error, value)

    def report(self, error: BaseException, value: object) -> None:
        """Report that the observer raised ``error`` on ``value``, to whoever is upstream; it stays subscribed."""
        if self._owner is not None:
            self._owner.report(error, value)
        else:
            print_fault(Fault(error, value, str(self._site), dropped=False))

    def dispose(self) -> None:
        """Deliver nothing more; unsubscribe upstream; let go whatever waits for the observer."""
        self.stopped = True
        self._served.live = False
        self._served.release_holds()
        for link in self.via[-1:]:
            link.open = False
        self.upstream.dispose()

    def _report(self, error: BaseException, value: object) -> None:
        if self._owner is not None:
            self._owner.fail(error, value)
        else:
            print_fault(Fault(error, value, str(self._site)))
