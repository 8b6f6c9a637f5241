"""Models are anybody's code: whatever one yields, the run ends as it should and the next one works."""

import asyncio

import pytest

from rxagent import Agent, Retry
from rxagent import operators as ops
from rxagent.events import AgentEnd, TextDelta, ThinkingDelta, event_adapter, to_json
from rxagent.events.model import (
    ModelError,
    ResponseEnd,
    ResponseStart,
    TextEnd,
    TextStart,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
)
from rxagent.models import ScriptedModel
from rxagent.operators.verify import check


class Yields:
    name = "mine"
    provider = "mine"

    def __init__(self, *events):
        self.events = events

    async def stream(self, request):
        for event in self.events:
            yield event


CALL = ToolCallStart("c", "t")
ODD = {
    "TextDelta.text must be a text, not 5": [TextDelta(5)],
    "TextDelta.text must be a text, not None": [TextDelta("a"), TextDelta(None)],
    "ThinkingDelta.text must be a text": [ThinkingDelta(b"x")],
    "TextDelta.index must be a whole number": [TextDelta("a", "x")],
    "ThinkingDelta.index must be a whole number": [TextDelta("a"), ThinkingDelta("a", [])],
    "ToolCallDelta.arguments must be a text": [CALL, ToolCallDelta({"a": 1}), ToolCallEnd()],
    "ToolCallStart.name must be a text": [ToolCallStart("c", 5), ToolCallEnd(arguments={})],
    "ToolCallStart.id must be a text": [ToolCallStart(["c"], "t"), ToolCallEnd(arguments={})],
    "ToolCallEnd.arguments must be a JSON object, a text or None, not [1]": [CALL, ToolCallEnd(arguments=[1])],
    "ToolCallEnd.arguments must be": [CALL, ToolCallEnd(arguments={"a": object()})],
    "TextEnd.replay must be a JSON object or None": [TextStart(), TextDelta("a"), TextEnd(replay=object())],
    "ResponseStart.model must be a text or None": [ResponseStart(5)],
    "ResponseEnd.stop_reason must be one of stop, tool_use": [TextDelta("a"), ResponseEnd("whatever")],
    "ResponseEnd.usage must be a Usage or None": [TextDelta("a"), ResponseEnd(usage="lots")],
    "ResponseEnd.replay must be a JSON object or None": [TextDelta("a"), ResponseEnd(replay={1: 2})],
    "ModelError.message must be a text": [ModelError("server", None)],
    "ModelError.kind must be one of rate_limit": [ModelError("odd", "x")],
    "ModelError.retry_after must be a number of seconds or None": [ModelError("server", "x", retry_after=float("nan"))],
    "5 is no model event": [5],
    "None is no model event": [None],
    "'x' is no model event": [TextDelta("a"), "x"],
}


@pytest.mark.parametrize("said", ODD)
def test_what_is_no_event_of_a_model_fails_the_answer_and_says_which_field(said):
    asyncio.run(run(said))


async def run(said):
    agent = Agent(Yields(*ODD[said], ResponseEnd("stop")))
    seen, broken = [], []
    agent.events.pipe(ops.verify()).subscribe(seen.append, broken.append)
    result = await agent.prompt("go")
    assert (result.outcome, result.error.kind) == ("failed", "server")
    assert f"mine raised TypeError: {said}" in result.error.message
    assert broken == []
    assert [type(event) for event in seen].count(AgentEnd) == 1
    assert result.text == "".join(e.text for e in ODD[said] if type(e) is TextDelta and e.text == "a" and e.index == 0)
    for event in seen:
        assert event_adapter().validate_json(to_json(event)) == event or event.type == "message_update"
    agent.model = ScriptedModel(["fine"])
    assert (await agent.prompt("and now?")).text == "fine"


ORPHANS = {
    "never begun": [TextDelta("a"), ToolCallDelta('{"x":1}'), ResponseEnd("tool_use")],
    "first of all": [ToolCallDelta('{"x":1}'), ResponseEnd("tool_use")],
    "of another index": [ToolCallStart("c", "t", index=1), ToolCallDelta("{}", index=2), ResponseEnd("tool_use")],
    "after its end": [ToolCallStart("c", "t"), ToolCallEnd(), ToolCallDelta("{}"), ResponseEnd("tool_use")],
}


@pytest.mark.parametrize("streaming", [True, False])
@pytest.mark.parametrize("case", ORPHANS)
def test_arguments_of_a_call_that_is_not_open_make_no_call_without_a_name(case, streaming):
    agent = Agent([Yields(*ORPHANS[case]), ScriptedModel(["good"])], streaming=streaming, retry=Retry(attempts=1))
    log = []
    agent.events.subscribe(log.append)
    result = agent.prompt_sync("x")
    check(log)
    assert (result.outcome, result.text) == ("completed", "good")
    assert [e.error.kind for e in log if e.type == "model_retry"] == ["protocol"]


def test_the_end_of_a_call_that_never_began_makes_no_call():
    agent = Agent(Yields(TextDelta("a"), ToolCallEnd(replay={"signature": "s"}), ResponseEnd()))
    log = []
    agent.events.subscribe(log.append)
    assert agent.prompt_sync("x").outcome == "completed"
    check(log)
    assert agent.state.messages[-1].tool_calls == ()
