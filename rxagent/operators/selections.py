"""`by_agent` and `of_type`: the events of one agent, the events of some kinds."""

from collections.abc import Sequence
from types import UnionType
from typing import TYPE_CHECKING, Annotated, TypeVar, Union, cast, get_args, get_origin

from reactivex import abc

from rxagent.errors import UsageError
from rxagent.events import agent as e
from rxagent.operators.kit import OnEvent, Operator, fused

if TYPE_CHECKING:  # typing-extensions learnt of TypeForm later than pydantic asks for it
    from typing_extensions import TypeForm

T = TypeVar("T")


def by_agent(agent: str | Sequence[str]) -> Operator[e.AnyEvent]:
    """The events of one agent: of every agent of that name, or of the one at that path of names.

        ─A─a1─b1─a2─b2─|       b  an agent that works for a call of a's
        by_agent("b")  or  by_agent(("a", "b"))
        ──────b1────b2─|

    Agents below it are not included. Errors and completion pass through.

    Raises:
        UsageError: it is no name and no path of names, or empty.
    """
    if not agent or not isinstance(agent, str | Sequence):  # pyright: ignore[reportUnnecessaryIsInstance] callers without a type checker
        raise UsageError(f"by_agent needs an agent's name, or its path from the root, as ('main', 'search'), not {agent!r:.50}")
    name = agent if isinstance(agent, str) else None
    path = None if isinstance(agent, str) else tuple(agent)

    def start(observer: abc.ObserverBase[e.AnyEvent]) -> OnEvent:
        emit = observer.on_next
        known: e.Origin | None = None  # a run's events share one origin

        def on_next(event: e.AnyEvent) -> None:
            nonlocal known
            origin = event.origin
            if origin is not known:
                if not (origin.agent == name if path is None else origin.path == path):
                    return
                known = origin
            emit(event)

        return on_next

    return fused(start)


def of_type(*kinds: "TypeForm[T]") -> Operator[T]:
    """The events of the given kinds: classes, or unions of them such as `events.ToolLevel`.

        ─A─T─s─r─t─a─|         s  tool_start, r  tool_end
        of_type(ToolLevel)
        ─────s─r─────|

    Errors and completion pass through.

    Raises:
        UsageError: no kind is given, or one is neither a class nor a union of classes.
    """
    wanted = tuple(cls for kind in kinds for cls in _classes(kind))
    if not wanted:
        raise UsageError("of_type needs at least one kind of event, such as events.ToolStart or events.ToolLevel")

    def start(observer: abc.ObserverBase[T]) -> OnEvent:
        emit = observer.on_next

        def on_next(event: e.AnyEvent) -> None:
            if isinstance(event, wanted):
                emit(cast("T", event))

        return on_next

    return fused(start)


def _classes(kind: object) -> tuple[type, ...]:
    if isinstance(kind, type):
        return (kind,)
    if get_origin(kind) is Annotated:
        return _classes(get_args(kind)[0])
    if isinstance(kind, UnionType) or get_origin(kind) is Union:
        return tuple(cls for each in get_args(kind) for cls in _classes(each))
    raise UsageError(f"of_type takes classes of events and unions of them, not {kind!r:.200}")
