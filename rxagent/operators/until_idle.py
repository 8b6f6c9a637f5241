"""`until_idle`: a session's stream cut where nothing runs any more."""

from reactivex import Observable, abc

from rxagent.events import agent as e
from rxagent.operators.kit import Operator, Outermost


def until_idle() -> Operator[e.AnyEvent]:
    """The events up to the end of the run, then completion: `agent.events` never ends, this does.

        ─A─T─t─a─A─T─…       A  agent_start, a  agent_end
        until_idle()
        ─A─T─t─a|

    Runs of several agents that overlap in one stream are all waited for; agents that run as tools end
    with the run that called them. A stream without a run waits for one. Errors pass through.
    """

    def operator(source: Observable[e.AnyEvent]) -> Observable[e.AnyEvent]:
        def subscribe(observer: abc.ObserverBase[e.AnyEvent], scheduler: abc.SchedulerBase | None = None) -> abc.DisposableBase:
            own = Outermost()
            running = 0

            def on_next(event: e.AnyEvent) -> None:
                nonlocal running
                observer.on_next(event)
                if not own.takes(event.origin):
                    return
                if isinstance(event, e.AgentStart):
                    running += 1
                elif isinstance(event, e.AgentEnd):
                    running -= 1
                    if running <= 0:
                        observer.on_completed()

            return source.subscribe(on_next, observer.on_error, observer.on_completed, scheduler=scheduler)

        return Observable(subscribe)

    return operator
