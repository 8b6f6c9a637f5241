"""The scripted model plays what its script says."""

import asyncio

import reactivex as rx

from rxagent.events.model import ModelError, ResponseEnd, ResponseStart, TextDelta, TextEnd, TextStart, ToolCallStart
from rxagent.messages import AssistantMessage, TextPart, ThinkingPart, ToolCall, Usage, UserMessage
from rxagent.models.base import Model, ModelRequest
from rxagent.models.scripted import ScriptedModel

REQUEST = ModelRequest()


def play(model, request=REQUEST):
    async def collect():
        return [event async for event in model.stream(request)]

    return asyncio.run(collect())


def text_of(events):
    return "".join(e.text for e in events if isinstance(e, TextDelta))


def test_text_is_streamed_in_small_deltas():
    text = "Hello,  wide world!\n" + "x" * 100
    events = play(ScriptedModel([text]))
    assert text_of(events) == text
    assert sum(isinstance(e, TextDelta) for e in events) > 10
    assert events[0] == ResponseStart("scripted")
    assert events[-1] == ResponseEnd("stop")


def test_unstreamed_text_comes_in_one_delta():
    events = play(ScriptedModel(["Hello, wide world!"]), ModelRequest(streaming=False))
    assert [e for e in events if isinstance(e, TextDelta)] == [TextDelta("Hello, wide world!", 0)]


def test_a_list_of_events_is_played_as_it_is():
    script = [TextStart(0), TextDelta("cut", 0)]
    assert play(ScriptedModel([script])) == script
    assert play(ScriptedModel([[]])) == []


def test_neighbouring_strings_are_deltas_of_one_text():
    events = play(ScriptedModel([["a b c", "d"]]))
    assert events[1:-1] == [TextStart(0), TextDelta("a b c", 0), TextDelta("d", 0), TextEnd(0)]


def test_parts_become_blocks_and_calls_mean_tool_use():
    events = play(ScriptedModel([[ThinkingPart("hm"), TextPart("well"), ToolCall("c1", "add", {"a": 1})]], usage=Usage(3, 4)))
    assert [e.index for e in events if isinstance(e, ToolCallStart)] == [2]
    assert events[-1] == ResponseEnd("tool_use", Usage(3, 4))


def test_a_terminal_event_in_the_list_is_the_only_one():
    events = play(ScriptedModel([["part of it", ModelError("server", "down", retryable=True)]]))
    assert [type(e) for e in events][-2:] == [TextEnd, ModelError]


def test_an_assistant_message_keeps_its_stop_reason_and_usage():
    events = play(ScriptedModel([AssistantMessage((TextPart("half"),), stop_reason="length", usage=Usage(1, 2), model="m")]))
    assert events[0] == ResponseStart("m")
    assert events[-1] == ResponseEnd("length", Usage(1, 2))


def test_functions_see_the_request():
    async def later(request):
        return f"2:{request.messages[0].text}"

    async def generated(request):
        yield TextDelta("3", 0)
        yield ResponseEnd()

    model = ScriptedModel([lambda request: f"1:{request.messages[0].text}", later, generated])
    request = ModelRequest(messages=(UserMessage("hi"),))
    assert [text_of(play(model, request)) for _ in range(3)] == ["1:hi", "2:hi", "3"]
    assert model.requests == [request] * 3
    every = ScriptedModel(lambda _: "again")
    assert [text_of(play(every)) for _ in range(3)] == ["again"] * 3


def test_an_observable_is_played():
    events = [TextDelta("a", 0), ResponseEnd()]
    assert play(ScriptedModel([rx.from_iterable(events), lambda _: rx.from_iterable(events)])) == events


def test_exceptions_become_errors():
    def broken(_):
        raise ValueError("no")

    for turn in (broken, ValueError("no"), [1]):
        (error,) = play(ScriptedModel([turn]))
        assert (error.kind, error.retryable) == ("server", False)


def test_running_out_of_turns_says_how_many_there_were():
    model = ScriptedModel(["one"])
    play(model)
    (error,) = play(model)
    assert error.kind == "invalid_request"
    assert "1 turns" in error.message
    assert isinstance(model, Model)
