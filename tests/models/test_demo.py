"""The demo model: offline, scripted, and useful to look at."""

import asyncio

import pytest
from pydantic import BaseModel

from rxagent.events import model as m
from rxagent.events.draft import Draft
from rxagent.messages import ToolDeclaration, ToolResultMessage, UserMessage
from rxagent.models import ModelRequest
from rxagent.models.demo import DemoModel

ADD = ToolDeclaration(
    "add", "", {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a", "b"]}
)
WEATHER = ToolDeclaration("get_weather", "", {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]})


def answer(prompt, *tools, results=(), **fields):
    async def main():
        request = ModelRequest(messages=(UserMessage(prompt), *results), tools=tools, **fields)
        return [event async for event in DemoModel(delay=0).stream(request)]

    draft = Draft("m", 1.0, "")
    events = asyncio.run(main())
    for event in events:
        draft.add(event)
    assert isinstance(events[-1], m.ResponseEnd)
    return draft.finish(events[-1].stop_reason)


def test_it_says_what_it_is():
    message = answer("hello")
    assert "scripted" in message.text
    assert "hello" in message.text
    assert message.thinking


@pytest.mark.parametrize("prompt", ["add 2 and 3", "What is 2 + 3?", "please Add 2 to 3"])
def test_it_calls_a_tool_that_the_prompt_names(prompt):
    message = answer(prompt, ADD)
    assert [(c.name, c.arguments) for c in message.tool_calls] == [("add", {"a": 2, "b": 3})]
    assert message.stop_reason == "tool_use"


def test_it_calls_several():
    message = answer('get weather in "Oslo" and add 1 and 2', ADD, WEATHER)
    assert [(c.name, c.arguments) for c in message.tool_calls] == [("add", {"a": 1, "b": 2}), ("get_weather", {"city": "Oslo"})]


def test_it_tells_what_came_of_it():
    message = answer("add 2 and 2", ADD, results=(ToolResultMessage("demo_0", "add", "4"),))
    assert "4" in message.text
    assert not message.tool_calls
    failed = answer("add 2 and 2", ADD, results=(ToolResultMessage("demo_0", "add", "no", is_error=True),))
    assert failed.text.startswith("add failed: no. ")
    named = (ToolResultMessage("demo_0", "add", "add failed: ValueError: no", is_error=True),)
    assert answer("add 2 and 2", ADD, results=named).text.startswith("add failed: ValueError: no. ")


def test_it_names_the_tools_it_could_call():
    assert "get_weather" in answer("hello", WEATHER).text


def test_a_longer_answer_is_markdown():
    text = answer("a long answer, please").text
    assert text.startswith("# ")
    assert "```python" in text


def test_an_answer_by_schema_fits_it():
    class Place(BaseModel):
        city: str
        zips: list[int]
        inner: "Inner | None"

    class Inner(BaseModel):
        x: float

    Place.model_rebuild(_types_namespace={"Inner": Inner})
    Place.model_validate_json(answer("Oslo", output_schema=Place.model_json_schema()).text)


def test_an_empty_conversation_has_an_answer_too():
    async def main():
        return [event async for event in DemoModel(delay=0).stream(ModelRequest())]

    assert isinstance(asyncio.run(main())[-1], m.ResponseEnd)
