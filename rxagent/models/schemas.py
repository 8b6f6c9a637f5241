"""JSON schemas, rewritten into what each vendor takes of them."""

from collections.abc import Mapping

from pydantic import JsonValue

from rxagent.messages import JsonObject
from rxagent.models.fields import as_list, as_object, as_text

EMPTY_OBJECT: JsonObject = {"type": "object", "properties": {}}
_DEEPEST = 24
_NESTED = ("properties", "$defs", "definitions")
_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")


def object_schema(schema: Mapping[str, JsonValue]) -> JsonObject:
    """The schema of a tool's arguments: an object, also where nothing is declared."""
    written: JsonObject = dict(schema or EMPTY_OBJECT)
    if "$ref" not in written:
        written.setdefault("type", "object")
    if written.get("type") == "object":
        written.setdefault("properties", {})
    return written


# Strict: every property required, nothing beside them. https://developers.openai.com/api/docs/guides/structured-outputs

_STRICT_REFUSED = (
    "allOf", "oneOf", "not", "if", "then", "else", "dependentRequired", "dependentSchemas", "patternProperties", "propertyNames",
    "minProperties", "maxProperties", "unevaluatedProperties", "contains", "prefixItems", "uniqueItems", "minLength", "maxLength",
)  # fmt: skip
_STRICT_FORMATS = ("date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid")


def strict_schema(schema: Mapping[str, JsonValue]) -> JsonObject | None:
    """The schema in OpenAI's strict subset, where it can be said there without loss; else None.

    Objects are closed. An optional property can't be said in it, nor a free-form object.
    """
    strict = _strict(object_schema(schema), 0)
    if not isinstance(strict, dict) or strict.get("type") != "object" or "anyOf" in strict:
        return None
    return strict


def _strict(schema: JsonValue, depth: int) -> JsonValue:
    """None: it can't be said."""
    if not isinstance(schema, dict) or not schema or depth > _DEEPEST or any(key in schema for key in _STRICT_REFUSED):
        return None
    if schema.get("format", "date") not in _STRICT_FORMATS:
        return None
    if "$ref" in schema:
        return {"$ref": schema["$ref"]}  # nothing may stand beside it
    out: JsonObject = {}
    for key, value in schema.items():
        if key in _NESTED and isinstance(value, dict):
            nested: JsonValue = {name: _strict(item, depth + 1) for name, item in value.items()}
            lost = None in nested.values()
        elif key in _LISTS and isinstance(value, list):
            nested = [_strict(item, depth + 1) for item in value]
            lost = None in nested
        elif key == "items":
            nested = _strict(value, depth + 1)
            lost = nested is None
        elif key in ("default", "title"):
            continue
        else:
            nested, lost = value, False
        if lost:
            return None
        out[key] = nested
    return _closed(out) if schema.get("type") == "object" or "properties" in schema else out


def _closed(schema: JsonObject) -> JsonObject | None:
    properties = as_object(schema.get("properties"))
    required = {as_text(name) for name in as_list(schema.get("required"))}
    if schema.get("additionalProperties") not in (None, False) or required != set(properties):
        return None
    return {**schema, "properties": dict(properties), "required": list(properties), "additionalProperties": False}


# Anthropic's subset for structured output: https://platform.claude.com/docs/en/build-with-claude/structured-outputs

_ANTHROPIC_KEPT = ("type", "enum", "const", "description", "title", "$ref", "required", "default")
_ANTHROPIC_VALUES = [
    ("minItems", 0),
    ("minItems", 1),
    *(("format", name) for name in ("date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid")),
]


def anthropic_schema(schema: Mapping[str, JsonValue], depth: int = 0) -> JsonObject:
    """The schema with closed objects; keywords outside Anthropic's subset move into the description."""
    out: JsonObject = {}
    said: list[str] = []
    for key, value in schema.items():
        if key in _NESTED and isinstance(value, dict):
            out[key] = {name: anthropic_schema(as_object(item), depth + 1) for name, item in value.items()}
        elif key in ("anyOf", "oneOf", "allOf"):
            out["anyOf" if key == "oneOf" else key] = [anthropic_schema(as_object(item), depth + 1) for item in as_list(value)]
        elif key == "items":
            out[key] = anthropic_schema(as_object(value), depth + 1)
        elif key in _ANTHROPIC_KEPT or (key, value) in _ANTHROPIC_VALUES:
            out[key] = value
        elif key not in ("additionalProperties", "$schema", "$id", "examples", "discriminator"):
            said.append(f"{key}: {value}")
    if schema.get("type") == "object" or "properties" in schema:
        out["additionalProperties"] = False
    if said:
        out["description"] = f"{as_text(out.get('description'))}\n\n{{{', '.join(said)}}}".strip()
    return out


# Gemini's subset of OpenAPI 3.0: https://ai.google.dev/api/caching#Schema

_GEMINI_KEPT = (
    "description", "nullable", "required", "minimum", "maximum", "minItems", "maxItems", "minLength", "maxLength", "pattern",
    "minProperties", "maxProperties", "propertyOrdering",
)  # fmt: skip
_GEMINI_FORMATS = ("enum", "date-time", "float", "double", "int32", "int64")


def gemini_schema(schema: Mapping[str, JsonValue]) -> JsonObject:
    """The schema in Gemini's subset: references put in place, null as ``nullable``, unknown keywords left out."""
    return _Gemini(schema).convert(schema, ())


class _Gemini:
    def __init__(self, root: Mapping[str, JsonValue]) -> None:
        self._root = root
        self._left = 1000  # schemas that may still be put in place of references

    def convert(self, schema: Mapping[str, JsonValue], within: tuple[str, ...]) -> JsonObject:
        """``within``: the references that are being put in place; what holds itself ends as a plain object."""
        ref = as_text(schema.get("$ref"))
        if ref:
            rest = {key: value for key, value in schema.items() if key != "$ref"}
            if within.count(ref) > 1 or self._left == 0:
                return {"type": "object", **({"description": rest["description"]} if "description" in rest else {})}
            self._left -= 1
            return self.convert({**self._target(ref), **rest}, (*within, ref))
        for part in as_list(schema.get("allOf")):
            schema = _merged(schema, self._resolved(as_object(part)))
        out: JsonObject = {key: schema[key] for key in _GEMINI_KEPT if key in schema}
        if schema.get("format") in _GEMINI_FORMATS:
            out["format"] = schema["format"]
        self._literals(schema, out)
        self._type(schema, out, within)
        properties = as_object(schema.get("properties"))
        if properties:
            out["properties"] = {name: self.convert(as_object(item), within) for name, item in properties.items()}
        if "required" in out:
            required = [name for name in as_list(out["required"]) if as_text(name) in properties]
            out.pop("required")
            if required:
                out["required"] = [*required]
        if out.get("type") == "array":
            items = schema.get("items", next(iter(as_list(schema.get("prefixItems"))), None))
            out["items"] = self.convert(as_object(items), within) if items else {"type": "string"}
        return out

    def _target(self, ref: str) -> Mapping[str, JsonValue]:
        found: object = self._root
        for step in ref.removeprefix("#").strip("/").split("/"):
            found = as_object(found).get(step.replace("~1", "/").replace("~0", "~")) if step else found
        return as_object(found)

    def _resolved(self, schema: Mapping[str, JsonValue]) -> Mapping[str, JsonValue]:
        ref = as_text(schema.get("$ref"))
        return {**self._target(ref), **{key: value for key, value in schema.items() if key != "$ref"}} if ref else schema

    def _literals(self, schema: Mapping[str, JsonValue], out: JsonObject) -> None:
        values = [schema["const"]] if "const" in schema else as_list(schema.get("enum"))
        words = [value for value in values if value is not None]
        if not words:
            return
        if all(isinstance(word, str) for word in words):
            out["enum"] = [*words]
            out.setdefault("type", "string")
        else:  # the subset knows texts only
            said = f"One of: {', '.join(str(word) for word in words)}"
            out["description"] = "\n".join([text for text in (as_text(out.get("description")), said) if text])
        if None in values:
            out["nullable"] = True

    def _type(self, schema: Mapping[str, JsonValue], out: JsonObject, within: tuple[str, ...]) -> None:
        kind = schema.get("type")
        types = [name for name in (as_list(kind) or [kind]) if isinstance(name, str)]
        choices = [as_object(item) for key in ("anyOf", "oneOf") for item in as_list(schema.get(key))]
        if len([name for name in types if name != "null"]) > 1:
            choices = [{"type": name} for name in types]
            types = []
        if "null" in types or any(choice.get("type") == "null" for choice in choices):
            out["nullable"] = True
        real = [self.convert(choice, within) for choice in choices if choice.get("type") != "null"]
        named = [name for name in types if name != "null"]
        if named:
            out["type"] = named[0]
        if len(real) == 1:
            for key, value in real[0].items():
                out.setdefault(key, value)
        elif real:
            out["anyOf"] = [*real]
        if "type" not in out and "anyOf" not in out:
            out["type"] = "object" if "properties" in schema else "string"


def _merged(schema: Mapping[str, JsonValue], part: Mapping[str, JsonValue]) -> Mapping[str, JsonValue]:
    properties = {**as_object(part.get("properties")), **as_object(schema.get("properties"))}
    required = [*as_list(schema.get("required")), *as_list(part.get("required"))]
    merged: JsonObject = {**part, **{key: value for key, value in schema.items() if key != "allOf"}}
    if properties:
        merged["properties"] = properties
    if required:
        merged["required"] = required
    return merged
