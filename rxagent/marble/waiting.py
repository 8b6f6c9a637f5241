"""Where a task waits: the innermost frame of its chain of awaits."""

import asyncio
from collections.abc import Coroutine, Generator
from typing import Any


def task_order(task: asyncio.Task[Any]) -> tuple[int, str]:
    """A key that sorts tasks by when they were made."""
    name = task.get_name()
    digits = name.rpartition("-")[2]
    return (int(digits) if digits.isdigit() else 0, name)


def _innermost(awaitable: object) -> tuple[str, int, str] | None:
    place: tuple[str, int, str] | None = None
    while awaitable is not None:
        frame = (
            getattr(awaitable, "cr_frame", None) or getattr(awaitable, "gi_frame", None) or getattr(awaitable, "ag_frame", None)
        )
        if frame is not None:
            place = (frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_qualname)
        inner = getattr(awaitable, "cr_await", None) or getattr(awaitable, "gi_yieldfrom", None)
        awaitable = inner or getattr(awaitable, "ag_await", None)
    return place


def where_it_waits(task: asyncio.Task[Any]) -> str:
    """One line: the task's name, and the function, file and line in which it waits."""
    coroutine: Generator[Any, Any, Any] | Coroutine[Any, Any, Any] | None = task.get_coro()
    place = _innermost(coroutine)
    if place is None:
        return f"{task.get_name()} ({coroutine!r})"
    return f"{task.get_name()} waits in {place[2]} ({place[0]}:{place[1]})"
