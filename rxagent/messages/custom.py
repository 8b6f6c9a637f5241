"""The application's own kinds of message, and kinds this program doesn't know.

A subclass is found by its ``role`` when a log is read, so defining the class registers it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass, fields
from functools import cache
from typing import Any, cast

from pydantic import GetCoreSchemaHandler, JsonValue, TypeAdapter
from pydantic_core import CoreSchema, core_schema

from rxagent.errors import InvalidMessage
from rxagent.messages.parts import JsonObject

OWN_ROLES = frozenset({"system", "user", "assistant", "tool"})


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomMessage:
    """Base of messages of the application's own.

    Models never see one, unless the hook ``convert_to_model`` turns it into another message.

        @dataclass(frozen=True, slots=True, kw_only=True)
        class Artifact(CustomMessage):
            role: str = "artifact"
            path: str
    """

    role: str
    id: str = ""
    timestamp: float = 0.0

    def __post_init__(self) -> None:
        if self.role in OWN_ROLES or not self.role:
            raise InvalidMessage(f"a message of your own can't have the role {self.role!r}: use a word of your own")

    @property
    def text(self) -> str:
        """What a plain view shows; override it."""
        return ""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        if cls is not CustomMessage:
            return handler(source)
        return core_schema.no_info_plain_validator_function(
            _read, serialization=core_schema.plain_serializer_function_ser_schema(_write)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownMessage(CustomMessage):
    """A message whose role no class of this program claims; kept as it came."""

    data: JsonObject


def _all_kinds(base: type[CustomMessage]) -> Iterator[type[CustomMessage]]:
    for kind in base.__subclasses__():
        yield kind
        yield from _all_kinds(kind)


def _role_of(kind: type[CustomMessage]) -> object:
    for f in fields(kind):
        if f.name == "role":
            return None if f.default is MISSING else f.default
    return None


@cache
def _adapter(kind: type[CustomMessage]) -> TypeAdapter[CustomMessage]:
    return TypeAdapter(kind)


def _read(value: object) -> CustomMessage:
    if isinstance(value, CustomMessage):
        return value
    if not isinstance(value, Mapping):
        raise ValueError(f"a message is a JSON object, not {value!r:.80}")  # noqa: TRY004 - what pydantic reports
    data = dict(cast("Mapping[str, Any]", value))
    role = data.get("role")
    if not isinstance(role, str) or not role:
        raise ValueError("a message needs a role")
    # the newest definition wins, as with any redefinition in Python
    kinds = [kind for kind in _all_kinds(CustomMessage) if _role_of(kind) == role]
    if kinds:
        return _adapter(kinds[-1]).validate_python(data)
    return UnknownMessage(role=role, id=str(data.get("id", "")), timestamp=float(data.get("timestamp", 0.0)), data=data)


def _write(value: CustomMessage) -> JsonValue:
    if isinstance(value, UnknownMessage):
        return cast("JsonValue", value.data)
    if type(value) is CustomMessage:  # its adapter is what calls this function
        return {"role": value.role, "id": value.id, "timestamp": value.timestamp}
    return _adapter(type(value)).dump_python(value, mode="json")
