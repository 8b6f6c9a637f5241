"""A run from prompt to end: events in order, results, state, every way to start and to watch one."""

import asyncio
from itertools import pairwise

import pytest
import reactivex as rx
import reactivex.operators as rxops
from agent_harness import Watched, virtual
from pydantic import BaseModel

from rxagent import Agent, AgentContext, Limits, LoopConfig, Retry, errors, run_loop, tool
from rxagent.events import (
    AgentEnd,
    AgentStart,
    MessageEnd,
    MessageStart,
    MessageUpdate,
    ModelError,
    ModelRetry,
    ResponseEnd,
    ResponseStart,
    SessionStart,
    TextDelta,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
    ToolEnd,
)
from rxagent.messages import AssistantMessage, CustomMessage, ImagePart, ToolCall, ToolResultMessage, Usage, UserMessage
from rxagent.models import ScriptedModel
from rxagent.operators.verify import check_run


@tool
async def add(a: int, b: int) -> int:
    return a + b


CALL = ToolCall("c1", "add", {"a": 2, "b": 2})


@virtual
async def test_a_plain_answer_has_the_events_of_the_contract_in_order():
    w = Watched(Agent(ScriptedModel(["hello there"])))
    result = await w.agent.prompt("hi")
    w.check()
    assert w.types == [
        "agent_start",
        "turn_start",
        "message_start",
        "message_end",
        "message_start",
        "message_end",
        "turn_end",
        "agent_end",
    ]
    assert (result.outcome, result.text) == ("completed", "hello there")
    assert result.messages == tuple(w.agent.state.messages)
    assert w.transcript == [("user", "hi"), ("assistant", "hello there")]
    assert all(m.id and m.timestamp for m in result.messages)


@virtual
async def test_a_tool_call_is_run_and_its_result_goes_back_to_the_model():
    model = ScriptedModel([["Let me see. ", CALL], "It is 4"])
    w = Watched(Agent(model, tools=[add]))
    result = await w.agent.prompt("2+2?")
    w.check()
    assert w.transcript == [("user", "2+2?"), ("assistant", "Let me see. "), ("tool", "4"), ("assistant", "It is 4")]
    assert [m.role for m in model.requests[1].messages] == ["user", "assistant", "tool"]
    assert result.text == "It is 4"
    end = w.of(ToolEnd)[0]
    assert (end.args, end.result.text, end.is_error, end.interrupted) == ({"a": 2, "b": 2}, "4", False, False)


@virtual
async def test_unstreamed_answers_give_the_same_events_without_updates():
    def script():
        return ScriptedModel([["Let me see. ", CALL], "It is 4"], usage=Usage(1, 1))

    streamed = Watched(Agent(script(), tools=[add]))
    whole = Watched(Agent(script(), tools=[add], streaming=False))
    await streamed.agent.prompt("2+2?")
    await whole.agent.prompt("2+2?")
    whole.check()
    assert whole.of(MessageUpdate) == []
    assert streamed.of(MessageUpdate)
    assert whole.types == streamed.types
    assert whole.transcript == streamed.transcript


@virtual
async def test_message_updates_carry_the_message_so_far_and_old_ones_never_change():
    w = Watched(Agent(ScriptedModel([["ab", "cd", "ef", CALL], "done"]), tools=[add]))
    seen = []
    w.agent.events.subscribe(
        lambda e: seen.append((e, e.message.text, len(e.message.tool_calls))) if isinstance(e, MessageUpdate) else None
    )
    await w.agent.prompt("x")
    for event, text, calls in seen:
        assert event.message.text == text
        assert len(event.message.tool_calls) == calls
    texts = [text for _, text, _ in seen]
    assert texts[:4] == ["", "ab", "abcd", "abcdef"]


@virtual
async def test_partial_tool_arguments_can_be_read_while_they_stream():
    turn = [
        ResponseStart(),
        ToolCallStart("c1", "add"),
        ToolCallDelta('{"a": 2'),
        ToolCallDelta(', "b": 3}'),
        ToolCallEnd(),
        ResponseEnd("tool_use"),
    ]
    w = Watched(Agent(ScriptedModel([turn, "5"]), tools=[add]))
    await w.agent.prompt("x")
    partial = [e.message.tool_calls[0].arguments for e in w.of(MessageUpdate) if e.message.tool_calls]
    assert partial == [{}, {"a": 2}, {"a": 2, "b": 3}, {"a": 2, "b": 3}, {"a": 2, "b": 3}][: len(partial)]
    assert w.of(ToolEnd)[0].result.text == "5"


@virtual
async def test_call_ids_are_made_unique_and_non_empty_whatever_the_provider_sent():
    again = ToolCall("", "add", {"a": 1, "b": 1})
    w = Watched(Agent(ScriptedModel([[CALL, CALL, again], [CALL, again], "done"]), tools=[add]))
    await w.agent.prompt("x")
    w.check()
    ids = [e.call_id for e in w.of(ToolEnd)]
    assert len(set(ids)) == 5
    assert all(ids)
    assert ids[0] == "c1"
    assert [m.call_id for m in w.agent.state.messages if isinstance(m, ToolResultMessage)] == ids


@virtual
async def test_a_run_replays_its_events_to_late_subscribers_and_can_be_awaited_twice():
    w = Watched(Agent(ScriptedModel(["one", "two"])))
    run = w.agent.prompt("a")
    first = await run
    await w.agent.prompt("b")
    late = []
    done = []
    run.subscribe(late.append, on_completed=lambda: done.append(True))
    assert late == [e for e in w.log if e.origin.run_id == run.run_id]
    assert isinstance(late[0], AgentStart)
    assert isinstance(late[-1], AgentEnd)
    check_run(late)
    assert done == [True]
    assert (await run) == first
    assert len(run.values) == len(late)


@virtual
async def test_a_run_is_an_async_iterator_and_leaving_it_early_aborts_it():
    w = Watched(Agent(ScriptedModel(["one two three four five six", "again"], delay=0.1)))
    got = []
    run = w.agent.prompt("a")
    async for event in run:
        got.append(event)
        if len(got) == 6:
            break
    assert (await run).outcome == "aborted"
    w.check()
    run = w.agent.prompt("b")
    whole = [e async for e in run]
    assert whole == list(run.values)
    assert run.outcome == "completed"


@virtual
async def test_unsubscribing_from_a_run_or_from_events_never_stops_it():
    w = Watched(Agent(ScriptedModel(["one two three"], delay=0.1)))
    run = w.agent.prompt("a")
    run.subscribe().dispose()
    w.agent.events.subscribe().dispose()
    assert (await run).outcome == "completed"


@virtual
async def test_a_cold_run_starts_at_subscribe_each_time_anew_and_dispose_cancels_it():
    model = ScriptedModel(lambda request: "echo " + request.messages[-1].text, delay=0.1)
    cold = run_loop("hi", AgentContext(system_prompt="s", messages=[UserMessage("before")]), LoopConfig(model=model))
    await asyncio.sleep(1)
    assert model.requests == []
    logs: list[list] = [[], []]
    ends = [asyncio.Event(), asyncio.Event()]
    for log, end in zip(logs, ends, strict=True):
        cold.subscribe(log.append, on_completed=end.set)
    for end in ends:
        await end.wait()
    for log in logs:
        check_run(log)
        assert log[-1].outcome == "completed"
        assert [m.text for m in log[-1].messages] == ["hi", "echo hi"]
    assert [m.text for m in model.requests[0].messages] == ["before", "hi"]
    part: list = []
    subscription = cold.subscribe(part.append)
    await asyncio.sleep(0.15)
    subscription.dispose()
    seen = len(part)
    await asyncio.sleep(5)
    assert len(part) == seen
    assert len(model.requests) == 3


@virtual
async def test_a_cold_run_composes_with_stock_operators():
    cold = run_loop("hi", AgentContext(), LoopConfig(model=ScriptedModel(["a b c"])))
    got = await cold.pipe(rxops.filter(lambda e: isinstance(e, MessageEnd)), rxops.to_list())
    assert [e.message.role for e in got] == ["user", "assistant"]


@virtual
async def test_a_failed_stream_keeps_the_partial_text_and_runs_no_call():
    turn = [ResponseStart(), TextDelta("par"), TextDelta("tial"), ToolCallStart("c", "add", 1), ToolCallDelta('{"a":1,"b":1}', 1)]
    w = Watched(Agent(ScriptedModel([turn]), tools=[add], retry=Retry(attempts=1)))
    result = await w.agent.prompt("x")
    w.check()
    assert result.outcome == "failed"
    assert result.error is not None
    assert result.error.kind == "protocol"
    assert w.of(ToolEnd) == []
    last = w.agent.state.messages[-1]
    assert isinstance(last, AssistantMessage)
    assert (last.text, last.stop_reason) == ("partial", "error")
    assert w.agent.state.error_message == last.error_message == result.error.message
    with pytest.raises(errors.RunFailed):
        await w.agent.retry().result(raise_on_failure=True)


@virtual
async def test_a_failed_answer_is_never_sent_and_retry_makes_the_last_request_again():
    model = ScriptedModel([[TextDelta("half"), ModelError("server", "broke")], "whole"])
    w = Watched(Agent(model))
    assert (await w.agent.prompt("x")).outcome == "failed"
    with pytest.raises(errors.AgentBusy):
        w.agent.retry()
        w.agent.retry()
    await w.agent.wait_for_idle()
    w.check()
    assert [m.role for m in model.requests[1].messages] == ["user"]
    assert w.transcript == [("user", "x"), ("assistant", "half"), ("assistant", "whole")]
    with pytest.raises(errors.NothingToContinue):
        w.agent.retry()
    assert w.agent.state.error_message is None


@virtual
async def test_retries_withdraw_the_attempt_and_the_transcript_shows_the_answer_once():
    bad = [ResponseStart(), *[TextDelta(f"bad{i} ") for i in range(20)], ModelError("overloaded", "busy", retryable=True)]
    w = Watched(Agent(ScriptedModel([bad, bad, "good"]), retry=Retry(attempts=3, base_delay=1.0)))
    loop = asyncio.get_running_loop()
    began = loop.time()
    result = await w.agent.prompt("x")
    w.check()
    assert 0.5 + 1.0 <= loop.time() - began <= 1.0 + 2.0
    assert [(e.attempt, e.error.kind) for e in w.of(ModelRetry)] == [(1, "overloaded"), (2, "overloaded")]
    assert w.transcript == [("user", "x"), ("assistant", "good")]
    assert result.text == "good"


@virtual
async def test_retry_after_is_honoured_up_to_its_cap():
    def limited(seconds: float):
        return ModelError("rate_limit", "slow down", retryable=True, retry_after=seconds)

    loop = asyncio.get_running_loop()
    began = loop.time()
    assert (await Agent(ScriptedModel([limited(7), "ok"])).prompt("x")).text == "ok"
    assert loop.time() - began == pytest.approx(7)
    result = await Agent(ScriptedModel([limited(61), "never asked"])).prompt("x")
    assert (result.outcome, result.error.retry_after) == ("failed", 61)


@virtual
async def test_errors_that_are_not_retryable_are_not_retried():
    model = ScriptedModel([ModelError("auth", "bad key"), "never"])
    result = await Agent(model).prompt("x")
    assert result.outcome == "failed"
    assert len(model.requests) == 1


@virtual
async def test_the_next_fallback_model_is_asked_when_one_is_used_up():
    first = ScriptedModel([ModelError("server", "down", retryable=True)] * 2, name="first")
    second = ScriptedModel(["from second"], name="second")
    w = Watched(Agent([first, second], retry=Retry(attempts=2, base_delay=0.1)))
    result = await w.agent.prompt("x")
    w.check()
    assert result.text == "from second"
    assert [e.model for e in w.of(ModelRetry)] == ["first", "second"]
    assert result.messages[-1].model == "second"
    assert len(first.requests) == 2


@virtual
async def test_a_model_that_raises_fails_the_run_with_its_own_words():
    class Broken:
        name = provider = "broken"

        async def stream(self, request):
            yield TextDelta("x")
            raise RuntimeError("wires crossed")

    w = Watched(Agent(Broken()))
    result = await w.agent.prompt("x")
    w.check()
    assert result.outcome == "failed"
    assert "wires crossed" in result.error.message
    assert w.agent.state.messages[-1].text == "x"


@virtual
async def test_an_observable_is_a_model_stream_too():
    class Cold:
        name = provider = "cold"

        def stream(self, request):
            return rx.of(TextDelta("from "), TextDelta("rx"), ResponseEnd())

    w = Watched(Agent(Cold()))
    assert (await w.agent.prompt("x")).text == "from rx"
    w.check()


@virtual
async def test_timeouts_of_the_first_event_and_between_events_are_retryable_model_errors():
    class Slow:
        name = provider = "slow"
        closed = 0

        def __init__(self, waits):
            self.waits = waits

        async def stream(self, request):
            try:
                for wait in self.waits.pop(0):
                    await asyncio.sleep(wait)
                    yield TextDelta("x")
                yield ResponseEnd()
            finally:
                Slow.closed += 1

    limits = Limits(first_event_timeout=5, idle_timeout=2)
    w = Watched(Agent(Slow([[6], [4, 1, 3], [4.9, 1.9, 1.9]]), limits=limits, retry=Retry(base_delay=0.1)))
    result = await w.agent.prompt("x")
    w.check()
    assert result.text == "xxx"
    assert [e.error.kind for e in w.of(ModelRetry)] == ["timeout", "timeout"]
    assert "5 s" in w.of(ModelRetry)[0].error.message
    assert "2 s" in w.of(ModelRetry)[1].error.message
    assert Slow.closed == 3


@virtual
async def test_a_slow_consumer_is_not_the_models_timeout():
    w = Watched(Agent(ScriptedModel(["a b c d"]), limits=Limits(first_event_timeout=1, idle_timeout=1), retry=Retry(attempts=1)))

    async def slow(event):
        await asyncio.sleep(3)

    w.agent.subscribe(slow)
    assert (await w.agent.prompt("x")).outcome == "completed"
    w.check()


@virtual
async def test_limits_end_the_run_and_say_which():
    w = Watched(Agent(ScriptedModel([[CALL]] * 9), tools=[add], limits=Limits(max_turns=3)))
    result = await w.agent.prompt("x")
    w.check()
    assert result.outcome == "limit"
    assert "max_turns" in result.error.message
    assert len(w.of(ToolEnd)) == 3
    model = ScriptedModel([[CALL]] * 9, usage=Usage(input=10, output=5))
    w = Watched(Agent(model, tools=[add], limits=Limits(max_usage=Usage(output=10))))
    result = await w.agent.prompt("x")
    w.check()
    assert (result.outcome, result.usage.output, len(model.requests)) == ("limit", 10, 2)
    assert "max_usage.output" in result.error.message
    w.agent.limits = Limits()
    with pytest.raises(errors.LimitReached):
        await (
            Agent(ScriptedModel([[CALL]] * 9), tools=[add], limits=Limits(max_turns=1)).prompt("x").result(raise_on_failure=True)
        )


@virtual
async def test_a_run_that_ends_at_its_last_allowed_turn_is_completed():
    assert (
        await Agent(ScriptedModel([[CALL], "done"]), tools=[add], limits=Limits(max_turns=2)).prompt("x")
    ).outcome == "completed"


@virtual
async def test_calls_of_an_answer_cut_at_its_length_get_error_results_and_the_loop_goes_on():
    cut = [ToolCallStart("c1", "add"), ToolCallDelta('{"a": 1, "b": 2}'), ToolCallEnd(), ResponseEnd("length")]
    w = Watched(Agent(ScriptedModel([cut, "sorry"]), tools=[add]))
    result = await w.agent.prompt("x")
    w.check()
    assert result.text == "sorry"
    assert w.of(ToolEnd)[0].is_error
    assert "length" in w.of(ToolEnd)[0].result.text


@virtual
async def test_output_types_are_asked_for_and_validated():
    class City(BaseModel):
        name: str
        people: int

    bern = '{"name": "Bern", "people": 134000}'
    model = ScriptedModel([bern, f"```json\n{bern}\n```\n", '{"name": 3}'])
    agent = Agent(model, output=City)
    result = await agent.prompt("x")
    assert result.output == (await agent.prompt("in a fence")).output == City(name="Bern", people=134000)
    assert "people" in model.requests[0].output_schema["properties"]
    result = await agent.prompt("again")
    assert (result.outcome, result.error.kind, result.output) == ("failed", "output", None)


@virtual
async def test_usage_sums_over_the_run_and_over_the_session():
    w = Watched(Agent(ScriptedModel([[CALL], "a", "b"], usage=Usage(10, 5, cost=0.5)), tools=[add]))
    first = await w.agent.prompt("x")
    second = await w.agent.prompt("y")
    assert (first.usage.input, second.usage.input, w.agent.state.usage.input) == (20, 10, 30)
    assert w.agent.state.usage.cost == 1.5


@virtual
async def test_prompts_take_text_messages_lists_and_images():
    class Note(CustomMessage):
        pass

    model = ScriptedModel(lambda request: "ok")
    agent = Agent(model)
    await agent.prompt(["one", UserMessage("two"), Note(role="note")])
    await agent.prompt("look", images=[ImagePart("aGk=")])
    await agent.prompt("look", images=ImagePart("aGk="))
    assert [p.type for p in model.requests[2].messages[-1].content] == ["text", "image"]
    assert [m.text for m in model.requests[0].messages] == ["one", "two"]
    assert [p.type for p in model.requests[1].messages[-1].content] == ["text", "image"]
    for wrong in (3, None, ["ok", 3], b"bytes", {"role": "user"}):
        with pytest.raises(errors.InvalidMessage):
            agent.prompt(wrong)
    with pytest.raises(errors.NothingToContinue):
        agent.prompt([])
    assert not agent.is_running


@virtual
async def test_a_prompt_while_running_names_the_ways_to_reach_the_run():
    agent = Agent(ScriptedModel(["a b c"], delay=1))
    run = agent.prompt("x")
    for start in (lambda: agent.prompt("y"), agent.continue_, agent.retry, agent.reset):
        with pytest.raises(errors.AgentBusy, match=r"steer.*follow_up"):
            start()
    await run


@virtual
async def test_continue_goes_on_from_the_transcript_or_from_what_is_queued():
    model = ScriptedModel(["first", "second", "third"])
    agent = Agent(model, messages=[UserMessage("from before")])
    assert (await agent.continue_()).text == "first"
    with pytest.raises(errors.NothingToContinue):
        agent.continue_()
    agent.steer("s")
    assert (await agent.continue_()).text == "second"
    agent.follow_up("f")
    assert (await agent.continue_()).text == "third"
    assert [m.text for m in agent.state.messages] == ["from before", "first", "s", "second", "f", "third"]
    assert agent.state.follow_ups == agent.state.steering == ()
    with pytest.raises(errors.NothingToContinue):
        Agent(model).continue_()


@virtual
async def test_reset_clears_transcript_and_queues_but_not_the_log():
    w = Watched(Agent(ScriptedModel(["a", "b"])))
    await w.agent.prompt("x")
    w.agent.follow_up("f")
    w.agent.reset()
    assert (len(w.agent.state.messages), w.agent.state.follow_ups) == (0, ())
    await w.agent.prompt("y")
    w.check()
    assert w.transcript == [("user", "y"), ("assistant", "b")]
    assert w.log[-1].seq == len(w.log) - 1


@virtual
async def test_the_log_starts_with_the_configuration_and_changes_show():
    w = Watched(Agent(ScriptedModel(["a", "b"], name="m1"), system_prompt="one", tools=[add], messages=[UserMessage("old")]))
    w.agent.system_prompt = "before the first event"
    await w.agent.prompt("x")
    w.agent.thinking_level = "high"
    w.agent.tools = []
    w.agent.model = ScriptedModel(["c"], name="m2")
    await w.agent.prompt("y")
    w.check()
    start = w.log[0]
    assert isinstance(start, SessionStart)
    assert (start.config.system_prompt, start.config.model) == ("before the first event", "m1")
    assert [t.name for t in start.config.tools] == ["add"]
    assert [m.text for m in start.messages] == ["old"]
    assert sum(e.type == "config_changed" for e in w.log) == 3
    assert (w.agent.state.thinking_level, w.agent.state.tools, w.agent.state.model) == ("high", (), "m2")


def test_prompt_sync_runs_without_a_loop_and_refuses_inside_one():
    agent = Agent(ScriptedModel(["a", "b"]))
    assert agent.prompt_sync("x").text == "a"
    assert agent.prompt_sync("y").text == "b"
    assert len(agent.state.messages) == 4

    async def inside():
        agent.prompt_sync("z")

    with pytest.raises(errors.UsageError, match="await"):
        asyncio.run(inside())
    with pytest.raises(errors.NoRunningLoop, match="prompt_sync"):
        agent.prompt("z")


def test_bad_arguments_of_an_agent_are_named_errors():
    model = ScriptedModel([])
    with pytest.raises(errors.DuplicateTool, match="add"):
        Agent(model, tools=[add, add])
    with pytest.raises(errors.InvalidTool):
        Agent(model, tools=["add"])
    with pytest.raises(errors.UnknownModel):
        Agent("nobody:nothing")
    with pytest.raises(errors.UnknownModel):
        Agent([])
    with pytest.raises(errors.UnknownModel):
        Agent(object())
    with pytest.raises(errors.InvalidMessage):
        Agent(model, messages=[3])
    with pytest.raises(ValueError, match="max_turns"):
        Limits(max_turns=0)
    with pytest.raises(ValueError, match="attempts"):
        Retry(attempts=0)


@virtual
async def test_states_give_the_current_state_first_and_then_every_change():
    agent = Agent(ScriptedModel([[CALL], "done"]), tools=[add])
    states = []
    agent.states.subscribe(states.append)
    assert states == [agent.state]
    await agent.prompt("x")
    assert states[-1] == agent.state
    assert any(s.pending_tool_calls == ("c1",) for s in states)
    assert any(s.streaming_message is not None and s.streaming_message.text == "done" for s in states)
    assert all(a is not b for a, b in pairwise(states))


@virtual
async def test_message_start_of_an_answer_is_empty_and_its_end_is_whole():
    w = Watched(Agent(ScriptedModel(["hello"])))
    await w.agent.prompt("x")
    start = next(e for e in w.of(MessageStart) if isinstance(e.message, AssistantMessage))
    assert (start.message.text, start.message.stop_reason) == ("", None)
    assert start.message.id == w.agent.state.messages[-1].id


def test_output_of_type_str_is_the_answer_as_it_is():
    model = ScriptedModel(["hello, no JSON here"])
    result = Agent(model, output=str).prompt_sync("x")
    assert (result.outcome, result.output) == ("completed", "hello, no JSON here")
    assert model.requests[0].output_schema is None


@virtual
async def test_iterating_over_the_run_from_within_it_is_refused_and_after_it_is_not():
    said = []

    async def iterate(who):
        try:
            async for _ in run:
                pass
        except errors.WouldDeadlock as error:
            said.append((who, "async for" in str(error)))

    @tool
    async def look() -> str:
        """Looks at its own run."""
        await iterate("tool")
        return "seen"

    async def listen(event):
        if event.type == "turn_start" and event.turn == 0:
            await iterate("listener")

    agent = Agent(ScriptedModel([[ToolCall("1", "look", {})], "done"]), tools=[look])
    agent.subscribe(listen)
    run = agent.prompt("x")
    assert (await run).outcome == "completed"
    assert said == [("listener", True), ("tool", True)]
    assert [event.seq async for event in run] == list(range(1, 1 + len(run.values)))
