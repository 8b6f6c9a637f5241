"""Faults of observers: what is known about one, and the report nobody can overlook."""

import sys
import traceback
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from types import FrameType
from typing import Literal

_INSIDE = ("rxagent", "reactivex")


@dataclass(frozen=True, slots=True)
class Fault:
    """An observer raised, or had no use for an error; it was ``dropped``, unless that says otherwise.

    ``value`` is what was being delivered (the exception for an error, None for a completion),
    ``subscribed_at`` is "file:line in function" of the code that subscribed the chain. A fault of a ``source``
    other than an observer has the value and the place it is about.
    """

    error: BaseException
    value: object
    subscribed_at: str
    dropped: bool = True
    source: Literal["observer", "tool"] = "observer"


OnFault = Callable[[Fault], None]


class CallSite:
    """Where something was called from, cheap to take: formatted only when somebody asks."""

    __slots__ = ("_code", "_line")

    def __init__(self, frame: FrameType | None) -> None:
        self._code = None if frame is None else frame.f_code
        self._line = 0 if frame is None else frame.f_lineno

    def __str__(self) -> str:
        if self._code is None:
            return "unknown place (subscribed by the library itself)"
        return f"{self._code.co_filename}:{self._line} in {self._code.co_qualname}"


# A subscription that is made for somebody, on another thread, is theirs: their call comes along as context.
_caller: ContextVar[CallSite | None] = ContextVar("rxagent_caller", default=None)


@contextmanager
def called_from(site: CallSite) -> Generator[None]:
    """Let ``call_site`` answer ``site`` in the enclosed code."""
    token = _caller.set(site)
    try:
        yield
    finally:
        _caller.reset(token)


def call_site() -> CallSite:
    """The innermost caller outside rxagent and reactivex, or who that one says it works for."""
    caller = _caller.get()
    if caller is not None:
        return caller
    frame: FrameType | None = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame is not None:
        name = frame.f_globals.get("__name__", "")
        if not isinstance(name, str) or name.partition(".")[0] not in _INSIDE:
            break
        frame = frame.f_back
    return CallSite(frame)


def print_fault(fault: Fault) -> None:
    """Print traceback, the value and the place of subscription to stderr; the default report."""
    value = fault.value
    if fault.source == "tool":
        print(f"rxagent: {fault.error}\n  in {fault.subscribed_at}", file=sys.stderr, flush=True)
        return
    lines = traceback.format_exception(fault.error)
    lines.append(f"rxagent: an observer failed on {_describe(value)} and {'was dropped' if fault.dropped else 'goes on'}.\n")
    lines.append(f"  subscribed at {fault.subscribed_at}\n")
    print("".join(lines), file=sys.stderr, end="", flush=True)


def report(on_fault: OnFault, fault: Fault) -> None:
    """Hand ``fault`` to ``on_fault``; a reporter that raises must not silence the report."""
    try:
        on_fault(fault)
    except Exception as error:
        print_fault(fault)
        print_fault(Fault(error, fault, fault.subscribed_at))


def _describe(value: object) -> str:
    kind = getattr(value, "type", None)
    seq = getattr(value, "seq", None)
    labels = [type(value).__name__]
    if isinstance(kind, str):
        labels.append(f"type={kind}")
    if isinstance(seq, int):
        labels.append(f"seq={seq}")
    try:
        text = repr(value)
    except Exception as error:  # a broken repr must not hide the fault itself
        text = f"<repr failed: {error!r}>"
    if len(text) > 300:
        text = text[:300] + "…"
    return f"{' '.join(labels)}: {text}"
