"""What a function asks to be called with: its parameters as a model of arguments, and as JSON schema."""

import inspect
from collections.abc import Callable
from functools import partial
from types import UnionType
from typing import Annotated, Any, Union, cast, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
from pydantic.errors import PydanticInvalidForJsonSchema, PydanticSchemaGenerationError, PydanticUserError
from pydantic.json_schema import GenerateJsonSchema

from rxagent.errors import InvalidTool
from rxagent.messages import JsonObject
from rxagent.tools.context import ToolContext
from rxagent.tools.docstring import describe

_INJECTED = inspect.Parameter.empty


def arguments_model(name: str, function: Callable[..., object]) -> tuple[str | None, dict[str, str], type[BaseModel]]:
    """The parameter that takes the context, the fields' parameter names, and a model of the arguments.

    Raises:
        InvalidTool: a model can't be told how to call this function.
    """
    descriptions = describe(whole_of(function))[1]
    fields: dict[str, Any] = {}
    names: dict[str, str] = {}
    context_parameter: str | None = None
    hints = _hints(name, function)
    for parameter in _parameters(name, function):
        hint = hints.get(parameter.name, _INJECTED)
        if hint is _INJECTED:
            raise InvalidTool(
                f"tool {name!r}: parameter {parameter.name!r} has no type annotation, so the model can't be told what to send."
            )
        if _is_context(hint):
            context_parameter = parameter.name
            continue
        default = ... if parameter.default is inspect.Parameter.empty else parameter.default
        # fields are numbered and aliased: a parameter may have any name, also one that BaseModel uses
        field = f"p{len(fields)}"
        names[field] = parameter.name
        extra = Field(alias=parameter.name)
        if parameter.name in descriptions:
            extra = Field(alias=parameter.name, description=descriptions[parameter.name])
        fields[field] = (Annotated[hint, extra], default)
    try:
        model = create_model(f"{name}_arguments", __config__=ConfigDict(extra="forbid", arbitrary_types_allowed=False), **fields)
    except (PydanticSchemaGenerationError, PydanticUserError, TypeError) as error:
        raise InvalidTool(
            f"tool {name!r}: a parameter's type can't be described to a model: {str(error).splitlines()[0]}"
        ) from error
    return context_parameter, names, model


def _parameters(name: str, function: Callable[..., object]) -> list[inspect.Parameter]:
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError) as error:
        raise InvalidTool(f"tool {name!r}: {function!r} has no signature that can be read; wrap it in a function.") from error
    if (
        parameters
        and parameters[0].name == "self"
        and "." in getattr(function, "__qualname__", "")
        and not inspect.ismethod(function)
    ):
        parameters = parameters[1:]  # a method in its class body; FunctionTool.__get__ binds it
    for parameter in parameters:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise InvalidTool(
                f"tool {name!r}: parameter {parameter} can't be sent by a model, which names each argument. Use plain parameters."
            )
    return parameters


def _is_context(hint: object) -> bool:
    """Whether a parameter is annotated ``ToolContext``, ``ToolContext | None`` or ``Annotated[ToolContext, …]``."""
    if get_origin(hint) is Annotated:
        return _is_context(get_args(hint)[0])
    choices = [choice for choice in get_args(hint) if choice is not type(None)]
    return hint is ToolContext or (get_origin(hint) in (Union, UnionType) and choices == [ToolContext])


def whole_of(function: Callable[..., object]) -> Callable[..., object]:
    """The function that a ``partial`` is a part of."""
    while isinstance(function, partial):
        function = cast("partial[object]", function).func
    return function


def routine(function: Callable[..., object]) -> Callable[..., object]:
    """The function that is run in the end; for an object, how it is called."""
    whole = whole_of(function)
    return whole if inspect.isroutine(whole) else type(whole).__call__


def _hints(name: str, function: Callable[..., object]) -> dict[str, Any]:
    target: Any = routine(function)
    try:
        return get_type_hints(target, include_extras=True)
    except (NameError, TypeError) as error:
        raise InvalidTool(
            f"tool {name!r}: its annotations can't be resolved: {error}. Define the types at module level."
        ) from error


class _PlainSchema(GenerateJsonSchema):
    """Without the titles pydantic makes up: they are noise to a model."""

    def get_title_from_name(self, name: str) -> str:
        return ""

    def field_title_should_be_set(self, schema: object) -> bool:
        return False


def schema_of(name: str, model: type[BaseModel]) -> JsonObject:
    """The model's JSON schema, as models are given it.

    Raises:
        InvalidTool: a parameter's type has none.
    """
    try:
        schema = cast("JsonObject", model.model_json_schema(by_alias=True, schema_generator=_PlainSchema))
    except PydanticInvalidForJsonSchema as error:
        raise InvalidTool(f"tool {name!r}: a parameter's type has no JSON schema: {str(error).splitlines()[0]}") from error
    schema.pop("title", None)
    schema.setdefault("properties", {})
    return schema


def explained(name: str, error: ValidationError) -> str:
    """What is wrong with a call's arguments, path by path, for the model."""
    lines = [f"Invalid arguments for tool {name!r}:"]
    for item in error.errors(include_url=False, include_context=False):
        path = ".".join(str(step) for step in item["loc"]) or "(arguments)"
        got = "" if item["type"] == "missing" else f" (got {item['input']!r:.100})"
        lines.append(f"- {path}: {item['msg']}{got}")
    return "\n".join(lines)
