"""A loop that is closed with a run in it: the agent isn't stuck in that run."""

import asyncio
import threading
import warnings
from collections.abc import Callable

import pytest

from rxagent import Agent, tool
from rxagent.events import AnyEvent, ModelError
from rxagent.messages import ToolCall
from rxagent.models import ScriptedModel
from rxagent.operators.verify import check

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning")


@tool
async def wait_long() -> str:
    """Takes its time."""
    await asyncio.sleep(1000)
    return "done"


def _left(turn: object, *, steps: int, listener: Callable[[AnyEvent], object] | None = None):
    """An agent whose run was left in a closed loop, the run and the log."""
    agent = Agent(ScriptedModel([turn, "second"]), tools=[wait_long])
    log: list[AnyEvent] = []
    agent.events.subscribe(log.append)
    if listener is not None:
        agent.subscribe(listener)
    loop = asyncio.new_event_loop()

    runs = []

    def start() -> None:
        runs.append(agent.prompt("first"))
        loop.stop()

    async def some() -> None:
        for _ in range(steps):
            await asyncio.sleep(0.001)

    loop.call_soon(start)
    loop.run_forever()
    if steps:
        loop.run_until_complete(some())
    loop.close()
    return agent, runs[0], log


async def _slow(event: AnyEvent) -> None:
    if event.seq == FIRST_MESSAGE:
        await asyncio.sleep(1000)


async def _stream(_request: object):
    await asyncio.sleep(1000)
    yield ModelError("server", "never")


FIRST_MESSAGE = 3

CASES = {
    "in a tool": {"turn": ToolCall("1", "wait_long", {}), "steps": 5},
    "in the model": {"turn": _stream, "steps": 5},
    "in a retry": {"turn": ModelError("rate_limit", "later", retryable=True, retry_after=30.0), "steps": 5},
    "in a listener": {"turn": "hello", "steps": 5, "listener": _slow},
    "before it began": {"turn": "hello", "steps": 0},
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("how", ["prompt", "abort", "abort from a thread", "wait"])
def test_a_run_left_in_a_closed_loop_ends_as_aborted_and_the_agent_goes_on(case: str, how: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        agent, run, log = _left(**CASES[case])
        if how == "abort":
            agent.abort("enough")
        elif how == "abort from a thread":
            thread = threading.Thread(target=agent.abort)
            thread.start()
            thread.join()
        elif how == "wait":
            asyncio.run(asyncio.wait_for(agent.wait_for_idle(), 5))
        if how != "prompt":
            assert not agent.is_running
            assert log[-1].type == "agent_end"

        async def result():
            return await run

        assert agent.prompt_sync("again").outcome == "completed"
        assert asyncio.run(result()).outcome == "aborted"
        check(log)
        assert not agent.state.is_streaming


def test_what_a_coroutine_listener_hears_without_a_loop_waits_for_the_next_run(capsys: pytest.CaptureFixture[str]) -> None:
    agent = Agent(ScriptedModel(lambda _request: "hello"))
    log: list[AnyEvent] = []
    heard: list[AnyEvent] = []

    async def listen(event: AnyEvent) -> None:
        await asyncio.sleep(0)
        heard.append(event)

    agent.events.subscribe(log.append)
    agent.subscribe(listen, hold_timeout=5.0)
    agent.steer("before the first run")
    agent.prompt_sync("one")
    agent.system_prompt = "between two runs"
    agent.reset()
    agent.prompt_sync("two")
    assert heard == log
    agent.follow_up("after the last one")
    assert heard == log[:-1]
    asyncio.run(agent.wait_for_idle())
    assert heard == log
    assert capsys.readouterr().err == ""


def test_a_listener_whose_handler_ended_with_its_loop_hears_the_next_run() -> None:
    heard: list[str] = []

    async def listener(event: AnyEvent) -> None:
        heard.append(event.type)
        if len(heard) == 3:
            await asyncio.sleep(1000)

    agent = Agent(ScriptedModel(["first", "second"]))
    agent.subscribe(listener)

    async def leave() -> None:
        agent.prompt("one")
        while len(heard) < 3:
            await asyncio.sleep(0)

    async def stay() -> str:
        text = (await agent.prompt("two")).text
        await agent.wait_for_idle()
        return text

    asyncio.run(leave())  # ends in the middle of the run and of the handler
    begun = len(heard)
    assert asyncio.run(stay()) in ("first", "second")
    assert heard[-1] == "agent_end"
    assert heard[begun:].count("agent_start") == 1
