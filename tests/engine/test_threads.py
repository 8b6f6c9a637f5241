"""`steer` and `follow_up` from many threads at once, while a run goes, begins, ends, or none is there."""

import asyncio
import sys
import threading

import pytest

from rxagent import Agent, AgentState, Limits, reduce
from rxagent.models import ScriptedModel
from rxagent.operators.verify import check

THREADS, EACH = 6, 40


@pytest.fixture(autouse=True)
def _switching():
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


def watched() -> tuple[Agent, list]:
    agent = Agent(ScriptedModel(["hello world " * 20] * 1000), limits=Limits(max_turns=None))
    agent.steering_mode = agent.follow_up_mode = "all"
    log = []
    agent.events.subscribe(log.append)
    return agent, log


def writers(agent: Agent) -> list[threading.Thread]:
    def write(number: int) -> None:
        for i in range(EACH):
            (agent.steer if i % 2 else agent.follow_up)(f"{number}.{i}")

    threads = [threading.Thread(target=write, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    return threads


def in_order(agent: Agent, log: list) -> None:
    assert [event.seq for event in log] == list(range(len(log)))
    check(log)
    state = AgentState((agent.name,))
    for event in log:
        state = reduce(state, event)
    assert state == agent.state


def test_while_no_run_goes_every_event_has_its_number_and_comes_in_order():
    agent, log = watched()
    for thread in writers(agent):
        thread.join()
    in_order(agent, log)
    assert len(agent.state.steering) == len(agent.state.follow_ups) == THREADS * EACH / 2


def test_around_the_beginning_and_the_end_of_runs_nothing_is_lost_or_told_out_of_order():
    agent, log = watched()

    async def main() -> None:
        threads = writers(agent)
        await agent.prompt("go")
        while any(thread.is_alive() for thread in threads) or agent.state.steering or agent.state.follow_ups:
            await asyncio.sleep(0)
            if agent.state.steering or agent.state.follow_ups:
                await agent.continue_()

    asyncio.run(main())
    in_order(agent, log)
    said = [message.text for message in agent.state.messages if message.role == "user"]
    assert len(said) == len(set(said)) == THREADS * EACH + 1
