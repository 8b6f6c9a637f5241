"""`@tool`: makes a tool of a function; name, description and schema come from the function itself."""

import asyncio
import inspect
import re
import threading
from collections.abc import AsyncIterable, Awaitable, Callable, Generator, Sequence
from concurrent.futures import Executor, Future
from contextvars import copy_context
from typing import Any, Generic, ParamSpec, TypeVar, cast, overload

from pydantic import ValidationError
from reactivex import Observable

from rxagent.errors import DuplicateTool, InvalidTool
from rxagent.messages import JsonObject, ToolDeclaration
from rxagent.tools.arguments import arguments_model, explained, routine, schema_of, whole_of
from rxagent.tools.base import InvalidArguments, Tool, ToolOutput
from rxagent.tools.context import ToolContext
from rxagent.tools.docstring import describe

P = ParamSpec("P")
R = TypeVar("R")

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


class FunctionTool(Generic[P, R]):
    """A function as a tool; still callable as the function it was."""

    def __init__(
        self, function: Callable[P, R], *, name: str | None, description: str | None, sequential: bool, timeout: float | None
    ) -> None:
        self._function = function
        self._options = {"name": name, "description": description, "sequential": sequential, "timeout": timeout}
        whole = whole_of(function)
        self.__doc__ = whole.__doc__
        self.__name__ = name or getattr(whole, "__name__", type(whole).__name__)
        if not _NAME.fullmatch(self.__name__):
            raise InvalidTool(
                f"{self.__name__!r} can't be a tool's name: use 1 to 64 letters, digits, _ or -, as in tool(name=…)."
            )
        if timeout is not None and timeout <= 0:
            raise InvalidTool(f"tool {self.__name__!r}: timeout must be more than 0 seconds or None, not {timeout}")
        self.sequential = sequential
        self.timeout = timeout
        self._context_parameter, self._names, self._model = arguments_model(self.__name__, function)
        self.declaration = ToolDeclaration(
            self.__name__, (describe(whole)[0] if description is None else description), schema_of(self.__name__, self._model)
        )

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Calls the function, as if it had never been made a tool."""
        return self._function(*args, **kwargs)

    def __get__(self, instance: object, owner: type | None = None) -> "FunctionTool[..., R]":
        if instance is None:
            return self
        bound: Callable[..., R] = self._function.__get__(instance, owner)  # pyright: ignore[reportFunctionMemberAccess, reportUnknownVariableType] functions are descriptors
        return FunctionTool(bound, **self._options)  # pyright: ignore[reportArgumentType] the options it was made with

    def __repr__(self) -> str:
        return f"<tool {self.__name__}>"

    def bind(self, arguments: JsonObject) -> "BoundFunction":
        """Validates and coerces the arguments; raises `InvalidArguments`, which lists what is wrong path by path."""
        try:
            model = self._model.model_validate(arguments)
        except ValidationError as error:
            raise InvalidArguments(explained(self.__name__, error)) from None
        given = cast("JsonObject", model.model_dump(mode="json", by_alias=True, exclude_unset=True))
        values = {name: getattr(model, field) for field, name in self._names.items()}
        return BoundFunction(self._function, given, values, self._context_parameter)


class BoundFunction:
    """One call of a function tool."""

    def __init__(
        self, function: Callable[..., object], arguments: JsonObject, values: dict[str, object], context_parameter: str | None
    ) -> None:
        self.arguments = arguments
        self._function = function
        self._values = values
        self._context_parameter = context_parameter

    def start(self, context: ToolContext) -> ToolOutput:
        """Runs the function: coroutines and async generators on the loop, all else in a thread of its own."""
        values = self._values
        if self._context_parameter is not None:
            values = {**values, self._context_parameter: context}
        function = self._function
        target = routine(function)
        if inspect.iscoroutinefunction(target) or inspect.isasyncgenfunction(target):
            return cast("ToolOutput", function(**values))
        return _in_thread(function, values, context)


async def _in_thread(function: Callable[..., object], values: dict[str, object], context: ToolContext) -> object:
    def work() -> object:
        try:
            output = function(**values)
            if inspect.isgenerator(output):
                return _drain(cast("Generator[object, None, object]", output), context)
        except StopIteration as error:  # a future can't carry it: whoever awaits that would wait for ever
            raise RuntimeError(f"it raised StopIteration ({error})") from error
        return output

    context.signal_taken = True  # a thread can't be cancelled, so the call has to wait for it
    # run_in_executor, so that a virtual loop can run thread work inline on its one clock
    output = await asyncio.get_running_loop().run_in_executor(_DaemonThreads(), copy_context().run, work)
    if isinstance(output, Observable):
        return cast("Observable[object]", output)
    if isinstance(output, AsyncIterable):
        return cast("AsyncIterable[object]", output)
    return await cast("Awaitable[object]", output) if inspect.isawaitable(output) else output


def _drain(output: Generator[object, None, object], context: ToolContext) -> object:
    last: object = None
    for item in output:
        context.signal.raise_if_cancelled()
        context.update(item)
        last = item
    return last


class _DaemonThreads(Executor):
    """A daemon thread per call: one that never returns is abandoned and can't keep the process alive."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:  # Executor's own signature
        future: Future[Any] = Future()

        def run() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                result = fn(*args, **kwargs)
            except BaseException as error:
                future.set_exception(error)
            else:
                future.set_result(result)

        threading.Thread(target=run, daemon=True, name="rxagent-tool").start()
        return future


@overload
def tool(function: Callable[P, R], /) -> FunctionTool[P, R]: ...
@overload
def tool(
    *, name: str | None = None, description: str | None = None, sequential: bool = False, timeout: float | None = None
) -> Callable[[Callable[P, R]], FunctionTool[P, R]]: ...
def tool(
    function: Callable[P, R] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    sequential: bool = False,
    timeout: float | None = None,
) -> FunctionTool[P, R] | Callable[[Callable[P, R]], FunctionTool[P, R]]:
    """Makes a tool of a function, coroutine function, (async) generator, or function that returns an Observable.

    Name, description and JSON schema come from the signature, the annotations and the docstring.
    A parameter annotated `ToolContext` gets the context. Plain functions run in a thread of their own.

    Args:
        function: set when used as plain ``@tool``.
        name: instead of the function's name.
        description: instead of the docstring's text.
        sequential: a batch with this tool runs one call at a time.
        timeout: seconds, in place of ``Limits.tool_timeout``.

    Raises:
        InvalidTool: a parameter can't be described to a model; says which and why.
    """

    def make(function: Callable[P, R]) -> FunctionTool[P, R]:
        return FunctionTool(function, name=name, description=description, sequential=sequential, timeout=timeout)

    return make if function is None else make(function)


def as_tools(tools: Sequence[Tool | Callable[..., object]]) -> tuple[Tool, ...]:
    """Takes tools and plain functions.

    Raises:
        DuplicateTool: two have one name.
        InvalidTool: an item is neither.
    """
    if not isinstance(tools, Sequence):  # pyright: ignore[reportUnnecessaryIsInstance] callers without a type checker
        raise InvalidTool(f"tools is a list of tools, not {tools!r:.100}")
    made: dict[str, Tool] = {}
    for item in tools:
        if isinstance(item, Tool):
            each: Tool = item
        elif callable(item):
            each = tool(item)
        else:
            raise InvalidTool(f"{item!r:.100} is no tool: pass a function, or what @tool makes of one.")
        name = each.declaration.name
        if name in made:
            raise DuplicateTool(f"two tools are named {name!r}; rename one with tool(name=…).")
        made[name] = each
    return tuple(made.values())
