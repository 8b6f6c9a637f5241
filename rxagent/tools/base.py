"""The Tool seam: what a tool declares, how a call is bound to it, what it may produce."""

from collections.abc import AsyncIterable, Awaitable
from typing import Protocol, runtime_checkable

from reactivex import Observable

from rxagent.errors import ToolFailed
from rxagent.messages import JsonObject, ToolDeclaration
from rxagent.tools.context import ToolContext

ToolOutput = Awaitable[object] | AsyncIterable[object] | Observable[object]


class InvalidArguments(ToolFailed):
    """Arguments that don't fit a tool's schema; the message lists them path by path."""


class BoundCall(Protocol):
    """A call whose arguments fit. ``arguments`` is their validated JSON form."""

    @property
    def arguments(self) -> JsonObject:
        """The validated arguments as JSON."""
        ...

    def start(self, context: ToolContext) -> ToolOutput:
        """Begins the work.

        An awaitable gives the result. An async iterable or an Observable gives progress: every
        item is a `ToolUpdate`, the last one is also the result.
        """
        ...


@runtime_checkable
class Tool(Protocol):
    """Anything a model can call.

    ``sequential``: a batch with such a call runs one call at a time. ``timeout``: seconds, None for the agent's own.
    """

    @property
    def declaration(self) -> ToolDeclaration:
        """What a model is told."""
        ...

    @property
    def sequential(self) -> bool:
        """Whether a batch with it runs one call at a time."""
        ...

    @property
    def timeout(self) -> float | None:
        """Seconds a call may take; None: the agent's limit."""
        ...

    def bind(self, arguments: JsonObject) -> BoundCall:
        """Validates and coerces.

        Raises:
            InvalidArguments: they don't fit.
        """
        ...


def is_resumable(tool: Tool) -> bool:
    """Whether a call that a dead process began may be begun again as it is.

    A tool says so with an attribute ``resumable = True``. Such a tool finds out from the log what was done,
    does nothing twice, and, being cancelled, ends by itself within a bounded time.
    """
    return getattr(tool, "resumable", False) is True
