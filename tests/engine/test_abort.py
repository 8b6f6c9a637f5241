"""Abort at any point: partial answers kept, tools told and given their grace, grammar intact, nothing left running."""

import asyncio
import threading
import time
from contextlib import redirect_stderr
from io import StringIO

import pytest
from agent_harness import Watched, virtual

from rxagent import Agent, Hooks, Limits, Retry, ToolContext, errors, tool
from rxagent.events import MessageEnd, ModelError, ToolEnd, ToolUpdate
from rxagent.flow import print_fault
from rxagent.messages import AssistantMessage, ToolCall
from rxagent.models import ScriptedModel


def calls(*names: str):
    return [ToolCall(f"c{i}", name, {}) for i, name in enumerate(names)]


@virtual
async def test_an_abort_while_text_streams_keeps_the_partial_answer_marked():
    w = Watched(Agent(ScriptedModel(["one two three four"], delay=1)))
    run = w.agent.prompt("x")
    await asyncio.sleep(3.5)
    w.agent.abort("enough")
    result = await run
    w.check()
    last = w.agent.state.messages[-1]
    assert isinstance(last, AssistantMessage)
    assert (result.outcome, last.stop_reason, last.error_message) == ("aborted", "aborted", "enough")
    assert "one two three four".startswith(last.text)
    assert last.text
    assert (w.agent.state.is_streaming, w.agent.state.streaming_message, w.agent.signal) == (False, None, None)


@virtual
async def test_an_abort_before_the_first_event_leaves_an_empty_marked_answer():
    w = Watched(Agent(ScriptedModel(["never"], delay=100)))
    run = w.agent.prompt("x")
    await asyncio.sleep(1)
    w.agent.abort()
    await run
    w.check()
    assert w.transcript == [("user", "x"), ("assistant", "")]


@virtual
async def test_an_abort_right_after_the_prompt_makes_no_request_and_keeps_the_prompt():
    model = ScriptedModel(["never"])
    w = Watched(Agent(model))
    run = w.agent.prompt("x")
    w.agent.abort()
    result = await run
    w.check()
    assert model.requests == []
    assert (result.outcome, w.transcript) == ("aborted", [("user", "x")])
    assert (await w.agent.retry()).outcome == "completed"
    w.check()


@virtual
async def test_an_abort_by_an_observer_from_within_an_event_stops_at_once():
    model = ScriptedModel(["one two three", "never"])
    w = Watched(Agent(model))
    w.agent.events.subscribe(lambda e: w.agent.abort("seen enough") if e.type == "message_update" else None)
    result = await w.agent.prompt("x")
    w.check()
    assert result.outcome == "aborted"
    assert len(w.log) < 16


@virtual
async def test_an_abort_by_a_coroutine_listener_that_is_being_waited_for_ends_the_run():
    w = Watched(Agent(ScriptedModel(["one two three"], delay=0.1)))

    async def listener(event):
        if event.type == "message_update":
            w.agent.abort("from a listener")
            await asyncio.sleep(3)

    w.agent.subscribe(listener)
    assert (await w.agent.prompt("x")).outcome == "aborted"
    await w.agent.wait_for_idle()
    w.check()


@virtual
async def test_an_abort_does_not_wait_for_a_listener_but_idle_does():
    w = Watched(Agent(ScriptedModel(["one two three"])))
    handled = []

    async def slow(event):
        await asyncio.sleep(10)
        handled.append(event)

    w.agent.subscribe(slow)
    loop = asyncio.get_running_loop()
    run = w.agent.prompt("x")
    await asyncio.sleep(1)
    w.agent.abort()
    await run
    assert loop.time() < 2
    w.check()
    await w.agent.wait_for_idle()
    assert handled == w.log


@virtual
async def test_tools_get_their_signal_and_their_finished_results_are_kept():
    seen = {}

    @tool
    async def careful(ctx: ToolContext) -> str:
        await ctx.signal.wait()
        seen["reason"] = ctx.signal.reason
        await asyncio.sleep(2)
        return "half of it"

    @tool
    async def quick() -> str:
        return "done"

    @tool
    async def plain() -> str:
        await asyncio.sleep(100)
        return "never"

    model = ScriptedModel([calls("careful", "quick", "plain"), "never"])
    w = Watched(Agent(model, tools=[careful, quick, plain]))
    run = w.agent.prompt("x")
    await asyncio.sleep(1)
    w.agent.abort("stop it")
    result = await run
    w.check()
    assert result.outcome == "aborted"
    assert seen == {"reason": "stop it"}
    texts = [text for role, text in w.transcript if role == "tool"]
    assert texts[0] == "half of it"
    assert texts[1] == "done"
    assert "aborted" in texts[2]
    assert len(model.requests) == 1
    assert w.faults == []


@virtual
async def test_a_tool_that_ignores_its_signal_is_abandoned_after_the_grace_and_reported():
    @tool
    async def stubborn(ctx: ToolContext) -> str:
        while True:
            try:
                await asyncio.sleep(4)
                if ctx.signal.cancelled and asyncio.get_running_loop().time() > 17:
                    return "too late"
            except asyncio.CancelledError:
                pass

    w = Watched(Agent(ScriptedModel([calls("stubborn")]), tools=[stubborn], limits=Limits(grace=5)))
    loop = asyncio.get_running_loop()
    run = w.agent.prompt("x")
    await asyncio.sleep(10)
    w.agent.abort()
    await run
    assert loop.time() == pytest.approx(15)
    w.check()
    assert len(w.faults) == 1
    assert "stubborn" in str(w.faults[0].error)
    with redirect_stderr(StringIO()) as said:
        print_fault(w.faults[0])  # what is seen where nobody listens to errors
    assert said.getvalue().startswith("rxagent: tool 'stubborn' (call ")
    assert run.run_id in said.getvalue()
    assert "observer" not in said.getvalue()
    seen = len(w.log)
    await asyncio.sleep(20)
    assert len(w.log) == seen


@virtual
async def test_tools_that_were_not_started_get_error_results_too():
    @tool(sequential=True)
    async def slow() -> str:
        await asyncio.sleep(100)
        return "never"

    w = Watched(Agent(ScriptedModel([calls("slow", "slow", "slow")]), tools=[slow]))
    run = w.agent.prompt("x")
    await asyncio.sleep(1)
    w.agent.abort()
    await run
    w.check()
    assert [e.is_error for e in w.of(ToolEnd)] == [True] * 3
    assert [role for role, _ in w.transcript] == ["user", "assistant", "tool", "tool", "tool"]


@virtual
async def test_an_abort_during_the_wait_before_a_retry_ends_the_wait():
    error = ModelError("overloaded", "busy", retryable=True, retry_after=50)
    w = Watched(Agent(ScriptedModel([error, "never"]), retry=Retry()))
    loop = asyncio.get_running_loop()
    run = w.agent.prompt("x")
    await asyncio.sleep(5)
    w.agent.abort()
    await run
    assert loop.time() < 6
    w.check()


@pytest.mark.parametrize(
    "hook", ["transform_context", "convert_to_model", "prepare_request", "before_tool", "after_tool", "after_turn", "get_api_key"]
)
def test_an_abort_ends_the_wait_for_any_hook(hook):
    @virtual
    async def main():
        @tool
        async def noop() -> str:
            return "ok"

        async def slow(*args):
            await asyncio.sleep(1000)

        w = Watched(Agent(ScriptedModel([calls("noop"), "never"]), tools=[noop], hooks=Hooks(**{hook: slow})))
        loop = asyncio.get_running_loop()
        run = w.agent.prompt("x")
        await asyncio.sleep(2)
        w.agent.abort()
        assert (await run).outcome == "aborted"
        assert loop.time() == pytest.approx(2)
        w.check()

    main()


@virtual
async def test_updates_after_the_end_of_a_call_are_dropped():
    late = []

    @tool
    async def leaky(ctx: ToolContext) -> str:
        async def later():
            await asyncio.sleep(1)
            ctx.update("too late")
            late.append(True)

        late.append(asyncio.ensure_future(later()))
        return "ok"

    @tool
    async def slow() -> str:
        await asyncio.sleep(5)
        return "ok"

    w = Watched(Agent(ScriptedModel([calls("leaky", "slow"), "done"]), tools=[leaky, slow]))
    await w.agent.prompt("x")
    w.check()
    assert late[-1] is True
    assert w.of(ToolUpdate) == []


def test_an_abort_from_another_thread_ends_a_run_and_a_thread_tool_sees_it():
    seen = threading.Event()

    @tool
    def blocking(ctx: ToolContext) -> str:
        ctx.signal.wait_blocking(30)
        seen.set()
        return "let go"

    async def main():
        w = Watched(Agent(ScriptedModel([calls("blocking"), "never"]), tools=[blocking]))
        run = w.agent.prompt("x")
        while not w.agent.state.pending_tool_calls:
            await asyncio.sleep(0.001)
        threading.Thread(target=w.agent.abort, args=("from a thread",)).start()
        result = await asyncio.wait_for(run.result(), 20)
        w.check()
        return w, result

    w, result = asyncio.run(main())
    assert result.outcome == "aborted"
    assert seen.is_set()
    assert w.of(ToolEnd)[0].result.text == "let go"


def test_a_thread_tool_that_never_returns_does_not_keep_the_program_alive():
    hang = threading.Event()

    @tool
    def stuck() -> str:
        hang.wait()
        return "never"

    async def main():
        agent = Agent(ScriptedModel([calls("stuck")]), tools=[stuck], limits=Limits(grace=0.05))
        faults = []
        agent.errors.subscribe(faults.append)
        run = agent.prompt("x")
        await asyncio.sleep(0.05)
        agent.abort()
        await run
        return faults

    began = time.monotonic()
    assert len(asyncio.run(main())) == 1
    assert time.monotonic() - began < 20
    hang.set()


def test_a_cancelled_main_task_leaves_a_complete_log():
    async def main():
        w = Watched(Agent(ScriptedModel(["a b c d"], delay=0.05)))
        w.agent.prompt("x")
        await asyncio.sleep(0.08)
        return w

    w = asyncio.run(main())  # ends the loop, and with it the run, in the middle
    w.check()
    assert w.log[-1].outcome == "aborted"


@virtual
async def test_the_answers_message_end_comes_once():
    w = Watched(Agent(ScriptedModel(["a b c"], delay=1)))
    run = w.agent.prompt("x")
    await asyncio.sleep(2.5)
    for _ in range(3):
        w.agent.abort()
        run.abort()
    await run
    assert len([e for e in w.of(MessageEnd) if e.message.role == "assistant"]) == 1


def test_the_error_of_an_aborted_result_tells_the_reason():
    async def main():
        run = Agent(ScriptedModel(["hello"])).prompt("x")
        run.abort("the user left")
        with pytest.raises(errors.RunAborted, match="the user left"):
            await run.result(raise_on_failure=True)

    asyncio.run(main())
