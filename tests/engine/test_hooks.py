"""Hooks: what each may do, their order, and what happens when one raises."""

import asyncio
import re
from dataclasses import dataclass, replace

import pytest
from agent_harness import Watched, virtual

from rxagent import Agent, Hooks, ToolResult, hooks, tool
from rxagent.events import ConfigChanged, Custom, ToolEnd, ToolStart
from rxagent.messages import CustomMessage, ToolCall, UserMessage
from rxagent.models import ScriptedModel


@tool
async def add(a: int, b: int) -> int:
    return a + b


CALL = ToolCall("c1", "add", {"a": 2, "b": 2})


def agent(*turns, **named) -> Watched:
    return Watched(Agent(ScriptedModel([*turns, "done"]), tools=[add], hooks=Hooks(**named)))


@virtual
async def test_transform_and_convert_change_what_a_model_sees_but_not_the_transcript():
    @dataclass(frozen=True, slots=True, kw_only=True)
    class Artifact(CustomMessage):
        role: str = "artifact"
        path: str

    async def last_two(messages):
        return list(messages)[-2:]

    def convert(messages):
        return [UserMessage(f"file {m.path}") if isinstance(m, Artifact) else m for m in messages]

    model = ScriptedModel(["ok"])
    w = Watched(
        Agent(
            model,
            messages=[UserMessage("old"), Artifact(path="a.txt")],
            hooks=Hooks(transform_context=last_two, convert_to_model=convert),
        )
    )
    await w.agent.prompt("new")
    w.check()
    assert [m.text for m in model.requests[0].messages] == ["file a.txt", "new"]
    assert [m.role for m in w.agent.state.messages] == ["user", "artifact", "user", "assistant"]


@virtual
async def test_prepare_request_swaps_model_tools_level_and_prompt_from_then_on():
    other = ScriptedModel(["from other", "again"], name="other")

    def prepare(request):
        if request.turn == 0:
            return None
        return replace(request, model=other, tools=(), thinking_level="high", system_prompt="new", max_tokens=7)

    w = agent([CALL], prepare_request=prepare)
    assert (await w.agent.prompt("x")).text == "from other"
    w.check()
    assert [e.config.model for e in w.of(ConfigChanged)] == ["other"]
    request = other.requests[0]
    assert (request.tools, request.thinking_level, request.system_prompt, request.max_tokens) == ((), "high", "new", 7)
    assert (w.agent.state.model, w.agent.model, w.agent.system_prompt) == ("other", other, "new")


@virtual
async def test_before_tool_may_allow_edit_and_block():
    def before(call):
        return {
            "c1": None,
            "c2": hooks.Allow(),
            "c3": hooks.Edit({"a": 10, "b": "1"}),
            "c4": hooks.Block("not you"),
            "c5": hooks.Edit({"a": "x"}),
        }[call.id]

    w = agent([replace(CALL, id=f"c{i}") for i in range(1, 6)], before_tool=before)
    await w.agent.prompt("x")
    w.check()
    ends = {e.call_id: (e.result.text, e.is_error, e.args) for e in w.of(ToolEnd)}
    assert ends["c1"] == ends["c2"] == ("4", False, {"a": 2, "b": 2})
    assert ends["c3"] == ("11", False, {"a": 10, "b": 1})
    assert ends["c4"][:2] == ("not you", True)
    assert ends["c5"][1]
    assert "a: " in ends["c5"][0]
    assert [e.args for e in w.of(ToolStart)] == [{"a": 2, "b": 2}] * 5


@virtual
async def test_after_tool_may_override_the_result():
    def after(call, result):
        return replace(result, content=(), summary="hidden", is_error=True)

    w = agent([CALL], after_tool=after)
    await w.agent.prompt("x")
    w.check()
    end = w.of(ToolEnd)[0]
    assert (end.result.text, end.result.summary, end.is_error) == ("", "hidden", True)


@virtual
async def test_the_first_registered_hook_is_outermost():
    order = []

    def before(name):
        return lambda call: order.append(f"before {name}")

    def after(name):
        async def hook(call, result):
            order.append(f"after {name}")
            return ToolResult(result.text + name)

        return hook

    outer = Hooks(before_tool=before("1"), after_tool=after("1"))
    inner = Hooks(before_tool=[before("2"), before("3")], after_tool=[after("2"), after("3")])
    w = Watched(Agent(ScriptedModel([[CALL], "done"]), tools=[add], hooks=outer | inner))
    await w.agent.prompt("x")
    assert order == ["before 1", "before 2", "before 3", "after 3", "after 2", "after 1"]
    assert w.of(ToolEnd)[0].result.text == "4321"


@virtual
async def test_after_turn_may_stop_the_run_and_sees_the_turn():
    seen = []

    def after(turn):
        seen.append((turn.turn, turn.message.tool_calls[0].name, turn.tool_results[0].text, len(turn.messages)))
        turn.context.emit("seen", turn.turn)
        return hooks.Stop()

    w = agent([CALL], after_turn=after)
    assert (await w.agent.prompt("x")).outcome == "completed"
    w.check()
    assert seen == [(0, "add", "4", 3)]
    assert w.of(Custom)[0].data == 0


@virtual
async def test_get_api_key_is_asked_before_every_request():
    keys = iter(["k1", "k2"])
    asked = []

    async def key(provider):
        asked.append(provider)
        return next(keys)

    model = ScriptedModel([[CALL], "done"])
    await Agent(model, tools=[add], hooks=Hooks(get_api_key=key)).prompt("x")
    assert [r.api_key for r in model.requests] == ["k1", "k2"]
    assert asked == ["scripted", "scripted"]
    assert "k1" not in repr(model.requests)


@pytest.mark.parametrize("hook", ["transform_context", "convert_to_model", "prepare_request", "after_turn", "get_api_key"])
def test_a_raising_hook_fails_the_run(hook):
    @virtual
    async def main():
        def broken(*args):
            raise ValueError("hook broke")

        w = agent([CALL], **{hook: broken})
        result = await w.agent.prompt("x")
        w.check()
        assert (result.outcome, result.error.kind) == ("failed", "hook")
        assert hook in result.error.message
        assert "hook broke" in result.error.message

    main()


@pytest.mark.parametrize("hook", ["before_tool", "after_tool"])
def test_a_raising_tool_hook_is_that_calls_error_result(hook):
    @virtual
    async def main():
        async def broken(call, *args):
            await asyncio.sleep(1)
            if call.id == "c1":
                raise ValueError("hook broke")

        w = agent([CALL, replace(CALL, id="c2")], **{hook: broken})
        assert (await w.agent.prompt("x")).outcome == "completed"
        w.check()
        ends = {e.call_id: e for e in w.of(ToolEnd)}
        assert ends["c1"].is_error
        assert "hook broke" in ends["c1"].result.text
        assert not ends["c2"].is_error

    main()


@pytest.mark.parametrize(("hook", "value"), [("before_tool", "yes"), ("after_turn", True), ("prepare_request", {})])
def test_a_hook_that_gives_nonsense_is_told_so(hook, value):
    @virtual
    async def main():
        w = agent([CALL], **{hook: lambda *args: value})
        result = await w.agent.prompt("x")
        w.check()
        texts = [result.error.message] if result.error else [e.result.text for e in w.of(ToolEnd)]
        assert any(hook in text for text in texts)

    main()


def test_hooks_must_be_functions():
    with pytest.raises(TypeError):
        Hooks(before_tool=["no"])


@virtual
async def test_a_hook_that_asks_is_answered_like_an_approval_unless_it_reads_the_answer():
    for answer, text in [
        (True, "4"),
        ("deny", "denied by the user"),
        ({"decision": "allow", "args": {"a": 5, "b": 5}}, "10"),
        ("what?", "an approval is answered"),
    ]:
        w = agent([CALL], before_tool=lambda call: hooks.Ask("sure?"))
        assert (await w.agent.prompt("x")).outcome == "interrupted"
        assert w.agent.state.interrupts[0].question == "sure?"
        assert (await w.agent.resume({w.agent.state.interrupts[0].id: answer})).outcome == "completed"
        w.check()
        assert text in w.of(ToolEnd)[-1].result.text


def with_hooks(*calls, tools, **hooks):
    watched = Watched(Agent(ScriptedModel([list(calls), "done"]), tools=tools, hooks=Hooks(**hooks)))
    return watched, watched.agent.prompt_sync("x")


async def nested(o: dict) -> str:
    return str(o)


@pytest.mark.parametrize(
    ("hook", "given", "word"),
    [
        ("transform_context", 3, "list of messages"),
        ("transform_context", None, "list of messages"),
        ("transform_context", [3], r"input\[0\]"),
        ("convert_to_model", [{"role": "user"}], r"input\[0\]"),
        ("get_api_key", 3, "key"),
        ("prepare_request", 3, "request"),
        ("after_turn", 3, "Stop"),
    ],
)
def test_what_a_hook_gives_that_cant_be_used_fails_the_run_and_names_the_hook(hook, given, word):
    watched, result = with_hooks(ToolCall("c", "nested", {"o": {}}), tools=[nested], **{hook: lambda *_: given})
    assert (result.outcome, result.error.kind) == ("failed", "hook")
    assert re.search(f"{hook}.*{word}", result.error.message)
    watched.check()


@pytest.mark.parametrize("change", [{"thinking_level": "huge"}, {"tools": (3,)}, {"messages": (3,)}, {"model": "nobody:x"}])
def test_a_request_changed_into_nonsense_fails_the_run_and_leaves_the_configuration(change):
    watched, result = with_hooks("x", tools=[nested], prepare_request=lambda request: replace(request, **change))
    assert (result.outcome, result.error.kind) == ("failed", "hook")
    assert "prepare_request" in result.error.message
    assert (watched.agent.thinking_level, [t.declaration.name for t in watched.agent.tools]) == ("off", ["nested"])
    watched.check()


@pytest.mark.parametrize("args", [None, [1], {"o": object()}, "x"])
def test_an_edit_into_what_are_no_arguments_is_an_error_result(args):
    watched, _ = with_hooks(ToolCall("c", "nested", {"o": {}}), tools=[nested], before_tool=lambda _: hooks.Edit(args))
    assert watched.of(ToolEnd)[0].is_error
    watched.check()


def test_a_hook_that_writes_into_the_arguments_it_sees_changes_neither_call_nor_events():
    def scribble(call) -> None:
        call.args["o"]["x"] = 99

    watched, _ = with_hooks(ToolCall("c", "nested", {"o": {"x": 1}}), tools=[nested], before_tool=scribble)
    assert [event.args for event in watched.of(ToolStart) + watched.of(ToolEnd)] == [{"o": {"x": 1}}] * 2
    assert watched.of(ToolEnd)[0].result.text == "{'x': 1}"
