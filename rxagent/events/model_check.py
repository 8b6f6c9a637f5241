"""Whether a model's events are what they claim to be: models are anybody's code, and what they say goes into the log."""

import math
from collections.abc import Callable
from types import MappingProxyType, NoneType
from typing import cast, get_args

from pydantic_core import PydanticSerializationError, to_json

from rxagent.events import model as m
from rxagent.messages import StopReason, Usage

_Rule = tuple[Callable[[object], bool], str]


def _is(*kinds: type[object]) -> Callable[[object], bool]:
    def holds(value: object) -> bool:
        return isinstance(value, kinds) and not isinstance(value, bool)

    return holds


def _among(words: object) -> _Rule:
    names = get_args(words)

    def holds(value: object) -> bool:
        return isinstance(value, str) and value in names

    return holds, f"one of {', '.join(names)}"


def _is_json(value: object) -> bool:
    if not isinstance(value, dict) or not all(isinstance(key, str) for key in cast("dict[object, object]", value)):
        return False
    try:
        to_json(value)
    except (PydanticSerializationError, RecursionError, ValueError):
        return False
    return True


def _is_object(value: object) -> bool:
    return value is None or _is_json(value)


def _are_arguments(value: object) -> bool:
    return value is None or isinstance(value, str) or _is_json(value)


def _are_seconds(value: object) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value))


_TEXT: _Rule = (_is(str), "a text")
_SOME_TEXT: _Rule = (_is(str, NoneType), "a text or None")
_OBJECT: _Rule = (_is_object, "a JSON object or None")
_INDEX: dict[str, _Rule] = {"index": (_is(int), "a whole number")}

_RULES: MappingProxyType[type[object], dict[str, _Rule]] = MappingProxyType(
    {
        m.ResponseStart: {"model": _SOME_TEXT, "response_id": _SOME_TEXT},
        m.TextStart: _INDEX,
        m.TextDelta: {"text": _TEXT, **_INDEX},
        m.TextEnd: {"replay": _OBJECT, **_INDEX},
        m.ThinkingStart: _INDEX,
        m.ThinkingDelta: {"text": _TEXT, **_INDEX},
        m.ThinkingEnd: {"replay": _OBJECT, **_INDEX},
        m.ToolCallStart: {"id": _TEXT, "name": _TEXT, **_INDEX},
        m.ToolCallDelta: {"arguments": _TEXT, **_INDEX},
        m.ToolCallEnd: {"arguments": (_are_arguments, "a JSON object, a text or None"), "replay": _OBJECT, **_INDEX},
        m.ResponseEnd: {
            "stop_reason": _among(StopReason),
            "usage": (_is(Usage, NoneType), "a Usage or None"),
            "replay": _OBJECT,
        },
        m.ModelError: {
            "kind": _among(m.ErrorKind),
            "message": _TEXT,
            "retry_after": (_are_seconds, "a number of seconds or None"),
            "status": (_is(int, NoneType), "a whole number or None"),
        },
    }
)


def check(event: object) -> None:
    """Checks one event.

    Raises:
        TypeError: it is no model event, or a field of it is not what it should be; names the field.
    """
    rules = next((_RULES[kind] for kind in type(event).__mro__ if kind in _RULES), None)
    if rules is None:
        raise TypeError(f"{event!r:.200} is no model event")
    for name, (holds, wanted) in rules.items():
        value = getattr(event, name)
        if not holds(value):
            raise TypeError(f"{type(event).__name__}.{name} must be {wanted}, not {value!r:.100}")
