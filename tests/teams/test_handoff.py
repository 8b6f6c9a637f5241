"""One agent hands the conversation to another."""

import asyncio

import pytest
from agent_harness import Watched, virtual

from rxagent import Agent, Limits, Runner, ToolContext, as_tool, handoff, tool
from rxagent.errors import InvalidTool, UsageError
from rxagent.events import ConfigChanged, Handoff, ToolEnd
from rxagent.hooks import Hooks
from rxagent.messages import ToolCall
from rxagent.models import ScriptedModel
from rxagent.operators import by_agent, check, final_text
from rxagent.stores import MemoryStore


def told(request):
    return f"{request.system_prompt}: {' | '.join(m.text for m in request.messages if m.role == 'user')}"


def pair(**options):
    billing = Agent(ScriptedModel(told), name="billing", system_prompt="I bill", **options)
    triage = Agent(
        ScriptedModel(lambda r: ["one moment", ToolCall("", "transfer_to_billing", {"reason": "money"})]),
        name="triage",
        system_prompt="I sort",
        tools=[handoff(billing)],
    )
    return triage, billing


@virtual
async def test_the_target_goes_on_in_the_same_run_with_the_transcript():
    triage, _ = pair()
    w = Watched(triage)
    final = []
    w.agent.events.pipe(final_text()).subscribe(final.append)
    run = w.agent.prompt("my bill?")
    result = await run
    w.check()
    assert result.text == "I bill: my bill?"
    assert [(e.source, e.target) for e in w.of(Handoff)] == [("triage", "billing")]
    assert [m.role for m in w.agent.state.messages] == ["user", "assistant", "tool", "assistant"]
    assert w.agent.state.system_prompt == "I bill"
    assert {e.origin.path for e in w.log} == {("triage",)}
    assert len(w.of(ConfigChanged)) == 1
    spoken = []
    run.pipe(by_agent("billing")).subscribe(lambda e: spoken.append(e.type))
    assert "message_update" in spoken
    assert "tool_start" not in spoken


@virtual
async def test_later_prompts_go_to_the_target_until_it_hands_over_itself():
    triage, billing = pair()
    billing.tools = [handoff(triage)]
    back = iter([False, False, True])
    billing.model = ScriptedModel(lambda r: ToolCall("", "transfer_to_triage") if next(back, False) else told(r))
    triage.model = ScriptedModel(
        lambda r: ToolCall("", "transfer_to_billing") if len(r.messages) == 1 else f"triage again, {r.system_prompt}"
    )
    w = Watched(triage)
    assert (await w.agent.prompt("one")).text == "I bill: one"
    assert (await w.agent.prompt("two")).text == "I bill: one | two"
    assert (await w.agent.prompt("three")).text == "triage again, I sort"
    w.check()
    assert [(e.source, e.target) for e in w.of(Handoff)] == [("triage", "billing"), ("billing", "triage")]


@virtual
async def test_tools_hooks_and_deps_are_the_targets_and_limits_the_callers():
    seen = []

    @tool
    def look(ctx: ToolContext) -> str:
        return f"{ctx.agent} {ctx.deps}"

    billing = Agent(
        ScriptedModel(lambda r: ToolCall("", "look")),
        name="billing",
        tools=[look],
        deps="theirs",
        hooks=Hooks(before_tool=lambda call: seen.append(call.context.agent)),
        limits=Limits(max_turns=100),
    )
    triage = Agent(
        ScriptedModel(lambda r: ToolCall("", "transfer_to_billing")),
        name="triage",
        tools=[handoff(billing)],
        deps="mine",
        limits=Limits(max_turns=3),
    )
    w = Watched(triage)
    result = await w.agent.prompt("go")
    w.check()
    assert result.outcome == "limit"
    assert [e.result.text for e in w.of(ToolEnd)][1:] == ["billing theirs"] * 2
    assert seen == ["billing"] * 2


@virtual
async def test_the_first_of_two_handoffs_in_one_turn_counts_and_siblings_finish():
    @tool
    async def work() -> str:
        await asyncio.sleep(1)
        return "worked"

    a = Agent(ScriptedModel(told), name="a", system_prompt="A")
    b = Agent(ScriptedModel(told), name="b", system_prompt="B")
    calls = [ToolCall("", "work"), ToolCall("", "transfer_to_b"), ToolCall("", "transfer_to_a")]
    w = Watched(Agent(ScriptedModel(lambda r: calls), name="root", tools=[work, handoff(a), handoff(b)]))
    result = await w.agent.prompt("go")
    w.check()
    assert result.text == "B: go"
    assert [(m.text, m.is_error) for m in w.agent.state.messages if m.role == "tool"] == [
        ("worked", False),
        ("b takes over the conversation.", False),
        ("the conversation was handed over to b already", True),
    ]


@virtual
async def test_a_handoff_within_a_child_stays_there():
    _, billing = pair()
    child, _ = pair()
    root = Agent(
        ScriptedModel(lambda r: ToolCall("", "triage", {"input": "bill"}) if len(r.messages) == 1 else r.messages[-1].text),
        name="root",
        tools=[as_tool(child)],
    )
    w = Watched(root)
    assert (await w.agent.prompt("go")).text == "I bill: bill"
    w.check()
    assert w.of(Handoff)[0].origin.path == ("root", "triage")
    assert (await w.agent.prompt("x")).outcome == "completed"
    assert billing.state.messages == ()


@virtual
async def test_a_session_goes_on_with_the_target_in_another_process():
    store = MemoryStore()
    await Runner(pair()[0], store).query("one", "s")
    runner = Runner(pair()[0], store)
    assert (await runner.query("two", "s")).text == "I bill: one | two"
    log = await runner.events("s")
    check(log)
    assert sum(isinstance(e, ConfigChanged) for e in log) == 1
    stranger = Runner(Agent(ScriptedModel(told), name="triage"), store)
    with pytest.raises(UsageError, match="no agent 'billing' can be reached"):
        await stranger.query("three", "s")


@virtual
async def test_the_targets_output_type_holds():
    triage, _ = pair(output=dict[str, int])
    fitting = Agent(ScriptedModel(lambda r: '{"a": 1}'), name="billing", output=dict[str, int])
    triage2 = Agent(triage.model, name="triage", tools=[handoff(fitting)])
    result = await triage.prompt("go")
    assert result.outcome == "failed"
    result = await triage2.prompt("go")
    assert result.outcome == "completed"
    assert result.output == {"a": 1}


def test_a_handoff_takes_an_agent_and_little_else():
    with pytest.raises(InvalidTool):
        handoff("billing")
    agent = Agent(ScriptedModel([]), name="a b")
    assert handoff(agent).declaration.name == "transfer_to_a_b"
    assert handoff(agent, name="pass_on", description="d").declaration.description == "d"

    @virtual
    async def main():
        root = Agent(ScriptedModel([ToolCall("", "transfer_to_a_b", {"to": "me"}), "ok"]), tools=[handoff(agent)])
        w = Watched(root)
        await w.agent.prompt("go")
        w.check()
        assert w.of(ToolEnd)[0].is_error
        assert not w.of(Handoff)

    main()


@virtual
async def test_what_the_target_asks_is_in_the_result_of_the_run():
    @tool
    async def ask(ctx: ToolContext) -> str:
        return f"{await ctx.interrupt('which bill?')}"

    def answer(request):
        asked = [m for m in request.messages if m.role == "tool" and m.tool_name == "ask"]
        return f"it is {asked[-1].text}" if asked else ToolCall("", "ask")

    def triage():
        billing = Agent(ScriptedModel(answer), name="billing", tools=[ask])
        return Agent(ScriptedModel(lambda r: ToolCall("", "transfer_to_billing")), name="triage", tools=[handoff(billing)])

    store = MemoryStore()
    result = await Runner(triage(), store).query("my bill?", "s")
    assert result.outcome == "interrupted"
    assert [i.question for i in result.interrupts] == ["which bill?"]
    result = await Runner(triage(), store).resume("s", {result.interrupts[0].id: "the last"})
    assert (result.outcome, result.text, result.interrupts) == ("completed", "it is the last", ())
    check(await store.load("s"))
