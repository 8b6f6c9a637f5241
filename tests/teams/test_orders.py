"""Agents in fixed orders: one after the other, at once, again and again."""

import asyncio
import gc
import resource

import pytest
from agent_harness import Watched, at, leftovers, virtual

from rxagent import Agent, BreakLoop, Exit, Limits, Runner, ToolContext, as_tool, loop, parallel, sequential, tool
from rxagent.errors import InvalidTool, UsageError
from rxagent.events import (
    AgentEnd,
    AgentStart,
    ModelError,
    ResponseEnd,
    ResponseStart,
    TextDelta,
    ToolCallEnd,
    ToolCallStart,
    ToolEnd,
    ToolStart,
)
from rxagent.messages import ToolCall, UserMessage
from rxagent.models import ScriptedModel
from rxagent.stores import MemoryStore


def echo(name, **options):
    return Agent(ScriptedModel(lambda r: f"{name}({'|'.join(m.text for m in r.messages)})"), name=name, **options)


def broken(name="broken"):
    return Agent(ScriptedModel([ModelError("server", "it is down")] * 9), name=name)


def calls(name, tool_name, tools, then="went on", **arguments):
    """An agent that makes one call, and says ``then`` if it gets to."""

    def answer(request):
        return ToolCall("", tool_name, dict(arguments)) if request.messages[-1].role != "tool" else then

    return Agent(ScriptedModel(answer), name=name, tools=tools)


@tool
def leave(text: str = "") -> object:
    return Exit(text)


@tool
def stop(text: str = "") -> object:
    return BreakLoop(text)


async def played(team, prompt="go"):
    w = Watched(team)
    result = await w.agent.prompt(prompt)
    w.check()
    return w, result


# -- sequential


@virtual
async def test_members_run_in_order_each_with_the_prompt_and_the_answer_before():
    w, result = await played(sequential(echo("a"), echo("b"), echo("c")))
    assert result.outcome == "completed"
    assert result.text == "c(go|b(go|a(go)))"
    starts = [e.origin.path for e in w.of(AgentStart)]
    assert starts == [("sequential",), ("sequential", "a"), ("sequential", "b"), ("sequential", "c")]
    assert [(e.tool_name, e.args["step"]) for e in w.of(ToolStart)] == [("a", 0), ("b", 1), ("c", 2)]


@virtual
async def test_a_member_that_fails_ends_the_sequence_as_failed():
    later = echo("later")
    w, result = await played(sequential(echo("a"), broken(), later))
    assert result.outcome == "failed"
    assert "broken ended as failed: it is down" in result.error.message
    assert "later" not in {e.origin.agent for e in w.of(AgentStart)}


@virtual
async def test_a_failed_sequence_is_retried_from_the_step_that_failed():
    ran = []
    up = iter([False, True])

    def a(request):
        ran.append("a")
        return "from a"

    def flaky(request):
        ran.append("b")
        return "from b" if next(up) else ModelError("server", "down")

    team = sequential(Agent(ScriptedModel(a), name="a"), Agent(ScriptedModel(flaky), name="b"))
    w = Watched(team)
    assert (await w.agent.prompt("go")).outcome == "failed"
    result = await w.agent.retry()
    w.check()
    assert (result.outcome, result.text) == ("completed", "from b")
    assert ran == ["a", "b", "b"]


@virtual
async def test_a_team_is_prompted_again_with_a_fresh_round():
    w = Watched(sequential(echo("a"), echo("b")))
    await w.agent.prompt("one")
    assert (await w.agent.prompt("two")).text == "b(two|a(two))"
    w.check()


@virtual
async def test_images_and_several_messages_reach_the_members():
    seen = []

    def look(request):
        seen.append(request.messages)
        return "seen"

    await played(sequential(Agent(ScriptedModel(look), name="eye")), [UserMessage(["look", "here"]), "and there"])
    assert [m.text for m in seen[0]] == ["lookhere", "and there"]


@virtual
async def test_a_steering_message_reaches_the_step_that_begins_next():
    @tool
    async def wait() -> str:
        await asyncio.sleep(5)
        return "waited"

    w = Watched(sequential(calls("a", "wait", [wait], then="a is done"), echo("b"), echo("c")))
    run = w.agent.prompt("go")
    await at(2, lambda: w.agent.steer("hurry"))
    assert (await run).text == "c(go|b(go|a is done|hurry))"
    w.check()


# -- parallel


@virtual
async def test_members_run_at_once_with_transcripts_of_their_own():
    @tool
    async def wait(seconds: float) -> str:
        await asyncio.sleep(seconds)
        return "waited"

    team = parallel(*[calls(f"m{n}", "wait", [wait], then=f"m{n} is done", seconds=10.0) for n in range(5)], echo("quick"))
    _, result = await played(team)
    assert asyncio.get_running_loop().time() == pytest.approx(10.0)
    assert result.text == "\n\n".join([*(f"m{n} is done" for n in range(5)), "quick(go)"])


@virtual
async def test_one_failure_stops_nobody_else():
    w, result = await played(parallel(broken("x"), echo("a"), broken("y"), echo("b")))
    assert result.outcome == "completed"
    assert result.text == "a(go)\n\nb(go)"
    assert [e.is_error for e in sorted(w.of(ToolEnd), key=lambda e: e.tool_name)] == [False, False, True, True]
    _, result = await played(parallel(broken("x"), broken("y")))
    assert result.outcome == "failed"
    assert "x ended as failed" in result.error.message
    assert "y ended as failed" in result.error.message


@virtual
async def test_the_answers_are_combined_as_told():
    team = parallel(
        echo("a"),
        broken("b"),
        combine=lambda rs: ", ".join(f"{r.agent}={r.text if r.outcome == 'completed' else '-'}" for r in rs),
    )
    assert (await played(team))[1].text == "a=a(go), b=-"


@virtual
async def test_how_many_run_at_once_can_be_bounded():
    running, most = [0], [0]

    @tool
    async def wait() -> str:
        running[0] += 1
        most[0] = max(most[0], running[0])
        await asyncio.sleep(1)
        running[0] -= 1
        return "ok"

    team = parallel(*[calls(f"m{n}", "wait", [wait]) for n in range(10)])
    team.limits = Limits(max_turns=None, max_parallel_tools=3)
    await played(team)
    assert most == [3]


@virtual
async def test_members_of_one_name_are_different_agents():
    one = Agent(ScriptedModel(lambda r: "one"), name="same")
    two = Agent(ScriptedModel(lambda r: "two"), name="same")
    w, result = await played(parallel(one, two, one))
    assert result.text == "one\n\ntwo\n\none"
    assert [e.tool_name for e in w.of(ToolStart)] == ["same", "same_2", "same"]


# -- loop


@virtual
async def test_a_loop_ends_when_it_is_told_that_it_is_enough():
    seen = []

    def enough(result):
        seen.append(result.text)
        return len(result.text) > 20

    async def later(result):
        await asyncio.sleep(1)
        return len(result.text) > 20

    _, result = await played(loop(echo("a"), until=enough))
    assert result.text == seen[-1] == "a(go|a(go|a(go|a(go))))"
    assert seen[0] == "a(go)"
    assert (await played(loop(echo("a"), until=later)))[1].text == result.text


@virtual
async def test_a_loop_ends_after_its_iterations():
    w, result = await played(loop(echo("a"), max_iterations=3))
    assert result.text == "a(go|a(go|a(go)))"
    assert [e.args["step"] for e in w.of(ToolStart)] == [0, 1, 2]


@virtual
async def test_an_iteration_that_fails_ends_the_loop_as_failed_and_so_does_a_raising_until():
    assert (await played(loop(broken(), max_iterations=3)))[1].outcome == "failed"
    _, result = await played(loop(echo("a"), until=lambda r: 1 / 0))
    assert result.outcome == "failed"
    assert "ZeroDivisionError" in result.error.message


@virtual
async def test_a_loop_of_many_turns_keeps_no_bound_of_fifty():
    _, result = await played(loop(Agent(ScriptedModel(lambda r: "x"), name="a"), max_iterations=60))
    assert result.outcome == "completed"


def test_orders_refuse_what_they_can_not_run():
    for make in (sequential, parallel):
        with pytest.raises(UsageError, match="at least one agent"):
            make()
    with pytest.raises(UsageError, match="at least 1"):
        loop(echo("a"), max_iterations=0)
    with pytest.raises(InvalidTool, match="is an Agent or a team"):
        sequential(echo("a"), "b")


# -- stopping early


@virtual
async def test_exit_ends_its_agent_whatever_the_other_calls_say_and_the_teams_around_it():
    both = Agent(
        ScriptedModel([[ToolCall("", "leave", {"text": "I left"}), ToolCall("", "plain")], "went on"]),
        name="leaver",
        tools=[leave, plain],
    )
    w, result = await played(sequential(sequential(echo("a"), both, echo("never"), name="inner"), echo("never2")))
    assert (result.outcome, result.text) == ("completed", "I left")
    assert {e.origin.agent for e in w.of(AgentStart)} == {"sequential", "inner", "a", "leaver"}


@tool
def plain() -> str:
    return "plain"


@virtual
async def test_exit_of_an_agent_alone_ends_its_run():
    w, result = await played(calls("a", "leave", [leave]))
    assert result.outcome == "completed"
    assert len(w.of(ToolEnd)) == 1
    assert "went on" not in result.text


@virtual
async def test_without_a_text_of_its_own_an_exit_keeps_the_last_answer():
    speaker = Agent(ScriptedModel([["last words", ToolCall("", "leave")]]), name="speaker", tools=[leave])
    assert (await played(sequential(speaker, echo("never"))))[1].text == "last words"


@virtual
async def test_break_loop_ends_the_nearest_loop_and_no_more():
    inner = loop(sequential(calls("a", "stop", [stop], text="broke"), echo("never"), name="body"), max_iterations=9, name="inner")
    w, result = await played(loop(sequential(inner, echo("after"), name="outer_body"), max_iterations=2, name="outer"))
    assert result.outcome == "completed"
    assert [e.origin.agent for e in w.of(AgentStart)].count("inner") == 2
    assert "never" not in {e.origin.agent for e in w.of(AgentStart)}
    assert result.text.startswith("after(")


@virtual
async def test_exit_ends_a_loop_and_what_is_around_it():
    w, result = await played(sequential(loop(calls("a", "leave", [leave], text="out"), max_iterations=9), echo("never")))
    assert result.text == "out"
    assert "never" not in {e.origin.agent for e in w.of(AgentStart)}


@pytest.mark.parametrize("result", [leave, stop])
def test_nothing_is_ended_beyond_an_agent_that_runs_as_a_tool(result):
    @virtual
    async def main():
        team = sequential(calls("a", result.__name__, [result], text="out"), echo("never"), name="team")
        root = calls("root", "team", [as_tool(team)], then="root went on", input="x")
        w, end = await played(loop(root, max_iterations=2))
        assert end.text == "root went on"
        assert [e.origin.agent for e in w.of(AgentStart)].count("root") == 2

    main()


@virtual
async def test_an_exit_in_one_of_several_at_once_lets_the_others_finish():
    @tool
    async def wait() -> str:
        await asyncio.sleep(5)
        return "waited"

    members = parallel(calls("a", "leave", [leave], text="out"), calls("b", "wait", [wait], then="b is done"))
    w, result = await played(sequential(members, echo("never")))
    assert result.text == "out\n\nb is done"
    assert "never" not in {e.origin.agent for e in w.of(AgentStart)}


# -- faults, and what must be shown


@virtual
async def test_an_aborted_team_closes_all_its_members_and_goes_on_when_retried():
    @tool
    async def wait() -> str:
        await asyncio.sleep(1000)
        return "waited"

    w = Watched(parallel(calls("a", "wait", [wait]), sequential(echo("b"), calls("c", "wait", [wait]), name="inner")))
    run = w.agent.prompt("go")
    await at(5, lambda: run.abort("enough"))
    assert (await run).outcome == "aborted"
    w.check()
    assert {e.outcome for e in w.of(AgentEnd) if e.origin.agent != "b"} == {"aborted"}
    again = w.agent.prompt("again")
    await at(5, again.abort)
    await again
    w.check()


@virtual
async def test_a_team_in_a_runner_is_stored_and_goes_on():
    runner = Runner(sequential(echo("a"), echo("b")), MemoryStore())
    assert (await runner.query("one", "s")).text == "b(one|a(one))"
    assert (await runner.query("two", "s")).text == "b(two|a(two))"


def test_ten_thousand_iterations_run_without_recursion_and_memory_grows_linearly():
    @virtual
    async def main():
        agent = Agent(ScriptedModel(lambda r: "x"), name="a")
        result = await loop(agent, max_iterations=10_000).prompt("go")
        assert result.outcome == "completed"
        assert len(result.messages) == 20_002

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    main()
    gc.collect()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300 * 1024


@virtual
async def test_a_thousand_children_at_once():
    agents = [echo(f"a{n}") for n in range(1000)]
    result = await parallel(*agents).prompt("go")
    assert result.outcome == "completed"
    assert result.text.count("(go)") == 1000
    assert await leftovers() == []


@virtual
async def test_a_thousand_steps():
    result = await sequential(*[Agent(ScriptedModel(lambda r: "x"), name=f"a{n}") for n in range(1000)]).prompt("go")
    assert result.outcome == "completed"


@virtual
async def test_a_members_context_is_its_own():
    seen = []

    @tool
    def where(ctx: ToolContext) -> str:
        seen.append((ctx.agent, ctx.path, ctx.deps))
        return "here"

    member = calls("m", "where", [where])
    member.deps = "theirs"
    await played(parallel(member, name="team"))
    assert seen == [("m", ("team", "m"), "theirs")]


@virtual
async def test_what_is_no_text_fails_the_team_and_leaves_the_grammar_intact():
    w = Watched(parallel(echo("a"), echo("b"), combine=lambda results: 5))
    result = await w.agent.prompt("go")
    w.check()
    assert result.outcome == "failed"
    assert "combine gives the team's answer as text, not 5" in result.error.message


@virtual
async def test_members_that_answer_at_the_same_time_never_share_a_call_id():
    @tool
    async def note(text: str) -> str:
        return text

    class Slowly:
        """Sends the same call id as every other one, and takes its time between the parts of a call."""

        provider, name = "test", "slowly"

        async def stream(self, request):
            yield ResponseStart("slowly")
            if request.messages[-1].role == "tool":
                yield TextDelta(request.messages[-1].text, 0)
                yield ResponseEnd("stop")
                return
            yield ToolCallStart("call_0", "note", 0)
            await asyncio.sleep(1)
            yield ToolCallEnd(0, {"text": request.system_prompt})
            yield ResponseEnd("tool_use")

    members = [Agent(Slowly(), name=name, system_prompt=name, tools=[note]) for name in "abc"]
    w = Watched(parallel(*members))
    result = await w.agent.prompt("go")
    w.check()
    assert result.text == "a\n\nb\n\nc"
    calls = [e.call_id for e in w.of(ToolStart) if e.tool_name == "note"]
    assert len(set(calls)) == 3
    assert "call_0" in calls  # the first keeps what the provider sent


@virtual
async def test_an_id_of_a_withdrawn_attempt_is_free_again():
    @tool
    async def note() -> str:
        return "noted"

    model = ScriptedModel(
        [
            [ResponseStart("m"), ToolCallStart("call_0", "note", 0), ModelError("server", "down", retryable=True)],
            [ResponseStart("m"), ToolCallStart("call_0", "note", 0), ToolCallEnd(0, {}), ResponseEnd("tool_use")],
            [ResponseStart("m"), ToolCallStart("call_0", "note", 0), ToolCallEnd(0, {}), ResponseEnd("tool_use")],
            "done",
        ]
    )
    w = Watched(Agent(model, tools=[note]))
    result = await w.agent.prompt("go")
    w.check()
    assert result.text == "done"
    first, second = (e.call_id for e in w.of(ToolStart))
    assert first == "call_0" != second
