"""Reading fields of JSON that somebody else wrote: the right type or nothing, never an exception."""

from collections.abc import Mapping
from typing import cast

from pydantic import JsonValue

from rxagent.messages import JsonObject

_NOTHING: Mapping[str, JsonValue] = {}
_LONGEST_COUNT = 20  # characters


def as_object(value: object) -> Mapping[str, JsonValue]:
    """The value if it is a JSON object, else an empty one."""
    return cast("JsonObject", value) if isinstance(value, dict) else _NOTHING


def as_list(value: object) -> list[JsonValue]:
    """The value if it is a JSON array, else an empty one."""
    return cast("list[JsonValue]", value) if isinstance(value, list) else []


def as_text(value: object) -> str:
    """The value if it is text, else an empty one."""
    return value if isinstance(value, str) else ""


def as_count(value: object) -> int | None:
    """The value if it is a whole number that counts something, be it written as text, else None: unknown."""
    if isinstance(value, str) and value.strip().isdecimal():
        return int(value) if len(value) < _LONGEST_COUNT else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if value >= 0 and value == value // 1 else None


def merge_known(old: JsonObject, new: object) -> None:
    """Takes over the fields of ``new`` that aren't null, objects within objects likewise: the last value wins."""
    for key, value in as_object(new).items():
        before = old.get(key)
        if isinstance(value, dict) and isinstance(before, dict):
            merge_known(before, value)
        elif value is not None:
            old[key] = dict(value) if isinstance(value, dict) else value


def known_sum(*counts: int | None) -> int | None:
    """The sum of the known counts; None if none is known."""
    known = [count for count in counts if count is not None]
    return sum(known) if known else None
