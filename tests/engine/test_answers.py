"""Answers against the schemas of their questions."""

import pytest
from pydantic import BaseModel

from rxagent.engine.answers import check_fit
from rxagent.errors import InterruptError
from rxagent.events import Interrupt


class Seat(BaseModel):
    row: int
    next_to: "Seat | None" = None


OBJECT = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": False}
LOOP = {"$ref": "#"}

CASES = [
    ({"type": "boolean"}, [True, False], [1, 0, None, "true", {}]),
    ({"type": "integer"}, [1, 2.0, -3], [True, 1.5, "1", None]),
    ({"type": "number"}, [1, 1.5], [True, "1"]),
    ({"type": "string"}, ["", "x"], [1, None, ["x"]]),
    ({"type": "null"}, [None], [0, False, ""]),
    ({"type": ["string", "null"]}, ["x", None], [1]),
    ({"type": "array", "items": {"type": "string"}}, [[], ["x"]], ["x", [1], ["x", None]]),
    (OBJECT, [{"a": 1}], [{}, {"a": "1"}, {"a": 1, "b": 2}, [], "a"]),
    ({"properties": {"a": {"type": "integer"}}, "required": ["a"]}, [{"a": 1, "b": 2}, "no object"], [{"a": None}, {}]),
    ({"enum": ["yes", "no", 1, None]}, ["yes", 1, 1.0, None], [True, "maybe", 0]),
    ({"const": {"a": [1, True]}}, [{"a": [1, True]}], [{"a": [1, 1]}, {"a": [True, True]}, {}]),
    ({"type": "integer", "minimum": 1, "maximum": 3}, [1, 3], [0, 4]),
    ({"type": "string", "minLength": 1, "maxLength": 2}, ["a", "ab"], ["", "abc"]),
    ({"anyOf": [{"type": "string"}, OBJECT]}, ["x", {"a": 1}], [1, {"a": "x"}, {}]),
    ({"oneOf": [{"type": "string"}, {"type": "null"}]}, ["x", None], [1]),
    ({"allOf": [{"type": "string"}, {"enum": ["a", 1]}]}, ["a"], [1, "b"]),
    (Seat.model_json_schema(), [{"row": 1}, {"row": 1, "next_to": {"row": 2}}], [{}, {"row": 1, "next_to": {"row": "x"}}]),
    (LOOP, [1, {}], []),
    ({"allOf": [LOOP, LOOP], "anyOf": [LOOP, LOOP]}, [1, {}], []),
    ({"$ref": "#/$defs/nowhere"}, [1], []),
    ({"type": "unheard of", "enum": "odd", "required": 3, "properties": [], "items": 1, "anyOf": {}}, [1, {}, [1]], []),
    ({}, [None, 1], []),
    (None, [None, 1], []),
]


@pytest.mark.parametrize(("schema", "fits", "fails"), CASES)
def test_answers_that_fit_and_answers_that_do_not(schema, fits, fails):
    asked = Interrupt("c:0", "which?", schema, ("a",), "c", "t")
    for answer in fits:
        check_fit(asked, answer)
    for answer in fails:
        with pytest.raises(InterruptError, match=r"'c:0' .which.*(expected|required)"):
            check_fit(asked, answer)


@pytest.mark.parametrize(
    ("schema", "answer", "said"),
    [
        ({"type": "boolean"}, "yes", 'expected boolean, got "yes"'),
        ({"anyOf": [{"type": "string"}, OBJECT]}, {"a": "x"}, 'a: expected integer, got "x"'),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, 1, "expected string or null, got 1"),
        ({"properties": {"a": {"items": OBJECT}}}, {"a": [{"a": 1}, {}]}, "a[1].a: required"),
        ({"type": "string", "maxLength": 1}, "ab", 'expected at most 1 characters, got "ab"'),
    ],
)
def test_the_error_says_what_was_expected_and_where(schema, answer, said):
    with pytest.raises(InterruptError) as caught:
        check_fit(Interrupt("c:0", "which?", schema), answer)
    assert str(caught.value).endswith(f"doesn't fit its schema: {said}")
