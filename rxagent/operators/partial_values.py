"""Unfinished JSON as values of a type: what has come is there, what has not is at its default, or None.

1. Constraints (lengths, ranges, validators) are for the finished value; an unfinished one can't meet them.
2. A part that doesn't fit its type yet is left out, never an error.
"""

import types
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import MISSING, fields, is_dataclass
from typing import Annotated, Literal, Union, cast, get_args, get_origin, get_type_hints

from pydantic import BaseModel, TypeAdapter
from pydantic.fields import FieldInfo

ABSENT = object()  # no value can be told yet


class PartialType:
    """Makes values of one type from JSON data that may be unfinished."""

    def __init__(self, kind: object) -> None:
        self._kind = kind
        self._adapters: dict[object, TypeAdapter[object]] = {}

    def read(self, data: object) -> object:
        """The value as far as it can be told, or `ABSENT`."""
        return self._value(self._kind, data)

    def _value(self, kind: object, data: object) -> object:
        origin = get_origin(kind)
        if origin is Annotated:
            return self._value(get_args(kind)[0], data)
        if origin is Union or isinstance(kind, types.UnionType):
            return self._union(get_args(kind), data)
        shape = cast("object", origin or kind)
        if not isinstance(shape, type):
            return self._plain(kind, data)
        if isinstance(data, dict):
            return self._object(shape, kind, cast("dict[str, object]", data))
        if isinstance(data, list) and _is(shape, Sequence, AbstractSet):
            return self._items(shape, kind, cast("list[object]", data))
        return self._plain(kind, cast("object", data))

    def _plain(self, kind: object, data: object) -> object:
        adapter = self._adapters.get(kind)
        if adapter is None:
            adapter = self._adapters[kind] = TypeAdapter(cast("type[object]", kind))
        try:
            return adapter.validate_python(data)
        except ValueError:  # pydantic's ValidationError is one
            return ABSENT

    def _object(self, shape: type, kind: object, data: dict[str, object]) -> object:
        if _is(shape, BaseModel):
            return self._model(cast("type[BaseModel]", shape), data)
        if _is_dataclass(shape):
            return self._dataclass(shape, data)
        if _is_typed_dict(shape):
            hints = get_type_hints(shape)
            return self._present({name: hints[name] for name in data if name in hints}, data)
        if _is(shape, Mapping):
            args = get_args(kind)
            return self._present(dict.fromkeys(data, args[1] if len(args) == 2 else object), data)
        return self._plain(kind, data)

    def _present(self, kinds: Mapping[str, object], data: Mapping[str, object]) -> dict[str, object]:
        values = {name: data[name] if kind is object else self._value(kind, data[name]) for name, kind in kinds.items()}
        return {name: value for name, value in values.items() if value is not ABSENT}

    def _model(self, shape: type[BaseModel], data: Mapping[str, object]) -> object:
        values: dict[str, object] = {}
        present: set[str] = set()
        for name, field in shape.model_fields.items():
            key = _key(name, field, data)
            value = ABSENT if key is None else self._value(field.annotation, data[key])
            if value is ABSENT:
                value = None if field.is_required() else field.get_default(call_default_factory=True, validated_data=values)
            else:
                present.add(name)
            values[name] = value
        return shape.model_construct(_fields_set=present, **values)

    def _dataclass(self, shape: type, data: Mapping[str, object]) -> object:
        hints = get_type_hints(shape)
        made = object.__new__(cast("type[object]", shape))
        for field in fields(shape):
            value = self._value(hints[field.name], data[field.name]) if field.init and field.name in data else ABSENT
            if value is ABSENT and field.default_factory is not MISSING:
                value = field.default_factory()
            elif value is ABSENT:
                value = None if field.default is MISSING else field.default
            object.__setattr__(made, field.name, value)
        return made

    def _items(self, shape: type, kind: object, data: list[object]) -> object:
        args = get_args(kind)
        if not args:
            return self._plain(kind, data)
        if _is(shape, tuple) and not (len(args) == 2 and args[1] is Ellipsis):
            kinds: Sequence[object] = args[: len(data)]
        else:
            kinds = [args[0]] * len(data)
        values = [self._value(each, item) for each, item in zip(kinds, data, strict=False)]
        told = [value for value in values if value is not ABSENT]
        if _is(shape, tuple):
            return tuple(told)
        if _is(shape, frozenset):
            return frozenset(told)
        return set(told) if _is(shape, AbstractSet) else told

    def _union(self, kinds: tuple[object, ...], data: object) -> object:
        for kind in kinds:
            if _fits(kind, data):
                value = self._value(kind, data)
                if value is not ABSENT:
                    return value
        return ABSENT


def _is(shape: type, *kinds: type) -> bool:
    """`issubclass`, without what a type checker concludes from it for generic classes."""
    return issubclass(shape, kinds)


def _is_typed_dict(shape: type) -> bool:
    """Also one of typing_extensions, which is all that pydantic takes before Python 3.12."""
    return _is(shape, dict) and hasattr(shape, "__required_keys__")


def _is_dataclass(shape: object) -> bool:
    return is_dataclass(shape)


def _key(name: str, field: FieldInfo, data: Mapping[str, object]) -> str | None:
    alias = field.validation_alias if isinstance(field.validation_alias, str) else field.alias
    return next((key for key in (alias, name) if key is not None and key in data), None)


def _fits(kind: object, data: object) -> bool:
    """Whether data may become this member of a union: the tags that have come must be its own."""
    if kind is types.NoneType or kind is None:
        return data is None
    shape = get_args(kind)[0] if get_origin(kind) is Annotated else kind
    if not (isinstance(shape, type) and isinstance(data, dict)):
        return True
    if _is(shape, BaseModel):
        model = cast("type[BaseModel]", shape)
        hints: Mapping[str, object] = {name: field.annotation for name, field in model.model_fields.items()}
    elif _is_dataclass(shape) or _is_typed_dict(shape):
        hints = get_type_hints(shape)
    else:
        return True
    given = cast("dict[str, object]", data)
    tags = {name: get_args(hint) for name, hint in hints.items() if get_origin(hint) is Literal}
    return all(given[name] in values for name, values in tags.items() if name in given)
