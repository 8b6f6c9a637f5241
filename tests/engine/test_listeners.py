"""Watching a run: order, waiting, isolation of failures, deadlocks that are refused."""

import asyncio
import functools
import subprocess
import sys
from itertools import pairwise

import reactivex.operators as rxops
from agent_harness import Watched, virtual

from rxagent import Agent, ToolContext, errors, tool
from rxagent.messages import ToolCall
from rxagent.models import ScriptedModel


@virtual
async def test_whoever_sees_an_event_finds_the_state_updated_also_when_events_nest():
    agent = Agent(ScriptedModel(["hello", "again"]))
    orders = {"a": [], "b": []}

    def first(event):
        orders["a"].append(event.seq)
        if event.type == "turn_start" and event.turn == 0:
            agent.steer("nested")

    agent.events.subscribe(first)
    agent.events.subscribe(lambda e: orders["b"].append(e.seq))
    await agent.prompt("x")
    assert orders["a"] == orders["b"] == list(range(len(orders["a"])))


@virtual
async def test_coroutine_listeners_are_serial_within_and_concurrent_across_subscriptions():
    agent = Agent(ScriptedModel(["a b"]))
    running = {"one": 0, "two": 0}
    both = []

    def listener(name):
        async def handle(event):
            running[name] += 1
            assert running[name] == 1
            both.append(sum(running.values()))
            await asyncio.sleep(1)
            running[name] -= 1

        return handle

    agent.subscribe(listener("one"))
    agent.subscribe(listener("two"))
    seen = []
    agent.events.subscribe(lambda e: seen.append(asyncio.get_running_loop().time()))
    await agent.prompt("x")
    assert max(both) == 2
    assert [round(b - a) for a, b in pairwise(seen[1:])] == [1] * (len(seen) - 2)


@virtual
async def test_idle_comes_after_every_listeners_last_event():
    agent = Agent(ScriptedModel(["a b"]))
    handled = []

    async def slow(event):
        await asyncio.sleep(5)
        handled.append(event.type)

    agent.subscribe(slow, capacity=1000)
    run = agent.prompt("x")
    await run
    assert handled == []
    await agent.wait_for_idle()
    assert handled[-1] == "agent_end"


@virtual
async def test_listeners_get_the_signal_when_they_ask_for_it_and_can_leave():
    agent = Agent(ScriptedModel(["a", "b"]))
    got = []
    stop = agent.subscribe(lambda event, signal: got.append((event.type, signal is not None and not signal.cancelled)))
    await agent.prompt("x")
    assert got[-1] == ("agent_end", True)
    stop()
    count = len(got)
    await agent.prompt("y")
    assert len(got) == count


@virtual
async def test_a_failing_observer_operator_or_listener_is_reported_and_nobody_else_notices():
    w = Watched(Agent(ScriptedModel(["hello there"])))

    def explode(value):
        raise ValueError("observer broke")

    async def explode_later(event):
        await asyncio.sleep(1)
        raise ValueError("listener broke")

    w.agent.events.subscribe(explode)
    w.agent.events.pipe(rxops.map(explode)).subscribe(lambda value: None)
    w.agent.states.subscribe(lambda s: explode(s) if s.is_streaming else None)
    w.agent.subscribe(explode)
    w.agent.subscribe(explode_later)
    w.agent.subscribe(functools.partial(explode_later))
    w.agent.subscribe(lambda event: explode_later(event))
    run = w.agent.prompt("x")
    run.subscribe(explode)
    assert (await run).outcome == "completed"
    w.check()
    await w.agent.wait_for_idle()
    assert len(w.faults) == 8
    assert all("broke" in str(f.error) or "async def" in str(f.error) for f in w.faults)
    assert all(__file__ in f.subscribed_at for f in w.faults), [f.subscribed_at for f in w.faults]


@virtual
async def test_a_critical_listener_that_fails_ends_the_run_with_its_grammar_intact():
    for asynchronous in (False, True):
        w = Watched(Agent(ScriptedModel(["one two three four"], delay=1)))

        def fail(event):
            if event.type == "message_update":
                raise ValueError("disk full")

        async def fail_later(event):
            await asyncio.sleep(0.1)
            fail(event)

        w.agent.subscribe(fail_later if asynchronous else fail, critical=True)
        result = await w.agent.prompt("x")
        w.check()
        assert result.outcome == "failed"
        assert "disk full" in result.error.message


@virtual
async def test_a_listener_that_keeps_the_run_too_long_is_dropped_not_the_run():
    w = Watched(Agent(ScriptedModel(["hello"])))

    async def hangs(event):
        await asyncio.sleep(10_000)

    w.agent.subscribe(hangs, hold_timeout=2)
    assert (await w.agent.prompt("x")).outcome == "completed"
    w.check()
    assert len(w.faults) == 1
    assert asyncio.get_running_loop().time() < 10


@virtual
async def test_waiting_for_the_run_from_within_it_is_refused_instead_of_hanging():
    refused = []

    async def try_all(run):
        for wait in (run.result, agent.wait_for_idle, run.ended):
            try:
                await wait()
            except errors.WouldDeadlock as error:
                refused.append(str(error))

    @tool
    async def waits(ctx: ToolContext) -> str:
        await try_all(run)
        return "ok"

    async def listener(event):
        if event.type == "turn_start":
            await try_all(run)

    agent = Agent(ScriptedModel([ToolCall("c", "waits"), "done"]), tools=[waits])
    agent.subscribe(listener)
    run = agent.prompt("x")
    assert (await run).outcome == "completed"
    assert len(refused) == 9


@virtual
async def test_a_task_that_a_listener_leaves_behind_may_wait_for_the_run():
    agent = Agent(ScriptedModel(["hello"]))
    waited = []

    async def background():
        await agent.wait_for_idle()
        waited.append(True)

    async def listener(event):
        if event.type == "agent_start":
            waited.append(asyncio.create_task(background()))

    agent.subscribe(listener)
    await agent.prompt("x")
    await asyncio.sleep(1)
    assert waited[-1] is True


@virtual
async def test_a_hundred_observers_see_the_same_order_exactly_once():
    w = Watched(Agent(ScriptedModel(["a b c d e"])))
    logs = [[] for _ in range(100)]
    for log in logs:
        w.agent.events.subscribe(log.append)
    await w.agent.prompt("x")
    assert all(log == w.log for log in logs)


def test_the_default_report_cannot_be_overlooked():
    script = """
import asyncio
from rxagent import Agent
from rxagent.models import ScriptedModel
from reactivex import operators as rxops

def main():
    agent = Agent(ScriptedModel(["hello"]))
    agent.events.pipe(rxops.map(lambda event: event.nonsense)).subscribe(print)
    print(agent.prompt_sync("x").text)

main()
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "hello"
    assert "Traceback" in done.stderr
    assert "AttributeError" in done.stderr
    assert "session_start" in done.stderr
    assert "seq=0" in done.stderr
    assert "<string>:9" in done.stderr


def test_an_observer_of_states_that_raises_at_once_is_reported_and_not_its_subscriber():
    agent = Agent(ScriptedModel(["hello"]))
    faults = []
    agent.errors.subscribe(faults.append)

    def fail(state):
        raise ValueError(state.model)

    agent.states.subscribe(fail).dispose()
    assert agent.prompt_sync("x").outcome == "completed"
    assert [(type(fault.error), fault.value.messages) for fault in faults] == [(ValueError, ())]
    assert "test_listeners.py" in faults[0].subscribed_at
