"""Steering and follow-ups: who is answered when, in both modes, and that nothing queued is ever lost."""

import asyncio
import threading

import pytest
from agent_harness import Watched, virtual

from rxagent import Agent, Hooks, Limits, Retry, ToolContext, hooks, tool
from rxagent.events import MessageEnd, ModelError, QueueChanged, ToolEnd
from rxagent.messages import ToolCall, UserMessage
from rxagent.models import ScriptedModel


def requests_of(model) -> list[list[str]]:
    """The user texts that are new in each request."""
    seen = 0
    new = []
    for request in model.requests:
        texts = [m.text for m in request.messages if m.role == "user"]
        new.append(texts[seen:])
        seen = len(texts)
    return new


async def queued_during_the_first_answer(mode: str) -> list[list[str]]:
    model = ScriptedModel(lambda request: "ok", delay=1)
    w = Watched(Agent(model))
    w.agent.steering_mode = w.agent.follow_up_mode = mode
    run = w.agent.prompt("p")
    await asyncio.sleep(1.5)
    w.agent.steer("s1")
    w.agent.steer("s2")
    w.agent.follow_up("f1")
    w.agent.follow_up("f2")
    await run
    w.check()
    assert (w.agent.state.steering, w.agent.state.follow_ups) == ((), ())
    return requests_of(model)


@virtual
async def test_one_at_a_time_answers_each_message_by_itself():
    assert await queued_during_the_first_answer("one_at_a_time") == [["p"], ["s1"], ["s2"], ["f1"], ["f2"]]


@virtual
async def test_all_answers_each_queue_at_once():
    assert await queued_during_the_first_answer("all") == [["p"], ["s1", "s2"], ["f1", "f2"]]


@virtual
async def test_steering_queued_before_a_run_joins_its_first_request():
    model = ScriptedModel(lambda request: "ok")
    w = Watched(Agent(model))
    w.agent.steer("s1")
    w.agent.steer("s2")
    await w.agent.prompt("p")
    w.check()
    assert requests_of(model) == [["p", "s1"], ["s2"]]


@virtual
async def test_steering_comes_after_the_tool_results_of_its_turn():
    @tool
    async def slow() -> str:
        await asyncio.sleep(5)
        return "slow result"

    model = ScriptedModel([ToolCall("c", "slow"), "ok"])
    w = Watched(Agent(model, tools=[slow]))
    run = w.agent.prompt("p")
    await asyncio.sleep(1)
    w.agent.steer("s")
    await run
    w.check()
    assert [role for role, _ in w.transcript] == ["user", "assistant", "tool", "user", "assistant"]


@virtual
async def test_an_interrupting_steer_cancels_the_tools_and_is_answered_next():
    @tool
    async def slow() -> str:
        await asyncio.sleep(500)
        return "never"

    @tool
    async def quick() -> str:
        return "quick result"

    model = ScriptedModel([[ToolCall("a", "slow"), ToolCall("b", "quick"), ToolCall("c", "slow")], "ok"])
    w = Watched(Agent(model, tools=[slow, quick]))
    loop = asyncio.get_running_loop()
    run = w.agent.prompt("p")
    await asyncio.sleep(1)
    w.agent.steer("stop that", interrupt=True)
    result = await run
    w.check()
    assert loop.time() == pytest.approx(1)
    assert result.outcome == "completed"
    assert [(e.call_id, e.is_error) for e in w.of(ToolEnd)] == [("b", False), ("a", True), ("c", True)]
    assert w.transcript[-2:] == [("user", "stop that"), ("assistant", "ok")]


@virtual
async def test_an_interrupting_steer_also_skips_what_has_not_begun():
    @tool(sequential=True)
    async def slow() -> str:
        await asyncio.sleep(500)
        return "never"

    w = Watched(Agent(ScriptedModel([[ToolCall("a", "slow"), ToolCall("b", "slow")], "ok"]), tools=[slow]))
    run = w.agent.prompt("p")
    await asyncio.sleep(1)
    w.agent.steer("stop that", interrupt=True)
    await run
    w.check()
    assert [(e.call_id, e.is_error) for e in w.of(ToolEnd)] == [("a", True), ("b", True)]
    assert asyncio.get_running_loop().time() < 5


@virtual
async def test_a_message_leaves_its_queue_only_when_it_is_in_the_transcript():
    w = Watched(Agent(ScriptedModel(lambda request: "ok")))
    w.agent.follow_up("f")
    waiting = []
    w.agent.events.subscribe(lambda e: waiting.append((e.type, len(w.agent.state.follow_ups), len(w.agent.state.messages))))
    await w.agent.prompt("p")
    w.check()
    ends = [i for i, e in enumerate(w.log) if isinstance(e, MessageEnd) and e.message.role == "user" and e.message.text == "f"]
    changed = [e for e in w.of(QueueChanged) if not e.follow_ups]
    assert changed[0].seq == w.log[ends[0]].seq + 1
    assert all(queue or messages > 2 for _, queue, messages in waiting)


@pytest.mark.parametrize("outcome", ["failed", "aborted", "stopped", "limit"])
def test_nothing_queued_is_lost_by_a_run_that_ends_early(outcome):
    @virtual
    async def main():
        broken = ModelError("server", "down") if outcome == "failed" else "a b c"
        after = {"after_turn": lambda turn: hooks.Stop()} if outcome == "stopped" else {}
        limits = Limits(max_turns=1) if outcome == "limit" else Limits()
        model = ScriptedModel([broken, "ok", "ok", "ok"], delay=1)
        w = Watched(Agent(model, retry=Retry(attempts=1), hooks=Hooks(**after), limits=limits))
        run = w.agent.prompt("p")
        await asyncio.sleep(0.5)
        w.agent.steer("s")
        w.agent.follow_up("f")
        if outcome == "aborted":
            w.agent.abort()
        result = await run
        w.check()
        assert result.outcome == {"stopped": "completed"}.get(outcome, outcome)
        assert [m.text for m in (*w.agent.state.steering, *w.agent.state.follow_ups)] == ["s", "f"]
        w.agent.hooks, w.agent.limits = Hooks(), Limits()
        await w.agent.continue_()
        w.check()
        assert [m.text for m in w.agent.state.messages if m.role == "user"] == ["p", "s", "f"]

    main()


@virtual
async def test_what_is_queued_during_the_last_turn_end_is_still_picked_up():
    model = ScriptedModel(lambda request: "ok")
    w = Watched(Agent(model))
    w.agent.events.subscribe(lambda e: w.agent.steer("last moment") if e.type == "turn_end" and len(w.log) < 12 else None)
    await w.agent.prompt("p")
    w.check()
    assert requests_of(model) == [["p"], ["last moment"]]


@virtual
async def test_a_listener_and_a_tool_may_steer_the_run_they_watch():
    @tool
    async def asks(ctx: ToolContext) -> str:
        w.agent.follow_up("from the tool")
        return "ok"

    model = ScriptedModel([ToolCall("c", "asks"), "one", "two", "three"])
    w = Watched(Agent(model, tools=[asks]))

    async def listener(event):
        if event.type == "tool_end":
            w.agent.steer("from the listener")

    w.agent.subscribe(listener)
    await w.agent.prompt("p")
    w.check()
    assert [text for role, text in w.transcript if role == "user"] == ["p", "from the listener", "from the tool"]


@virtual
async def test_clear_queues_returns_what_it_removed():
    w = Watched(Agent(ScriptedModel(["ok"])))
    w.agent.follow_up(["f1", UserMessage("f2")])
    w.agent.steer("s1")
    assert [m.text for m in w.agent.clear_queues()] == ["s1", "f1", "f2"]
    assert w.agent.clear_queues() == ()
    assert (w.agent.state.steering, w.agent.state.follow_ups) == ((), ())
    await w.agent.prompt("p")
    w.check()
    assert len(w.transcript) == 2


def test_messages_from_many_threads_all_arrive():
    async def main():
        model = ScriptedModel(lambda request: "ok", delay=0.001)
        w = Watched(Agent(model))
        w.agent.steering_mode = w.agent.follow_up_mode = "all"
        run = w.agent.prompt("p")

        def many(name):
            for i in range(15):
                w.agent.steer(f"{name}{i}")
                w.agent.follow_up(f"{name}{i}f")

        threads = [threading.Thread(target=many, args=(name,)) for name in "abcd"]
        for thread in threads:
            thread.start()
        await run
        for thread in threads:
            await asyncio.to_thread(thread.join)
        while w.agent.state.steering or w.agent.state.follow_ups:
            await w.agent.continue_()
        w.check()
        texts = [text for role, text in w.transcript if role == "user"]
        assert len(texts) == len(set(texts)) == 121

    asyncio.run(main())
