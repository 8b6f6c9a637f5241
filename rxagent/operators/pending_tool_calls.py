"""`pending_tool_calls`: the calls that run now."""

from reactivex import abc

from rxagent.events import agent as e
from rxagent.operators.kit import OnEvent, Operator, Outermost, fused


def pending_tool_calls() -> Operator[tuple[e.ToolStart, ...]]:
    """The calls that are running, in start order, whenever one starts or ends.

        ─s1─s2───e1─e2─a─|               s  tool_start, e  tool_end
        pending_tool_calls()
        ─(1)(12)─(2)()───|

    A run that ends leaves none. Errors and completion pass through.
    """

    def start(observer: abc.ObserverBase[tuple[e.ToolStart, ...]]) -> OnEvent:
        emit = observer.on_next
        own = Outermost()
        running: dict[tuple[str, str], e.ToolStart] = {}

        def on_next(event: e.AnyEvent) -> None:
            if isinstance(event, e.ToolStart):
                if not own.takes(event.origin):
                    return
                running[event.origin.session_id, event.call_id] = event
            elif isinstance(event, e.ToolEnd):
                if running.pop((event.origin.session_id, event.call_id), None) is None:
                    return
            elif isinstance(event, e.AgentEnd) and running:
                left = [key for key, call in running.items() if call.origin == event.origin]
                if not left:
                    return
                for key in left:
                    del running[key]
            else:
                own.takes(event.origin)
                return
            emit(tuple(running.values()))

        return on_next

    return fused(start)
