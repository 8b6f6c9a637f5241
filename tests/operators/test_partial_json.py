"""partial_json: typed values while their JSON is being written, at frame rate, ending in the validated value."""

import asyncio
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from operator_harness import answer, attempt, hub, numbered
from pydantic import BaseModel, Field, TypeAdapter, field_validator
from pydantic_core import to_json
from typing_extensions import TypedDict

from rxagent import events as e
from rxagent import operators as ops
from rxagent.errors import NoRunningLoop, UsageError
from rxagent.marble.loop import run_virtual
from rxagent.messages.fences import unfenced
from rxagent.operators.partial_values import ABSENT, PartialType

END = "|"


class Pet(BaseModel):
    kind: Literal["cat", "dog"] = "cat"
    name: str


class Person(BaseModel):
    name: str
    age: Annotated[int, Field(ge=0, lt=150)]
    tags: list[str] = Field(default_factory=list)
    pet: Pet | None = None
    nick: str = Field("", alias="nickName")


@dataclass
class Point:
    x: float
    y: float = 0.0
    labels: list[str] = field(default_factory=list)


class Row(TypedDict):
    key: str
    values: list[int]


def timed(events, operator, gap=0.001):
    """What an operator gives on a virtual loop, one event every ``gap`` seconds: (time in ms, item)."""

    async def main():
        loop, source, got = asyncio.get_running_loop(), hub(), []

        def note(item):
            got.append((round(loop.time() * 1000), item))

        source.pipe(operator).subscribe(note, lambda error: got.append(error), lambda: got.append(END))
        for event in events:
            source.on_next(event)
            await asyncio.sleep(gap)
        source.on_completed()
        await asyncio.sleep(1)
        return got

    return run_virtual(main())


def values(events, operator, gap=0.001):
    return [item[1] for item in timed(events, operator, gap)[:-1]]


def spelt(value, size=3):
    text = to_json(value).decode()
    return [text[i : i + size] for i in range(0, len(text), size)]


ADA = {"name": "Ada", "age": 36, "tags": ["a", "bc"], "pet": {"kind": "dog", "name": "Rex"}, "nickName": "A"}


def test_values_grow_and_end_in_the_validated_one():
    got = values(numbered(answer(*spelt(ADA))), ops.partial_json(Person), gap=1 / 60)
    assert got[-1] == Person.model_validate(ADA)
    assert all(isinstance(value, Person) for value in got)
    assert any(value.name == "Ada" and value.age is None and value.tags == [] for value in got)
    assert any(value.pet is not None and value.pet.kind == "dog" and value.pet.name is None for value in got)
    assert all(value.name in ("", "A", "Ad", "Ada", None) for value in got)


@pytest.mark.parametrize(("before", "after"), [("```json\n", "\n```"), ("\n```\n", "\n```\n"), ("```JSON \n", "")])
def test_an_answer_in_a_fence_is_read_while_it_is_written(before, after):
    pieces = [*before, *spelt(ADA), *after]
    got = values(numbered(answer(*pieces)), ops.partial_json(Person), gap=1 / 60)
    assert got == values(numbered(answer(*spelt(ADA))), ops.partial_json(Person), gap=1 / 60)


@given(st.text(alphabet="`\n jsonJ{}1", max_size=30))
def test_only_a_fence_at_the_beginning_is_taken_off(text):
    inside = unfenced(text)
    assert inside in text
    assert inside == text or text.lstrip().startswith("```")


def test_text_is_read_at_most_once_per_period(monkeypatch):
    parsed = []
    real = PartialType.read
    monkeypatch.setattr(PartialType, "read", lambda self, data: (parsed.append(data), real(self, data))[1])
    deltas = spelt({"name": "x" * 3000, "age": 1}, size=3)
    got = timed(numbered(answer(*deltas)), ops.partial_json(Person, period=0.1), gap=0.001)
    times = [at for at, _ in got[:-1]]
    assert len(deltas) > 1000
    assert len(parsed) <= 12
    assert all(b - a >= 99 for a, b in pairwise(times[:-1]))
    assert got[-2][1].name == "x" * 3000


def test_a_tools_arguments_are_followed_call_by_call():
    def call(cid, value, index):
        return [e.ToolCallStart(cid, "plot", index), *(e.ToolCallDelta(p, index) for p in spelt(value)), e.ToolCallEnd(index)]

    other = [e.ToolCallStart("c9", "other", 5), e.ToolCallDelta('{"x": 99}', 5), e.ToolCallEnd(5)]
    log = numbered(answer(*call("c1", {"x": 1, "y": 2}, 0), *other, *call("c2", {"x": 3, "labels": ["q"]}, 1), stop="tool_use"))
    got = values(log, ops.partial_json(Point, tool="plot"), gap=1 / 50)
    assert Point(99.0) not in got
    assert got[-2:] == [Point(1.0, 2.0), Point(3.0, 0.0, ["q"])]
    assert Point(3.0, 0.0, []) in got[:-2]


def test_finished_values_are_never_passed_over_however_fast_they_come():
    pieces = []
    for n in range(50):
        pieces += [e.ToolCallStart(f"c{n}", "plot", n), e.ToolCallDelta(f'{{"x": {n}}}', n), e.ToolCallEnd(n)]
    got = values(numbered(answer(*pieces, stop="tool_use")), ops.partial_json(Point, tool="plot"), gap=0)
    assert got[-50:] == [Point(float(n)) for n in range(50)]


def test_arguments_that_come_whole_are_a_value_too():
    pieces = [e.ToolCallStart("c1", "plot"), e.ToolCallEnd(arguments={"x": 5})]
    for unstreamed in (False, True):
        log = numbered(answer(*pieces, stop="tool_use", unstreamed=unstreamed))
        assert values(log, ops.partial_json(Point, tool="plot")) == [Point(5.0)]


def test_an_unstreamed_answer_is_one_finished_value():
    log = numbered(answer(to_json(ADA).decode(), unstreamed=True))
    assert values(log, ops.partial_json(Person))[-1] == Person.model_validate(ADA)


def test_a_withdrawn_attempt_never_ends_in_a_value():
    log = numbered([*attempt(*spelt({"x": 1, "y": 2})), *answer(*spelt({"x": 7}), aid="a2")])
    got = values(log, ops.partial_json(Point), gap=0.02)
    assert got[-1] == Point(7.0)
    assert Point(1.0, 2.0) not in got[len(got) - 2 :]
    mixed = values(log, ops.partial_json(Point), gap=0)
    assert mixed[-1] == Point(7.0)
    assert all(value.x in (None, 1.0, 7.0) for value in mixed)


def test_what_does_not_fit_has_no_finished_value():
    for text in ['{"name": "Ada", "age": 200}', '{"name": "Ada"', "no JSON at all", "[1, 2]", ""]:
        got = values(numbered(answer(*spelt(text)[:0], text)), ops.partial_json(Person), gap=0.1)
        assert all(not isinstance(value.age, int) or value.age == 200 for value in got)
        assert len(got) <= 1


def test_plain_types_and_lists_are_values_too():
    assert values(numbered(answer("[1, 2", ", 3]")), ops.partial_json(list[int]), gap=0.1)[-1] == [1, 2, 3]
    assert values(numbered(answer('{"a": 1}')), ops.partial_json(dict[str, int]), gap=0.1)[-1] == {"a": 1}
    assert values(numbered(answer('"he', 'y"')), ops.partial_json(str), gap=0.1) == ["he", "hey", "hey"]


def test_a_validator_that_breaks_ends_the_stream_with_its_error():
    class Broken(BaseModel):
        x: int

        @field_validator("x")
        @classmethod
        def no(cls, value: int) -> int:
            raise RuntimeError("broken validator")

    got = timed(numbered(answer('{"x": 1}')), ops.partial_json(Broken))
    assert isinstance(got[-1], RuntimeError)


def test_it_says_what_is_wrong_with_its_arguments():
    with pytest.raises(UsageError, match="period"):
        ops.partial_json(Person, period=0)
    with pytest.raises(UsageError, match="can't read"):
        ops.partial_json(object.__init__)


def test_without_a_loop_it_says_so():
    with pytest.raises(NoRunningLoop):
        source = hub()
        got = []
        source.pipe(ops.partial_json(Person)).subscribe(lambda _: None, got.append)
        faults = []
        source._on_fault = faults.append
        for event in numbered(answer("{}")):
            source.on_next(event)
        raise (got or [faults[0].error])[0]


# -- partial values


KEYS = st.sampled_from(["name", "age", "x", "kind", "pet", "tags", "key", "values"])
SHAPES = {
    int: st.integers(-5, 5),
    str: st.text(max_size=3),
    list[int]: st.lists(st.integers(), max_size=3),
    dict[str, bool]: st.dictionaries(st.text(max_size=2), st.booleans(), max_size=3),
    tuple[int, str]: st.tuples(st.integers(), st.text(max_size=2)),
    tuple[int, ...]: st.lists(st.integers(), max_size=3),
    set[int]: st.lists(st.integers(), max_size=3),
    frozenset[str]: st.lists(st.text(max_size=2), max_size=3),
    int | None: st.none() | st.integers(),
    Any: st.none() | st.integers() | st.lists(st.text(max_size=2), max_size=2),
    Literal["a", "b"]: st.sampled_from(["a", "b"]),
    Person: st.fixed_dictionaries(
        {"name": st.text(max_size=3), "age": st.integers(0, 99)}, optional={"tags": st.lists(st.text(max_size=2))}
    ),
    Point: st.fixed_dictionaries({"x": st.floats(-9, 9)}, optional={"y": st.floats(-9, 9)}),
    Row: st.fixed_dictionaries({"key": st.text(max_size=2), "values": st.lists(st.integers(), max_size=2)}),
    list[Person | Point]: st.lists(st.fixed_dictionaries({"x": st.floats(-9, 9)}), max_size=2),
    Annotated[Pet | None, "doc"]: st.none() | st.fixed_dictionaries({"kind": st.just("dog"), "name": st.text(max_size=2)}),
}


@given(st.data(), st.sampled_from([shape for shape in SHAPES if shape != list[Person | Point]]))
def test_a_whole_value_read_as_a_partial_one_is_the_value(data, shape):
    raw = data.draw(SHAPES[shape])
    assert PartialType(shape).read(raw) == TypeAdapter(shape).validate_python(raw)


@given(st.data(), st.sampled_from(list(SHAPES)))
def test_any_prefix_of_a_value_is_read_without_complaint(data, shape):
    text = to_json(data.draw(SHAPES[shape])).decode()
    cut = data.draw(st.integers(0, len(text)))
    values(numbered(answer(text[:cut], text[cut:])), ops.partial_json(shape), gap=0.1)


@given(st.data(), st.sampled_from(list(SHAPES)))
def test_any_json_at_all_is_read_without_complaint(data, shape):
    json = st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=3),
        lambda inner: st.lists(inner, max_size=2) | st.dictionaries(KEYS, inner, max_size=3),
        max_leaves=6,
    )
    PartialType(shape).read(data.draw(json))


def test_tags_that_have_come_choose_the_member_of_a_union():
    class Cat(BaseModel):
        kind: Literal["cat"]
        lives: int = 9

    class Dog(BaseModel):
        kind: Literal["dog"]
        name: str = ""

    read = PartialType(Cat | Dog).read
    assert isinstance(read({"kind": "dog"}), Dog)
    assert isinstance(read({"kind": "cat", "lives": 3}), Cat)
    assert read({"kind": "cow"}) is ABSENT
