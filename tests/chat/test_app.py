"""The terminal app, driven by keys: what a person does and sees."""

import asyncio
import contextlib

import pytest

pytest.importorskip("textual", reason="needs Textual: pip install 'rxagent[chat]'")

from chat_harness import run, talk

from rxagent import Agent, as_tool
from rxagent.errors import NothingToContinue, StoreCorrupt
from rxagent.events import model as m
from rxagent.messages import ThinkingPart, ToolCall, Usage
from rxagent.models import ScriptedModel
from rxagent.runner import Runner
from rxagent.stores import MemoryStore
from rxagent.tools import ToolContext, tool


class Door:
    """A tool that waits until it is let through."""

    def __init__(self):
        self.open = asyncio.Event()

        @tool
        async def door(label: str = "x") -> str:
            """Waits."""
            await self.open.wait()
            return f"through {label}"

        self.tool = door


def kept_open(store):
    """The store, whose end is somebody else's business."""
    return contextlib.nullcontext(store)


def call(name="door", **arguments):
    return ToolCall("c1", name, arguments)


def slow(*pieces):
    """A turn that never ends by itself."""

    async def turn(request):
        for piece in pieces:
            yield m.TextDelta(piece)
        await asyncio.Event().wait()

    return turn


@run
async def test_a_prompt_is_answered_and_thoughts_are_folded():
    async with talk([[ThinkingPart("first this\nthen that"), "# Title\n\nsome *text*"]]) as t:
        await t.type("hello")
        await t.until("some text")
        await t.idle()
        assert "hello" in t.text
        assert "Thought  first this then that" in t.text
        assert "# Title" not in t.text
        await t.press("ctrl+t")
        await t.until("│ then that")
        await t.press("ctrl+t")
        await t.until(lambda: "│ then that" not in t.text)


@run
async def test_a_tool_shows_arguments_progress_and_a_result_that_unfolds():
    @tool
    async def walk(steps: int):
        """Walks."""
        for step in range(steps):
            yield f"step {step}"

    async with talk([[call("walk", steps=3)], "done"], tools=[walk]) as t:
        await t.type("go")
        await t.until("done")
        assert "✓ walk  steps=3" in t.text
        assert "└ step 2" in t.text
        await t.press("ctrl+o")
        await t.until('"steps": 3')
        assert "result" in t.text


@run
async def test_steering_and_follow_ups_wait_in_view_and_are_taken_in():
    door = Door()
    async with talk([[call()], "steered", "followed"], tools=[door.tool]) as t:
        await t.type("go")
        await t.until("door runs")
        await t.type("also this")
        await t.type("at last that", "tab")
        await t.until("↳ next  also this")
        await t.until("⋯ later at last that")
        door.open.set()
        await t.until("followed")
        await t.idle()
        assert "↳ next" not in t.screen
        assert t.text.index("also this") < t.text.index("steered") < t.text.index("at last that") < t.text.index("followed")


@run
async def test_what_is_queued_can_be_taken_back():
    door = Door()
    async with talk([[call()], "end"], tools=[door.tool]) as t:
        await t.type("go")
        await t.until("door runs")
        await t.type("think twice")
        await t.until("↳ next  think twice")
        await t.press("up")
        await t.until(lambda: t.app.prompt.text == "think twice")
        assert t.agent.state.steering == ()
        door.open.set()


@run
async def test_cutting_in_stops_the_tools():
    door = Door()
    async with talk([[call()], "so be it"], tools=[door.tool]) as t:
        await t.type("go")
        await t.until("door runs")
        await t.type("never mind", "ctrl+x")
        await t.until("so be it")
        assert "✗ door" in t.text


@pytest.mark.parametrize(("key", "sign"), [("y", "✓ door"), ("n", "✗ door")])
@run
async def test_an_approval_takes_one_key(key, sign):
    door = Door()
    door.open.set()
    async with talk([[call(label="gate")], "went on"], tools=[door.tool], asking=["door"]) as t:
        await t.type("go")
        await t.until("Run door?")
        assert 'label: "gate"' in t.screen
        assert "needs you" in t.screen
        await t.press(key)
        await t.until("went on")
        await t.idle()
        assert sign in t.text
        assert t.app.focused is t.app.prompt


@run
async def test_always_holds_for_the_conversation():
    door = Door()
    door.open.set()
    async with talk([[call()], "one", [call()], "two"], tools=[door.tool], asking=None) as t:
        await t.type("go")
        await t.until("Run door?")
        await t.press("a")
        await t.until("one")
        await t.idle()
        await t.type("again")
        await t.until("two")
        assert t.text.count("✓ door") == 2


@run
async def test_a_denial_with_a_reason_and_an_edit_reach_the_agent():
    door = Door()
    door.open.set()
    async with talk([[call()], [call(label="wrong")], "end"], tools=[door.tool], asking=["door"]) as t:
        await t.type("go")
        await t.until("Run door?")
        await t.press("r")
        await t.pilot.pause()
        await t.press(*"too late", "enter")
        await t.until('label: "wrong"')
        assert "too late" in t.text
        await t.press("e")
        await t.pilot.pause()
        answer = t.app.question.query_one("#answer")
        answer.value = '{"label": '
        await t.press("enter")
        assert t.app.question.is_open
        answer.value = '{"label": "right"}'
        await t.press("enter")
        await t.until("through right")


@run
async def test_a_tool_asks_in_its_own_words():
    @tool
    async def book(ctx: ToolContext) -> str:
        """Books."""
        day = await ctx.interrupt("Which day?", {"enum": ["monday", "friday"]})
        seats = await ctx.interrupt("How many?", {"type": "integer"})
        return f"{seats} on {day}"

    async with talk([[call("book")], "booked"], tools=[book]) as t:
        await t.type("go")
        await t.until("Which day?")
        await t.press("2")
        await t.until("How many?")
        await t.press(*"12", "enter")
        await t.until("booked")
        assert "12 on friday" in t.text


@run
async def test_questions_put_off_are_put_again():
    door = Door()
    door.open.set()
    async with talk([[call()], "went on"], tools=[door.tool], asking=["door"]) as t:
        await t.type("go")
        await t.until("Run door?")
        await t.press("escape")
        await t.until(lambda: not t.app.question.is_open)
        assert "needs you" in t.screen
        await t.press("ctrl+r")
        await t.until("Run door?")
        await t.press("y")
        await t.until("went on")


@run
async def test_escape_aborts_and_the_partial_answer_stays():
    async with talk([slow("so far "), "second"]) as t:
        await t.type("go")
        await t.until("so far")
        await t.press("escape")
        await t.until("stopped")
        await t.idle()
        assert "so far" in t.text
        await t.type("next")
        await t.until("second")


@run
async def test_quitting_in_the_middle_of_a_run_ends_it_in_the_store():
    async with MemoryStore() as store:
        async with talk([slow("so far ")], store=kept_open(store)) as t:
            await t.type("go")
            await t.until("so far")
            session = t.agent.session_id
            await t.press("ctrl+q")
            await t.until(lambda: not t.app.is_running)
        last = (await store.load(session))[-1]
        assert (last.type, last.outcome) == ("agent_end", "aborted")


@run
async def test_one_key_retries_after_an_error():
    async with talk([[m.TextDelta("half"), m.ModelError("server", "out of order")], "whole"]) as t:
        await t.type("go")
        await t.until("server: out of order")
        await t.until("ctrl+r tries again")
        await t.press("ctrl+r")
        await t.until("whole")
        await t.idle()
        assert [message.role for message in t.agent.state.messages] == ["user", "assistant", "assistant"]
        await t.press("ctrl+r")
        await t.until(NothingToContinue.__name__)


@run
async def test_a_withdrawn_attempt_leaves_nothing_behind():
    failing = [m.TextDelta("first try"), m.ModelError("overloaded", "busy", retryable=True, retry_after=0.2)]
    async with talk([failing, "second try"]) as t:
        await t.type("go")
        await t.until("↻ busy")
        assert "first try" not in t.text
        await t.until("second try")
        assert "↻ busy" not in t.text


@run
async def test_tokens_and_cost_are_told():
    answer = [m.TextDelta("hi"), m.ResponseEnd("stop", Usage(1200, 34, cost=0.0123))]
    async with talk([answer]) as t:
        await t.type("go")
        await t.until("↑1.2k ↓34  ·  $0.0123")


@run
async def test_a_wrong_model_name_is_an_error_and_nothing_changes():
    async with talk(["one"]) as t:
        await t.type("/model no:such")
        await t.until("UnknownModel")
        assert t.agent.model.name == "scripted"
        await t.type("/nonsense")
        await t.until("there is no command /nonsense")


@run
async def test_the_history_opens_a_conversation_of_before():
    async with talk(["first answer", "second answer", "third answer"]) as t:
        await t.type("the first question")
        await t.until("first answer")
        await t.idle()
        await t.press("ctrl+n")
        await t.until(lambda: "first answer" not in t.text)
        await t.type("the second question")
        await t.until("second answer")
        await t.idle()
        await t.press("ctrl+p")
        await t.until("the first question")
        await t.press("enter")
        await t.until("first answer")
        assert "second answer" not in t.text
        await t.type("go on")
        await t.until("third answer")
        assert [message.role for message in t.agent.state.messages] == ["user", "assistant"] * 2


@run
async def test_a_paste_keeps_its_lines_and_loses_its_control_characters():
    async with talk(["ok"]) as t:
        from textual import events

        t.app.prompt.post_message(events.Paste("one\r\ntwo\x1b[31m"))
        await t.pilot.pause()
        assert t.app.prompt.text == "one\ntwo␛[31m"


@run
async def test_a_long_paste_has_a_name_until_it_is_sent():
    from textual import events

    async with talk(["ok"]) as t:
        lines = "\n".join(f"line {n}" for n in range(1000))
        t.app.prompt.insert("look: ")
        t.app.prompt.post_message(events.Paste(lines))
        await t.pilot.pause()
        assert t.app.prompt.text == "look: [pasted 1: 8,889 characters]"
        await t.press("enter")
        await t.until("ok")
        assert t.agent.state.messages[0].text == f"look: {lines}"
        assert "… 985 more lines" in t.text


@run
async def test_a_path_is_no_command_and_a_wrong_command_is_not_lost():
    async with talk(["a file"]) as t:
        await t.type("/etc/hosts is what?")
        await t.until("a file")
        await t.type("/modle x")
        await t.until("there is no command /modle")
        assert t.app.prompt.text == "/modle x"


@run
async def test_agents_below_tell_what_they_do_in_the_cell_of_their_call():
    door = Door()
    door.open.set()
    child = Agent(ScriptedModel([[call(label="deep")], "found it"]), name="helper", tools=[door.tool])
    async with talk([[call("helper", input="look")], "told"], tools=[as_tool(child)], asking=()) as t:
        await t.type("go")
        await t.until("told")
        await t.idle()
        await t.press("ctrl+o")
        await t.until("helper → door")
        assert "helper ← door: through deep" in t.text
        assert t.text.count("told") == 1


@run
async def test_control_characters_of_a_model_are_shown_not_obeyed():
    async with talk(["danger \x1b[2J\x07 here"]) as t:
        await t.type("go")
        await t.until("danger ␛[2J␇ here")


@run
async def test_the_keys_are_listed_on_a_question_mark():
    async with talk(["ok"]) as t:
        await t.press("question_mark")
        await t.until("ctrl+r")
        await t.press("x")
        await t.type("what?")
        await t.until("ok")
        assert "what?" in t.text


@run
async def test_ctrl_c_clears_then_quits_when_pressed_twice():
    async with talk(["ok"]) as t:
        t.app.prompt.put("draft")
        await t.press("ctrl+c")
        assert t.app.prompt.text == ""
        await t.press("ctrl+c")
        assert t.app.is_running
        await t.press("ctrl+c")
        assert t.app.return_code == 0
        assert t.app._exit


@run
async def test_a_history_that_can_not_be_read_is_told_of_and_the_conversation_goes_on():
    class Broken(MemoryStore):
        async def sessions(self):
            raise StoreCorrupt("no such pages")

    async with talk(["hello"], store=Broken()) as t:
        await t.press("ctrl+p")
        await t.until("StoreCorrupt: no such pages")
        await t.type("hi")
        await t.until("hello")


@run
async def test_a_conversation_that_another_program_went_on_with_is_shown_again_and_nothing_typed_is_lost():
    async with MemoryStore() as store, talk(["first", "lost", "third"], store=kept_open(store)) as t:
        await t.type("one")
        await t.until("first")
        await t.idle()
        other = Runner(Agent(ScriptedModel(["second"])), store)
        await other.query("two, from elsewhere", t.agent.session_id)
        await t.type("three")
        await t.until("another program went on with this conversation")
        assert "two, from elsewhere" in t.text
        assert t.app.prompt.text == "three"
        await t.press("enter")
        await t.until("third")
        await t.idle()
        assert [m.text for m in t.agent.state.messages][::2] == ["one", "two, from elsewhere", "three"]
