"""`states`, `turns` and `usage`: what the events come to."""

from reactivex import Observable, abc

from rxagent.events import agent as e
from rxagent.messages import AssistantMessage, Usage
from rxagent.operators.kit import OnEvent, Operator, Outermost, fused
from rxagent.state import AgentState, reduce


def states(initial: AgentState | None = None) -> Operator[AgentState]:
    """The state before the first event, then the state after each: ``scan(reduce, initial)``.

        ──A──T──h──|
        states(s0)
        s0─s1─s2─s3─|

    ``initial`` also says whose state it is, by its ``path``; None is an empty state of the agent
    that speaks first. Errors and completion pass through.
    """

    def operator(source: Observable[e.AnyEvent]) -> Observable[AgentState]:
        def subscribe(observer: abc.ObserverBase[AgentState], scheduler: abc.SchedulerBase | None = None) -> abc.DisposableBase:
            emit = observer.on_next
            state = initial or AgentState()
            adopt = initial is None

            def on_next(event: e.AnyEvent) -> None:
                nonlocal state, adopt
                if adopt and event.origin.path:
                    state = AgentState(event.origin.path)
                    adopt = False
                state = reduce(state, event)
                emit(state)

            emit(state)
            return source.subscribe(on_next, observer.on_error, observer.on_completed, scheduler=scheduler)

        return Observable(subscribe)

    return operator


def turns() -> Operator[e.TurnEnd]:
    """Each turn when it is over, with its answer and its tool results.

        ─T─h─e─t─T─y─t─a─|       T  turn_start, t  turn_end
        turns()
        ───────t─────t───|

    Errors and completion pass through.
    """

    def start(observer: abc.ObserverBase[e.TurnEnd]) -> OnEvent:
        emit = observer.on_next
        own = Outermost()

        def on_next(event: e.AnyEvent) -> None:
            if own.takes(event.origin) and isinstance(event, e.TurnEnd):
                emit(event)

        return on_next

    return fused(start)


def usage(initial: Usage | None = None) -> Operator[Usage]:
    """The sum of the tokens used so far, after each answer that tells; agents that work for a call included.

        ─[a──5]─[b──3]─|         ] message_end with its usage
        usage()
        ─────5──────8──|

    What the models of withdrawn attempts used is not known and not in it. Errors and completion pass through.
    """

    def start(observer: abc.ObserverBase[Usage]) -> OnEvent:
        emit = observer.on_next
        total = initial or Usage()

        def on_next(event: e.AnyEvent) -> None:
            nonlocal total
            if (
                isinstance(event, e.MessageEnd)
                and isinstance(event.message, AssistantMessage)
                and event.message.usage is not None
            ):
                total = total + event.message.usage
                emit(total)

        return on_next

    return fused(start)
