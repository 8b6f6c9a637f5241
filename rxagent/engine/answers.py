"""Whether an answer fits the JSON schema its question came with.

What is checked: ``type``, ``enum``, ``const``, ``properties``, ``required``, ``additionalProperties``, ``items``,
``minimum``, ``maximum``, ``minLength``, ``maxLength``, ``anyOf``, ``oneOf``, ``allOf``, and ``$ref`` within the schema.
Other words of JSON Schema, and what is no schema, refuse nothing: the asker reads the answer in any case.
"""

from collections.abc import Sequence
from typing import cast

from pydantic import JsonValue
from pydantic_core import to_json

from rxagent.errors import InterruptError
from rxagent.events import Interrupt
from rxagent.messages import JsonObject

_TYPES: dict[str, tuple[type, ...]] = {
    "null": (type(None),),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
    "string": (str,),
    "array": (list,),
    "object": (dict,),
}
_DEEPEST = 64  # levels of schema that are looked at
_BOUNDS = (("minimum", "at least"), ("maximum", "at most"), ("minLength", "at least"), ("maxLength", "at most"))


def check_fit(asked: Interrupt, answer: JsonValue) -> None:
    """Raises `InterruptError`, which says what was expected, where an answer doesn't fit."""
    if asked.schema is None:
        return
    wrong = _Fit(asked.schema).problems(answer, asked.schema, "")
    if wrong:
        listed = "; ".join(wrong)
        raise InterruptError(f"the answer to interrupt {asked.id!r} ({asked.question:.80}) doesn't fit its schema: {listed}")


class _Fit:
    """One schema, with its definitions."""

    def __init__(self, root: JsonObject) -> None:
        self._root = root
        self._open: set[tuple[int, int]] = set()  # values against schemas, to end where a schema refers to itself

    def problems(self, value: JsonValue, schema: JsonValue, path: str, depth: int = 0) -> list[str]:
        """What is wrong, each with its place."""
        if schema is False:
            return [f"{path or 'the answer'} is not expected"]
        if not isinstance(schema, dict) or depth > _DEEPEST:
            return []
        wrong = _own_problem(value, schema)
        if wrong is not None:
            return [f"{path}: {wrong}" if path else wrong]
        pair = (id(value), id(schema))
        if pair in self._open:
            return []
        self._open.add(pair)
        try:
            return self._within(value, schema, path, depth)
        finally:
            self._open.discard(pair)

    def _within(self, value: JsonValue, schema: JsonObject, path: str, depth: int) -> list[str]:
        found = self._combined(value, schema, path, depth + 1)
        if isinstance(value, dict):
            found.extend(self._fields(value, schema, path, depth + 1))
        elif isinstance(value, list) and "items" in schema:
            for index, item in enumerate(value):
                found.extend(self.problems(item, schema["items"], f"{path}[{index}]", depth + 1))
        return found

    def _combined(self, value: JsonValue, schema: JsonObject, path: str, depth: int) -> list[str]:
        found = self.problems(value, self._referred(schema["$ref"]), path, depth) if "$ref" in schema else []
        for part in _listed(schema.get("allOf")):
            found.extend(self.problems(value, part, path, depth))
        for word in ("anyOf", "oneOf"):
            choices = _listed(schema.get(word))
            against = [self.problems(value, choice, path, depth) for choice in choices]
            if against and all(against):
                near = [each for each, choice in zip(against, choices, strict=True) if _is_meant(value, choice)]
                expected = " or ".join(_brief(choice) for choice in choices)
                wrong = f"expected {expected}, got {_shown(value)}"
                found.extend(near[0] if len(near) == 1 else [f"{path}: {wrong}" if path else wrong])
        return found

    def _fields(self, value: JsonObject, schema: JsonObject, path: str, depth: int) -> list[str]:
        at = f"{path}." if path else ""
        properties = schema.get("properties")
        fields = properties if isinstance(properties, dict) else {}
        found = [f"{at}{name}: required" for name in _listed(schema.get("required")) if name not in value]
        for name, item in value.items():
            if name in fields:
                found.extend(self.problems(item, fields[name], f"{at}{name}", depth))
            elif "patternProperties" not in schema:
                found.extend(self.problems(item, schema.get("additionalProperties"), f"{at}{name}", depth))
        return found

    def _referred(self, reference: JsonValue) -> JsonValue:
        """The part of the schema that a ``$ref`` names; None, which refuses nothing, where there is none."""
        if not isinstance(reference, str) or not reference.startswith("#"):
            return None
        part: JsonValue = self._root
        for step in reference[1:].split("/")[1:]:
            part = part.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(part, dict) else None
        return part


def _own_problem(value: JsonValue, schema: JsonObject) -> str | None:
    """What type, enum, const and bounds say against a value."""
    kinds = [kind for kind in _listed(schema.get("type"), schema.get("type")) if isinstance(kind, str)]
    if kinds and not any(_is(value, kind) for kind in kinds):
        return f"expected {' or '.join(kinds)}, got {_shown(value)}"
    several = schema.get("enum")
    allowed = several if isinstance(several, list) else [schema["const"]] if "const" in schema else None
    if allowed is not None and not any(_same(value, one) for one in allowed):
        return f"expected {' or '.join(_shown(one) for one in allowed)}, got {_shown(value)}"
    for word, said in _BOUNDS:
        bound = schema.get(word)
        size, unit = (len(value), " characters") if isinstance(value, str) else (value, "")
        applies = _is(bound, "number") and _is(size, "number") and isinstance(value, str) == word.endswith("Length")
        if applies and cast("float", size) * (sign := 1 if word.startswith("min") else -1) < cast("float", bound) * sign:
            return f"expected {said} {bound}{unit}, got {_shown(value)}"
    return None


def _is_meant(value: JsonValue, schema: JsonValue) -> bool:
    """Whether a choice is of the value's kind, so that what it says against the value is to the point."""
    return isinstance(value, dict | list) and isinstance(schema, dict) and _own_problem(value, schema) is None


def _is(value: JsonValue, kind: str) -> bool:
    if kind not in _TYPES:
        return True
    if isinstance(value, bool):
        return kind == "boolean"
    return isinstance(value, _TYPES[kind]) or (kind == "integer" and isinstance(value, float) and value.is_integer())


def _same(one: JsonValue, other: JsonValue) -> bool:
    """Equality of JSON values: other than in Python, true is not 1."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    return one == other


def _listed(value: JsonValue, otherwise: JsonValue = None) -> Sequence[JsonValue]:
    if isinstance(value, list):
        return value
    return [] if otherwise is None else [otherwise]


def _brief(schema: JsonValue) -> str:
    """A schema in few words."""
    if isinstance(schema, dict):
        values, kind = schema.get("enum"), schema.get("type")
        if isinstance(values, list):
            return " or ".join(_shown(one) for one in values)
        if isinstance(kind, str) and kind != "object":
            return kind
    return _shown(schema, 300)


def _shown(value: JsonValue, most: int = 100) -> str:
    text = to_json(value, inf_nan_mode="constants").decode()
    return text if len(text) <= most else f"{text[:most]}…"
