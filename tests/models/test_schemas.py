"""Schemas rewritten for vendors: only what they take, nothing lost that can be said."""

from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from rxagent.models.schemas import anthropic_schema, gemini_schema, object_schema, strict_schema


class Leaf(BaseModel):
    """A leaf."""

    name: str = Field(min_length=1, description="What it is called")
    kind: Literal["a", "b"] = "a"
    level: Literal[1, 2] | None = None


class Tree(BaseModel):
    leaves: list[Leaf]
    child: "Tree | None" = None
    point: tuple[int, int] = (0, 0)
    either: int | str = 0
    size: int = Field(default=1, gt=0, le=9)
    free: dict[str, int] = {}
    only: Literal["x"] = "x"


TAKEN = {
    "type", "description", "nullable", "required", "minimum", "maximum", "minItems", "maxItems", "minLength", "maxLength",
    "pattern", "minProperties", "maxProperties", "propertyOrdering", "enum", "format", "properties", "items", "anyOf",
}  # fmt: skip


def keywords(schema):
    for key, value in schema.items():
        yield key
        if key == "properties":
            for nested in value.values():
                yield from keywords(nested)
        elif key == "items":
            yield from keywords(value)
        elif key == "anyOf":
            for nested in value:
                yield from keywords(nested)


def test_gemini_gets_a_real_schema_in_its_subset():
    schema = gemini_schema(Tree.model_json_schema())
    assert set(keywords(schema)) <= TAKEN
    properties = schema["properties"]
    leaf = properties["leaves"]["items"]["properties"]
    assert leaf["name"] == {"type": "string", "minLength": 1, "description": "What it is called"}
    assert leaf["kind"] == {"type": "string", "enum": ["a", "b"]}
    assert "One of: 1, 2" in leaf["level"]["description"]
    assert leaf["level"]["nullable"] is True
    assert properties["child"]["nullable"] is True
    assert properties["either"]["anyOf"] == [{"type": "integer"}, {"type": "string"}]
    assert properties["size"] == {"type": "integer", "maximum": 9}
    assert properties["only"]["enum"] == ["x"]
    assert schema["required"] == ["leaves"]


def test_gemini_gets_a_recursive_schema_without_an_end_as_a_plain_object():
    child = gemini_schema(Tree.model_json_schema())["properties"]["child"]
    assert child["properties"]["child"]["type"] == "object"


def test_a_property_may_have_a_keyword_for_its_name():
    schema = {
        "type": "object",
        "properties": {"title": {"type": "string"}, "default": {"type": "integer"}, "$ref": {"type": "string"}},
        "required": ["title", "default", "$ref"],
    }
    assert set(gemini_schema(schema)["properties"]) == {"title", "default", "$ref"}
    assert set(anthropic_schema(schema)["properties"]) == {"title", "default", "$ref"}
    assert set(strict_schema(schema)["properties"]) == {"title", "default", "$ref"}


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"a": {"type": "string"}}},
        {"type": "object", "additionalProperties": {"type": "integer"}},
        {"type": "object", "properties": {"a": {"type": "object", "properties": {"b": {"type": "string"}}}}, "required": ["a"]},
        {"type": "object", "properties": {"a": {"oneOf": [{"type": "string"}, {"type": "integer"}]}}, "required": ["a"]},
        {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": True},
        {"type": "object", "properties": {"a": {}}, "required": ["a"]},
        {"type": "object", "properties": {"a": {"type": "string", "format": "binary"}}, "required": ["a"]},
        {"type": "object", "properties": {"a": {"type": "string", "minLength": 3}}, "required": ["a"]},
        {"$ref": "#/$defs/A", "$defs": {"A": {"type": "object", "properties": {}}}},
        {"anyOf": [{"type": "string"}, {"type": "integer"}]},
    ],
    ids=["optional", "free-form", "optional inside", "oneOf", "open", "anything", "format", "length", "a reference", "no object"],
)
def test_what_strict_mode_can_not_say_is_not_declared_strict(schema):
    assert strict_schema(schema) is None


def test_a_strict_schema_is_closed_everywhere_and_keeps_the_original_as_it_was():
    schema = {
        "type": "object",
        "properties": {
            "a": {
                "type": "array",
                "items": {"type": "object", "properties": {"b": {"type": ["string", "null"]}}, "required": ["b"]},
            }
        },
        "required": ["a"],
        "title": "T",
    }
    strict = strict_schema(schema)
    assert strict["additionalProperties"] is False
    assert strict["properties"]["a"]["items"]["additionalProperties"] is False
    assert "title" not in strict
    assert schema["title"] == "T"
    assert "additionalProperties" not in schema


def test_nothing_stands_beside_a_reference_in_a_strict_schema():
    schema = {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/A", "description": "An A"}},
        "required": ["a"],
        "$defs": {"A": {"type": "string"}},
    }
    assert strict_schema(schema)["properties"]["a"] == {"$ref": "#/$defs/A"}


def test_anthropic_gets_what_its_subset_lacks_in_words():
    schema = anthropic_schema(
        {
            "type": "object",
            "properties": {
                "n": {"type": "integer", "minimum": 1, "description": "How many"},
                "d": {"type": "string", "format": "date"},
                "w": {"type": "string", "format": "weird"},
            },
        }
    )
    assert schema["properties"]["n"] == {"type": "integer", "description": "How many\n\n{minimum: 1}"}
    assert schema["properties"]["d"] == {"type": "string", "format": "date"}
    assert "weird" in schema["properties"]["w"]["description"]


def test_arguments_are_an_object_also_where_nothing_is_declared():
    assert object_schema({}) == {"type": "object", "properties": {}}
    assert object_schema({"type": "object"}) == {"type": "object", "properties": {}}
    assert object_schema({"$ref": "#/$defs/A", "$defs": {}}) == {"$ref": "#/$defs/A", "$defs": {}}


KEYS = st.sampled_from(
    [
        "type",
        "properties",
        "items",
        "anyOf",
        "allOf",
        "oneOf",
        "$ref",
        "$defs",
        "enum",
        "const",
        "required",
        "format",
        "description",
        "additionalProperties",
        "default",
    ]
)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-9, 9)
    | st.sampled_from(["object", "array", "string", "null", "#/$defs/a", "#", "a"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS | st.just("a"), inner, max_size=5),
    max_leaves=25,
)


@given(st.dictionaries(KEYS | st.just("a"), JSON, max_size=6))
def test_no_schema_however_odd_is_a_crash(schema):
    for rewrite in (gemini_schema, anthropic_schema, strict_schema, object_schema):
        rewrite(schema)
