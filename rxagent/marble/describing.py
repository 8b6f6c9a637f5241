"""Values in the words of a legend."""

from dataclasses import is_dataclass
from typing import cast

from rxagent import events
from rxagent.marble.legend import Anything
from rxagent.marble.matching import look_up, text_of
from rxagent.marble.vocabulary import CLASSES, ROLES, SHORT, meanings
from rxagent.messages import ToolResult

# Fields whose values are words; other texts stand in quotes.
_BARE = frozenset({"tool_name", "name", "outcome", "message.role", "target", "source", "kind", "stop_reason"})


def describe(value: object) -> str:
    """``value`` in the words of a legend, as far as they reach; else its repr."""
    if isinstance(value, events.MessageUpdate):
        return describe(value.delta)
    kind = getattr(value, "type", None)
    if not isinstance(kind, str) or kind not in CLASSES or not is_dataclass(value):
        return _describe_message(value)
    word = next((short for short, full in SHORT.items() if full == kind and short != "update"), kind)
    shown = {
        "tool_start": ("tool_name",),
        "tool_end": ("tool_name", "result"),
        "tool_update": ("tool_name", "partial"),
        "message_start": ("message.role", "message"),
        "message_end": ("message.role", "message"),
        "turn_end": (),
        "agent_start": (),
        "session_start": (),
        "config_changed": (),
        "queue_changed": (),
        "interrupted": (),
        "response_end": ("stop_reason",),
        "response_start": (),
        "agent_end": ("outcome",),
        "model_retry": ("delay", "error"),
    }.get(kind, meanings(kind, [Anything()]))
    flags = [f"{flag}=True" for flag in ("is_error", "interrupted") if getattr(value, flag, False)]
    return " ".join([word, *(_show(look_up(value, name), name) for name in shown), *flags])


def _describe_message(value: object) -> str:
    role = getattr(value, "role", None)
    if isinstance(role, str) and role in ROLES:
        return f"{role} {quoted(text_of(value))}"
    if isinstance(value, ToolResult):
        return f"result {quoted(text_of(value))}"
    return repr(value)


def quoted(text: str) -> str:
    """``text`` as a Python string, in double quotes where it can be."""
    shown = repr(text)
    return f'"{shown[1:-1]}"' if shown[0] == "'" and '"' not in shown else shown


def _show(value: object, name: str) -> str:
    if isinstance(value, str) and value.isidentifier() and name in _BARE and value not in ("True", "False", "None"):
        return value
    if isinstance(value, bool | int | float | type(None) | dict):
        return repr(cast("object", value)).replace(" ", "") if isinstance(value, dict) else repr(value)
    return quoted(text_of(value))
