"""What a type checker makes of runners and teams. Checked by pyright; run, it only makes them."""

from collections.abc import Awaitable, Callable
from typing import assert_type

from reactivex import Observable

from rxagent import (
    Agent,
    AgentState,
    BreakLoop,
    Cancel,
    Exit,
    Hooks,
    Run,
    Runner,
    RunResult,
    ToolResult,
    approve,
    as_tool,
    handoff,
    loop,
    parallel,
    sequential,
)
from rxagent.events import AnyEvent
from rxagent.hooks import Approval
from rxagent.log import SessionInfo
from rxagent.messages import UserMessage
from rxagent.models import ScriptedModel
from rxagent.stores import MemoryStore
from rxagent.teams import AgentTool, HandoffTool, StepResult

agent = Agent(ScriptedModel(["hi"]))


def test_a_runner_gives_runs_and_what_they_come_to() -> None:
    runner = Runner(agent, MemoryStore(), unknown_calls="rerun")

    async def runs() -> None:
        assert_type(runner.query("x"), Run)
        assert_type(runner.run([UserMessage("x"), "y"], session="s"), Run)
        assert_type(runner.resume("s", {"id": Cancel(), "other": {"any": 1}}), Run)
        assert_type(await runner.query("x"), RunResult)
        assert_type(await runner.open("s"), Agent)
        assert_type(await runner.events("s"), list[AnyEvent])
        assert_type(await runner.state("s", 3), AgentState)
        assert_type(await runner.fork("s", 3), str)
        assert_type(await runner.sessions(), list[SessionInfo])
        assert_type(runner.replay("s", speed=2.0), Observable[AnyEvent])
        async for event in runner.query("x"):
            assert_type(event, AnyEvent)
        Runner(agent, unknown_calls="guess")  # pyright: ignore[reportArgumentType]  # no policy

    assert isinstance(runs, Callable)


def test_teams_are_agents_and_agents_are_tools() -> None:
    assert_type(sequential(agent, agent, name="s"), Agent)
    assert_type(parallel(agent, combine=lambda results: results[0].text), Agent)
    assert_type(loop(agent, until=lambda result: result.text == "x", max_iterations=3), Agent)
    assert_type(as_tool(agent, description="d"), AgentTool)
    assert_type(handoff(agent), HandoffTool)
    assert_type(Exit("x"), ToolResult)
    assert_type(BreakLoop(), ToolResult)
    Agent(ScriptedModel([]), tools=[as_tool(agent, name="a"), handoff(agent)])

    async def later(result: StepResult) -> bool:
        return result.outcome == "completed"

    until: Callable[[StepResult], Awaitable[bool]] = later
    assert_type(loop(agent, until=until), Agent)


def test_an_approval_is_hooks_and_a_hook() -> None:
    hook = approve(tools=["x"])
    assert_type(hook, Approval)
    assert_type(hook | Hooks(), Hooks)
    Agent(ScriptedModel([]), hooks=hook)
    Agent(ScriptedModel([]), hooks=Hooks(before_tool=[hook, approve(tools=lambda call: call.name == "y")]))
