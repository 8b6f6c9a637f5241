"""Agents as tools of agents."""

import asyncio

import pytest
from agent_harness import Watched, at, virtual

from rxagent import Agent, Limits, ToolContext, as_tool, sequential, tool
from rxagent.errors import DuplicateTool, InvalidTool
from rxagent.events import AgentEnd, AgentStart, ModelError, ToolEnd, ToolStart
from rxagent.hooks import Hooks
from rxagent.messages import ToolCall, Usage, UserMessage
from rxagent.models import ScriptedModel
from rxagent.operators import by_agent, text_deltas


def caller(child, *inputs, name="root", **options):
    """An agent that calls a child with these inputs in one turn, then says what came of it."""

    def answer(request):
        if request.messages[-1].role == "user":
            return [ToolCall("", child.declaration.name, {"input": text}) for text in inputs]
        return "; ".join(m.text for m in request.messages if m.role == "tool")

    return Agent(ScriptedModel(answer), name=name, tools=[child], **options)


def echo(name="child", **options):
    return Agent(ScriptedModel(lambda r: f"{name} of {' | '.join(m.text for m in r.messages)}"), name=name, **options)


@virtual
async def test_a_child_answers_with_its_last_non_empty_answer():
    turns = [["thinking aloud", ToolCall("", "note")], "the answer", ""]

    @tool
    def note() -> str:
        return "noted"

    child = Agent(ScriptedModel(turns), name="child", tools=[note])
    child.follow_up("and now?")  # its own queue is no business of a run as a tool
    w = Watched(caller(as_tool(child), "do it"))
    result = await w.agent.prompt("go")
    w.check()
    assert result.text == "the answer"
    assert len(child.state.messages) == 0
    assert not child.is_running


@virtual
async def test_events_of_a_child_stand_within_its_call_with_its_path_and_its_transcript_stays_its_own():
    w = Watched(caller(as_tool(echo()), "one", "two"))
    seen = []
    w.agent.events.pipe(by_agent(("root", "child")), text_deltas()).subscribe(seen.append)
    result = await w.agent.prompt("go")
    w.check()
    assert result.text == "child of one; child of two"
    assert sorted(m.text for m in w.agent.state.messages if m.role == "tool") == ["child of one", "child of two"]
    below = [e for e in w.log if e.origin.path == ("root", "child")]
    calls = [e.call_id for e in w.log if isinstance(e, ToolStart)]
    assert {e.origin.call_id for e in below} == set(calls)
    for call in calls:
        own = [e for e in w.log if e.origin.call_id == call]
        assert isinstance(own[0], AgentStart)
        assert isinstance(own[-1], AgentEnd)
        start = next(e.seq for e in w.log if isinstance(e, ToolStart) and e.call_id == call)
        end = next(e.seq for e in w.log if isinstance(e, ToolEnd) and e.call_id == call)
        assert start < own[0].seq
        assert own[-1].seq < end
    assert len(w.agent.state.messages) == 5  # prompt, calls, two results, answer


@virtual
async def test_each_call_is_a_new_conversation_that_begins_with_the_childs_own_messages():
    child = echo(messages=[UserMessage("seed")])
    w = Watched(caller(as_tool(child), "one", "two"))
    assert (await w.agent.prompt("go")).text == "child of seed | one; child of seed | two"
    assert (await w.agent.prompt("again")).text.endswith("child of seed | one; child of seed | two")
    w.check()


@virtual
async def test_a_child_that_fails_is_an_error_result():
    child = Agent(ScriptedModel([["partly", ModelError("server", "it is down")]] * 9), name="child")
    w = Watched(caller(as_tool(child), "x"))
    result = await w.agent.prompt("go")
    w.check()
    assert result.outcome == "completed"
    end = w.of(ToolEnd)[0]
    assert end.is_error
    assert "child ended as failed: it is down" in end.result.text
    assert end.result.details == {"agent": "child", "outcome": "failed"}


@virtual
async def test_a_childs_own_limits_and_hooks_hold():
    @tool
    def again() -> str:
        return "again"

    seen = []
    child = Agent(
        ScriptedModel(lambda r: ToolCall("", "again")),
        name="child",
        tools=[again],
        limits=Limits(max_turns=3),
        hooks=Hooks(before_tool=lambda call: seen.append(call.context.path)),
    )
    w = Watched(caller(as_tool(child), "x"))
    await w.agent.prompt("go")
    w.check()
    assert "max_turns: 3 turns" in w.of(ToolEnd)[-1].result.text
    assert seen == [("root", "child")] * 3


@virtual
async def test_usage_of_children_counts_for_everybody_above():
    leaf = Agent(ScriptedModel(lambda r: "x", usage=Usage(input=10, output=1)), name="leaf")
    middle = caller(as_tool(leaf), "x", name="middle")
    w = Watched(caller(as_tool(middle), "a", "b"))
    result = await w.agent.prompt("go")
    w.check()
    assert result.usage.input == 20
    assert w.agent.state.usage.input == 20
    ends = {e.origin.agent: e.usage.input for e in w.of(AgentEnd)}
    assert ends == {"leaf": 10, "middle": 10, "root": 20}


@virtual
async def test_max_usage_bounds_what_children_use():
    leaf = Agent(ScriptedModel(lambda r: "x", usage=Usage(input=10)), name="leaf")
    root = caller(as_tool(leaf), "x", limits=Limits(max_usage=Usage(input=5)))
    result = await root.prompt("go")
    assert result.outcome == "limit"


@virtual
async def test_an_abort_reaches_the_deepest_and_all_close_in_order():
    @tool
    async def wait() -> str:
        await asyncio.sleep(1000)
        return "late"

    agent = Agent(ScriptedModel(lambda r: ToolCall("", "wait")), name="leaf", tools=[wait])
    for n in range(3):
        agent = caller(as_tool(agent), "x", name=f"level{n}")
    w = Watched(agent)
    run = w.agent.prompt("go")
    await at(5, lambda: run.abort("enough"))
    result = await run
    w.check()
    assert result.outcome == "aborted"
    assert [e.origin.agent for e in w.of(AgentEnd)] == ["leaf", "level0", "level1", "level2"]
    assert {e.outcome for e in w.of(AgentEnd)} == {"aborted"}


@virtual
async def test_a_tool_timeout_ends_the_child_and_not_the_run():
    @tool
    async def wait() -> str:
        await asyncio.sleep(1000)
        return "late"

    leaf = Agent(ScriptedModel(lambda r: ToolCall("", "wait")), name="leaf", tools=[wait])
    w = Watched(caller(as_tool(leaf), "x", limits=Limits(tool_timeout=3.0)))
    result = await w.agent.prompt("go")
    w.check()
    assert result.outcome == "completed"
    assert "took more than 3 s" in result.text
    assert asyncio.get_running_loop().time() < 10


@virtual
async def test_an_interrupting_steer_ends_the_child_and_is_answered_next():
    @tool
    async def wait() -> str:
        await asyncio.sleep(1000)
        return "late"

    leaf = Agent(ScriptedModel(lambda r: ToolCall("", "wait")), name="leaf", tools=[wait])
    seen = []

    def answer(request):
        seen.append(request.messages[-1].text)
        return ToolCall("", "leaf", {"input": "x"}) if len(seen) == 1 else "as you say"

    w = Watched(Agent(ScriptedModel(answer), tools=[as_tool(leaf)]))
    run = w.agent.prompt("go")
    await at(3, lambda: w.agent.steer("stop that", interrupt=True))
    assert (await run).text == "as you say"
    w.check()
    assert seen[-1] == "stop that"


@virtual
async def test_a_child_does_not_hear_what_its_parent_is_told():
    heard = []

    @tool
    async def wait(ctx: ToolContext) -> str:
        await asyncio.sleep(5)
        return "waited"

    def leaf_answer(request):
        heard.append([m.text for m in request.messages])
        return ToolCall("", "wait") if len(request.messages) == 1 else "done"

    leaf = Agent(ScriptedModel(leaf_answer), name="leaf", tools=[wait])
    w = Watched(caller(as_tool(leaf), "task"))
    run = w.agent.prompt("go")
    await at(2, lambda: w.agent.steer("psst"))
    await run
    w.check()
    assert heard[:2] == [["task"], ["task", "", "waited"]]
    assert not any("psst" in texts for texts in heard)
    assert "psst" in [m.text for m in w.agent.state.messages]


@virtual
async def test_the_same_agent_may_stand_anywhere_at_once():
    child = echo()
    team = sequential(child, child)
    root = Agent(
        ScriptedModel([[ToolCall("", "child", {"input": "a"}), ToolCall("", "team", {"input": "b"})], "done"]),
        tools=[as_tool(child), as_tool(team, name="team", description="two of them")],
    )
    w = Watched(root)
    await w.agent.prompt("go")
    w.check()
    assert [m.text for m in w.agent.state.messages if m.role == "tool"] == ["child of a", "child of b | child of b"]


@virtual
async def test_wrong_arguments_of_a_child_are_told_to_the_model():
    root = Agent(
        ScriptedModel(
            [[ToolCall("", "child", {}), ToolCall("", "child", {"input": 7}), ToolCall("", "child", {"x": "y"})], "ok"]
        ),
        tools=[as_tool(echo())],
    )
    w = Watched(root)
    await w.agent.prompt("go")
    w.check()
    assert all(e.is_error and "Invalid arguments" in e.result.text for e in w.of(ToolEnd))
    listed = [e.result.text.splitlines()[1:] for e in w.of(ToolEnd)]
    assert listed == [
        ["- input: Field required"],
        ["- input: Input should be a valid string (got 7)"],
        ["- input: Field required", "- x: Extra inputs are not permitted (got 'y')"],
    ]
    assert len(w.of(AgentStart)) == 1


def test_a_model_is_told_what_to_send():
    assert as_tool(echo()).declaration.parameters == {
        "type": "object",
        "properties": {"input": {"type": "string", "description": "The task, with all that is needed to do it."}},
        "required": ["input"],
        "additionalProperties": False,
    }


def test_names_are_made_fit_for_models_and_clashes_are_refused():
    assert as_tool(echo("a b/ü")).declaration.name == "a_b__"
    assert as_tool(echo(), name="ask", description="Knows all.").declaration.description == "Knows all."
    with pytest.raises(DuplicateTool):
        Agent(ScriptedModel([]), tools=[as_tool(echo()), as_tool(echo())])
    with pytest.raises(InvalidTool, match="takes an Agent"):
        as_tool("child")
    with pytest.raises(InvalidTool):
        as_tool(echo(), name="not a name")


@virtual
async def test_fifty_levels():
    agent = echo("leaf")
    for n in range(50):
        agent = caller(as_tool(agent), "down", name=f"level{n}")
    w = Watched(agent)
    result = await w.agent.prompt("go")
    w.check()
    assert result.text == "leaf of down"
    assert max(len(e.origin.path) for e in w.log) == 51
