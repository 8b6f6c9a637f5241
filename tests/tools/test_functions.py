"""`@tool` on whatever people hand to it, and what their functions may do to a run."""

import asyncio
import sys
from functools import partial
from typing import Annotated, Optional

import pytest
from agent_harness import Watched
from pydantic import Field

from rxagent import Agent, ToolContext, ToolResult, tool
from rxagent.events import EventReader, MessageUpdate, TextDelta, ToolEnd, ToolUpdate, to_json
from rxagent.messages import ImagePart, TextPart, ToolCall, UserMessage
from rxagent.models import ScriptedModel


async def called(made, **arguments) -> Watched:

    watched = Watched(Agent(ScriptedModel([[ToolCall("c", made.__name__, arguments)], "done"]), tools=[made]))
    result = await asyncio.wait_for(watched.agent.prompt("go"), 10)
    assert result.outcome == "completed"
    watched.check()
    return watched


def answer_of(made, **arguments) -> ToolEnd:
    return asyncio.run(called(made, **arguments)).of(ToolEnd)[0]


class _Rude(BaseException):
    pass


class _Mute(Exception):
    def __str__(self) -> str:
        raise LookupError


def _raises(error: BaseException):
    raise error


@pytest.mark.parametrize(
    "error", [StopIteration("none left"), SystemExit(3), _Rude("base"), _Mute()], ids=lambda e: type(e).__name__
)
@pytest.mark.parametrize("how", ["function", "coroutine"])
def test_whatever_a_tool_raises_is_an_error_result_and_the_run_goes_on(error, how):
    def function():
        _raises(error)

    async def coroutine():
        _raises(error)

    end = answer_of(tool({"function": function, "coroutine": coroutine}[how]))
    assert end.is_error
    assert end.result.text.startswith(f"{how} failed: ")


def test_a_description_in_the_annotation_is_kept_and_the_docstring_wins_where_both_speak():
    @tool
    def both(a: Annotated[int, Field(description="from the annotation", ge=3)], b: Annotated[int, Field(description="x")] = 1):
        """Adds.

        Args:
            b: from the docstring
        """

    properties = both.declaration.parameters["properties"]
    assert properties["a"] == {"type": "integer", "minimum": 3, "description": "from the annotation"}
    assert properties["b"]["description"] == "from the docstring"


@pytest.mark.parametrize("hint", [ToolContext, ToolContext | None, Optional[ToolContext], Annotated[ToolContext, "mine"]])  # noqa: UP045 - the form is what is tested
def test_the_context_is_given_whatever_way_it_is_asked_for(hint):
    def who(n: int, ctx=None) -> str:
        return f"{n} {ctx.tool_name}"

    who.__annotations__["ctx"] = hint
    made = tool(who)
    assert list(made.declaration.parameters["properties"]) == ["n"]
    assert answer_of(made, n=1).result.text == "1 who"


def test_a_partial_is_a_tool_named_and_described_as_its_function():
    def add(a: int, b: int) -> int:
        """Adds."""
        return a + b

    made = tool(partial(add, 5))
    assert (made.declaration.name, made.declaration.description) == ("add", "Adds.")
    assert answer_of(made, b=2).result.text == "7"


def test_a_list_of_texts_and_images_is_content():
    @tool
    def look() -> list:
        return ["see:", ImagePart("aaaa")]

    assert answer_of(look).result.content == (TextPart("see:"), ImagePart("aaaa"))


def test_values_that_json_has_no_word_for_read_the_same_before_and_after_it():
    @tool
    async def measure(ctx: ToolContext) -> dict:
        await ctx.update([float("inf")])
        return {"mean": float("nan"), "name": "\udcff.txt"}

    watched = asyncio.run(called(measure))  # Watched compares each event with what JSON makes of it
    assert watched.of(ToolEnd)[0].result.details == {"mean": None, "name": "\ufffd.txt"}
    assert watched.of(ToolUpdate)[0].partial == [None]


def test_lone_surrogates_are_replaced_where_text_enters_and_pairs_are_joined():
    name = b"caf\xe9".decode(sys.getfilesystemencoding(), "surrogateescape")
    assert UserMessage(name).text == "caf\ufffd"
    assert UserMessage([TextPart("\ud83d\ude00")]).text == "\U0001f600"
    assert ToolResult(name).text == "caf\ufffd"


def test_an_event_with_lone_surrogates_from_a_model_of_ones_own_can_still_be_written():
    event = EventReader().read(to_json(MessageUpdate(TextDelta("a\ud83d"), seq=3)))
    assert (event.seq, event.delta) == (3, TextDelta("a\ufffd"))
