"""Questions: asked by tools, hooks and agents below, gathered, answered in any order, once."""

import asyncio
import itertools

import pytest
from agent_harness import virtual
from runner_harness import Watch

from rxagent import Agent, Cancel, Hooks, Runner, ToolContext, approve, as_tool, parallel, tool
from rxagent.errors import AgentBusy, InterruptError, InvalidOption, NothingToContinue, RunInterrupted, UnknownSession
from rxagent.events import AgentStart, Interrupted, ToolEnd, ToolStart
from rxagent.hooks import Ask
from rxagent.messages import ToolCall
from rxagent.models import ScriptedModel
from rxagent.operators.verify import check
from rxagent.stores import MemoryStore


@tool
async def ask(question: str, ctx: ToolContext) -> str:
    ctx.deps.append(f"asked {question}")
    answer = await ctx.interrupt(question, {"type": "string"})
    ctx.deps.append(f"heard {answer}")
    return f"{question} {answer}"


@tool
def plain(ctx: ToolContext, text: str = "") -> str:
    ctx.deps.append(f"plain {text}")
    return f"plain {text}"


def calls_then_done(*calls, name="agent", deps=None, tools=(ask, plain), **options):
    """An agent that makes these calls, then says what came of them."""

    def answer(request):
        last = request.messages[-1]
        if last.role == "user":
            return ["let me see", *calls]
        return "; ".join(m.text for m in request.messages if m.role == "tool")

    return Agent(ScriptedModel(answer), name=name, tools=tools, deps=deps if deps is not None else [], **options)


def asks(question, call_id=""):
    return ToolCall(call_id, "ask", {"question": question})


async def log_of(runner, session="s"):
    log = await runner.events(session)
    check(log)
    return log


@virtual
async def test_several_questions_of_one_turn_are_listed_together_and_siblings_finish():
    done = []
    runner = Runner(calls_then_done(asks("one?"), ToolCall("", "plain", {"text": "x"}), asks("two?"), deps=done))
    result = await runner.query("go", "s")
    assert result.outcome == "interrupted"
    assert [i.question for i in result.interrupts] == ["one?", "two?"]
    assert all(i.path == ("agent",) and i.schema == {"type": "string"} and i.tool_name == "ask" for i in result.interrupts)
    assert len({i.id for i in result.interrupts}) == 2
    assert "plain x" in done
    with pytest.raises(RunInterrupted):
        await runner.resume("s", {}).result(raise_on_failure=True)
    result = await runner.resume("s", {i.id: "yes" for i in result.interrupts})
    assert (result.outcome, result.text) == ("completed", "one? yes; plain x; two? yes")
    assert done.count("plain x") == 1
    await log_of(runner)


@pytest.mark.parametrize("order", [*itertools.permutations(range(3))])
def test_questions_are_answered_one_by_one_in_any_order(order):
    @virtual
    async def main():
        done = []
        runner = Runner(calls_then_done(asks("a?"), asks("b?"), asks("c?"), deps=done), MemoryStore())
        result = await runner.query("go", "s")
        first = {i.question: i.id for i in result.interrupts}
        waiting = dict(enumerate(result.interrupts))
        for place in order:
            answered = waiting.pop(place)
            result = await runner.resume("s", {answered.id: answered.question.upper()})
            assert {i.question: i.id for i in result.interrupts} == {q: first[q] for q in (w.question for w in waiting.values())}
        assert (result.outcome, result.text) == ("completed", "a? A?; b? B?; c? C?")
        # a call is run again for its answer, and never only to ask the same again
        assert sorted(done) == sorted([f"asked {q}" for q in ("a?", "b?", "c?")] * 2 + [f"heard {q}" for q in ("A?", "B?", "C?")])
        log = await log_of(runner)
        starts = [e for e in log if isinstance(e, AgentStart)]
        interrupted = [e.seq for e in log if isinstance(e, Interrupted)]
        assert [e.resumes for e in starts] == [None, *interrupted]

    main()


def test_a_second_answer_an_unknown_id_and_an_idle_session_are_refused_and_leave_the_log_alone():
    @virtual
    async def main():
        runner = Runner(calls_then_done(asks("a?"), asks("b?")), MemoryStore())
        result = await runner.query("go", "s")
        a, b = (i.id for i in result.interrupts)
        await runner.resume("s", {a: "1"})
        before = await log_of(runner)
        with pytest.raises(InterruptError, match="settled before"):
            await runner.resume("s", {a: "2"})
        with pytest.raises(InterruptError, match=f"waiting: {b}"):
            await runner.resume("s", {"nobody": "2"})
        with pytest.raises(UnknownSession):
            await runner.resume("other", {a: "2"})
        assert await log_of(runner) == before
        await runner.resume("s", {b: Cancel()})
        for answers in ({a: "2"}, {b: "2"}):
            with pytest.raises(InterruptError, match="settled before"):
                await runner.resume("s", answers)
        with pytest.raises(NothingToContinue):
            await runner.resume("s", {})

    main()


def test_two_answers_to_one_question_at_the_same_time_only_the_first_counts():
    @virtual
    async def main():
        runner = Runner(calls_then_done(asks("a?")), MemoryStore())
        result = await runner.query("go", "s")
        name = result.interrupts[0].id
        first = runner.resume("s", {name: "first"})
        with pytest.raises(AgentBusy, match="'s'"):
            runner.resume("s", {name: "second"})
        assert (await first).text == "a? first"

    main()


def nested(depth, deps, call_id=""):
    """An agent under ``depth`` others, each asking a question of its own beside its child's."""
    agent = calls_then_done(asks(f"level {depth}?", call_id), name=f"l{depth}", deps=deps)
    for level in range(depth - 1, -1, -1):
        calls = (asks(f"level {level}?", call_id), ToolCall(call_id, agent.name, {"input": "go on"}))
        agent = calls_then_done(*calls, name=f"l{level}", deps=deps, tools=(ask, plain, as_tool(agent)))
    return agent


@pytest.mark.parametrize("call_id", ["", "same"])
@pytest.mark.parametrize("one_by_one", [False, True])
def test_questions_three_levels_below_surface_at_the_root_with_their_address(call_id, one_by_one):
    @virtual
    async def main():
        done = []
        runner = Runner(nested(3, done, call_id), MemoryStore())
        agent = await runner.open("s")
        watch = Watch(agent)
        result = await runner.query("go", "s")
        questions = {i.question: i for i in result.interrupts}
        assert {q: i.path for q, i in questions.items()} == {
            f"level {n}?": tuple(f"l{k}" for k in range(n + 1)) for n in range(4)
        }
        assert agent.state.interrupts == result.interrupts
        assert len({i.id for i in result.interrupts}) == 4
        if one_by_one:
            for interrupt in reversed(result.interrupts):
                result = await runner.resume("s", {interrupt.id: "ok"})
        else:
            result = await runner.resume("s", {i.id: "ok" for i in result.interrupts})
        assert (result.outcome, result.text) == (
            "completed",
            "level 0? ok; level 1? ok; level 2? ok; level 3? ok",
        )
        assert sum(line.startswith("heard") for line in done) == 4
        log = await log_of(runner)
        assert watch.seen == len(log)
        # of what was streamed, nothing came twice: a child goes on, it doesn't begin anew
        assert sum(isinstance(e, AgentStart) and e.resumes is None for e in log) == 4

    main()


@virtual
async def test_siblings_of_one_name_are_told_apart():
    done = []
    child = calls_then_done(asks("which?"), name="child", deps=done)
    calls = [ToolCall("", "child", {"input": str(n)}) for n in range(3)]
    root = calls_then_done(*calls, name="root", deps=done, tools=[as_tool(child)])
    runner = Runner(root, MemoryStore())
    result = await runner.query("go", "s")
    assert [i.path for i in result.interrupts] == [("root", "child")] * 3
    for place in (2, 0, 1):
        result = await runner.resume("s", {result.interrupts[0 if place == 1 else place].id: f"answer {place}"})
    assert result.text == "which? answer 0; which? answer 1; which? answer 2"
    await log_of(runner)


@virtual
async def test_questions_of_parallel_members_are_gathered():
    members = [calls_then_done(asks(f"{n}?"), name=n) for n in ("a", "b", "c")]
    runner = Runner(parallel(*members, calls_then_done(name="quick")))
    result = await runner.query("go", "s")
    assert [(i.question, i.path) for i in result.interrupts] == [(f"{n}?", ("parallel", n)) for n in ("a", "b", "c")]
    result = await runner.resume("s", {i.id: "yes" for i in result.interrupts})
    assert result.text == "a? yes\n\nb? yes\n\nc? yes\n\nlet me see"
    await log_of(runner)


@virtual
async def test_a_cancelled_question_ends_its_call_with_an_error_result():
    runner = Runner(calls_then_done(asks("a?"), asks("b?")))
    result = await runner.query("go", "s")
    a, b = (i.id for i in result.interrupts)
    result = await runner.resume("s", {a: Cancel(), b: "fine"})
    assert result.text == "the question 'a?' was cancelled; b? fine"
    ends = {e.call_id: e for e in await log_of(runner) if isinstance(e, ToolEnd) and not e.interrupted}
    assert sorted(e.is_error for e in ends.values()) == [False, True]


@virtual
async def test_a_new_prompt_cancels_what_is_asked():
    runner = Runner(calls_then_done(asks("a?"), name="agent"))
    await runner.query("go", "s")
    result = await runner.query("never mind", "s")
    assert result.outcome == "interrupted"  # this agent asks at every prompt
    state = await runner.state("s")
    assert [m.text for m in state.messages if m.role != "assistant"] == [
        "go",
        "the question 'a?' was cancelled",
        "never mind",
    ]
    assert len(state.interrupts) == 1
    await log_of(runner)


@virtual
async def test_aborting_a_resumed_run_settles_its_calls_as_aborted():
    @tool
    async def slow(ctx: ToolContext) -> str:
        await ctx.interrupt("go?")
        await asyncio.sleep(100)
        return "late"

    runner = Runner(calls_then_done(ToolCall("", "slow"), tools=[slow]))
    result = await runner.query("go", "s")
    run = runner.resume("s", {result.interrupts[0].id: True})
    await asyncio.sleep(1)
    run.abort("enough")
    assert (await run).outcome == "aborted"
    log = await log_of(runner)
    assert [e.result.text for e in log if isinstance(e, ToolEnd)][-1] == "slow was aborted: enough"
    with pytest.raises(NothingToContinue):
        await runner.resume("s", {})


@virtual
async def test_an_agent_without_a_runner_resumes_itself():
    agent = calls_then_done(asks("a?"))
    result = await agent.prompt("go")
    assert agent.state.interrupts == result.interrupts
    with pytest.raises(InterruptError):
        agent.resume({"nobody": 1})
    result = await agent.resume({result.interrupts[0].id: "yes"})
    assert (result.outcome, result.text) == ("completed", "a? yes")
    assert agent.state.interrupts == ()


@virtual
async def test_a_tool_may_ask_again_with_what_it_was_told():
    @tool
    async def twice(ctx: ToolContext) -> str:
        name = await ctx.interrupt("name?")
        age = await ctx.interrupt(f"age of {name}?")
        return f"{name} is {age}"

    runner = Runner(calls_then_done(ToolCall("", "twice"), tools=[twice]))
    result = await runner.query("go", "s")
    result = await runner.resume("s", {result.interrupts[0].id: "Ann"})
    assert [i.question for i in result.interrupts] == ["age of Ann?"]
    result = await runner.resume("s", {result.interrupts[0].id: 7})
    assert result.text == "Ann is 7"


@virtual
async def test_a_thread_tool_asks_too():
    @tool
    def blocking(ctx: ToolContext) -> str:
        return f"told {ctx.interrupt_blocking('what?')}"

    runner = Runner(calls_then_done(ToolCall("", "blocking"), tools=[blocking]))
    result = await runner.query("go", "s")
    assert (await runner.resume("s", {result.interrupts[0].id: "this"})).text == "told this"


# -- hooks and approvals


@virtual
async def test_a_hook_asks_and_finds_the_answer():
    seen = []

    def hook(call):
        seen.append((call.answered, call.answer))
        return None if call.answered else Ask(f"may {call.name}?", {"type": "boolean"})

    runner = Runner(calls_then_done(ToolCall("", "plain", {"text": "x"}), hooks=Hooks(before_tool=hook)), MemoryStore())
    result = await runner.query("go", "s")
    assert [(i.question, i.schema) for i in result.interrupts] == [("may plain?", {"type": "boolean"})]
    result = await runner.resume("s", {result.interrupts[0].id: True})
    assert result.text == "plain x"
    assert seen == [(False, None), (True, True)]


async def approved(answer, **options):
    done = []
    agent = calls_then_done(
        ToolCall("", "plain", {"text": "x"}), asks("free?"), deps=done, hooks=approve(tools=["plain"]), **options
    )
    runner = Runner(agent, MemoryStore())
    result = await runner.query("go", "s")
    gate, free = result.interrupts
    assert gate.question == 'Run plain with {"text":"x"}?'
    assert done == ["asked free?"]
    result = await runner.resume("s", {gate.id: answer, free.id: "yes"})
    await log_of(runner)
    return result.text.split("; ")[0], [line for line in done if line.startswith("plain")]


@pytest.mark.parametrize(
    ("answer", "text", "ran"),
    [
        ("allow", "plain x", ["plain x"]),
        (True, "plain x", ["plain x"]),
        ({"decision": "allow"}, "plain x", ["plain x"]),
        ({"decision": "allow", "args": {"text": "y"}}, "plain y", ["plain y"]),
        ("deny", "denied by the user", []),
        (False, "denied by the user", []),
        ({"decision": "deny", "reason": "too risky"}, "denied: too risky", []),
        (Cancel(), 'plain was not run: the question \'Run plain with {"text":"x"}?\' was cancelled', []),
    ],
)
def test_an_approval_allows_denies_or_edits(answer, text, ran):
    @virtual
    async def main():
        assert await approved(answer) == (text, ran)

    main()


@pytest.mark.parametrize(
    "answer", ["perhaps", 7, 1, {"decision": "maybe"}, {"reason": "none"}, {"decision": "allow", "for": "ever"}]
)
def test_what_is_no_approval_is_refused_and_starts_nothing(answer):
    @virtual
    async def main():
        done = []
        agent = calls_then_done(ToolCall("", "plain", {"text": "x"}), deps=done, hooks=approve(tools=["plain"]))
        runner = Runner(agent, MemoryStore())
        (gate,) = (await runner.query("go", "s")).interrupts
        before = await log_of(runner)
        with pytest.raises(InterruptError, match="doesn't fit its schema"):
            await runner.resume("s", {gate.id: answer})
        assert (await log_of(runner), done) == (before, [])
        assert (await runner.resume("s", {gate.id: "allow"})).text == "plain x"

    main()


@virtual
async def test_an_answer_that_does_not_fit_says_what_was_expected_and_the_right_one_is_still_taken():
    wanted = {
        "type": "object",
        "properties": {"seats": {"type": "integer", "minimum": 1}, "day": {"enum": ["monday", "friday"]}},
        "required": ["seats", "day"],
    }

    @tool
    async def book(ctx: ToolContext) -> str:
        return f"{await ctx.interrupt('when?', wanted)}"

    agent = calls_then_done(ToolCall("", "book"), tools=[book])
    runner = Runner(calls_then_done(ToolCall("", "child", {"input": "x"}), tools=[as_tool(agent, name="child")]), MemoryStore())
    (question,) = (await runner.query("go", "s")).interrupts
    assert question.schema == wanted
    before = await log_of(runner)
    with pytest.raises(InterruptError) as caught:
        await runner.resume("s", {question.id: {"seats": "two", "day": "sunday"}})
    assert "when?" in str(caught.value)
    assert 'seats: expected integer, got "two"; day: expected "monday" or "friday", got "sunday"' in str(caught.value)
    with pytest.raises(InterruptError, match="day: required"):
        await runner.resume("s", {question.id: {"seats": 2}})
    opened = await runner.open("s")
    with pytest.raises(InterruptError, match="expected object, got null"):
        opened.resume({question.id: None})
    assert await log_of(runner) == before
    assert (await runner.resume("s", {question.id: {"seats": 2, "day": "friday"}})).outcome == "completed"


@pytest.mark.parametrize("tools", ["plain", plain, ("plain",), [plain], {"plain"}, lambda call: call.name == "plain", None])
def test_an_approval_is_asked_for_one_tool_several_or_all_and_nothing_runs_before(tools):
    @virtual
    async def main():
        done = []
        agent = calls_then_done(ToolCall("", "plain", {"text": "x"}), deps=done, hooks=approve(tools=tools))
        result = await Runner(agent).query("go", "s")
        assert (result.outcome, done) == ("interrupted", [])

    main()


def test_what_can_not_name_a_tool_is_no_approval():
    for odd in (5, [5], [None]):
        with pytest.raises(InvalidOption, match="approve takes"):
            approve(tools=odd)


@pytest.mark.parametrize("decision", ["allow", "deny"])
def test_a_remembered_approval_holds_for_the_tool_in_this_run_and_no_longer(decision):
    @virtual
    async def main():
        done = []

        def answer(request):
            since = itertools.takewhile(lambda m: m.role != "user", reversed(request.messages))
            turn = sum(m.role == "assistant" for m in since)
            return ToolCall("", "plain", {"text": str(turn)}) if turn < 3 else "done"

        agent = Agent(ScriptedModel(answer), tools=[plain], deps=done, hooks=Hooks() | approve(tools=[plain]))
        runner = Runner(agent, MemoryStore())
        result = await runner.query("go", "s")
        result = await runner.resume("s", {result.interrupts[0].id: {"decision": decision, "remember": True}})
        assert result.outcome == "completed"
        assert done == (["plain 0", "plain 1", "plain 2"] if decision == "allow" else [])
        result = await runner.query("again", "s")
        assert result.outcome == "interrupted"

    main()


@virtual
async def test_approval_by_function_and_of_everything():
    agent = calls_then_done(ToolCall("", "plain", {"text": "rm"}), ToolCall("", "plain", {"text": "ls"}))
    agent.hooks = approve(tools=lambda call: call.args.get("text") == "rm")
    result = await agent.prompt("go")
    assert len(result.interrupts) == 1
    every = calls_then_done(ToolCall("", "plain", {"text": "rm"}), ToolCall("", "plain", {"text": "ls"}), hooks=approve())
    assert len((await every.prompt("go")).interrupts) == 2


@virtual
async def test_starts_and_ends_of_interrupted_calls_pair_up():
    runner = Runner(nested(2, []), MemoryStore())
    result = await runner.query("go", "s")
    while result.outcome == "interrupted":
        result = await runner.resume("s", {result.interrupts[-1].id: "ok"})
    log = await log_of(runner)
    open_calls = set()
    for event in log:
        if isinstance(event, ToolStart):
            assert event.call_id not in open_calls
            open_calls.add(event.call_id)
        elif isinstance(event, ToolEnd):
            open_calls.remove(event.call_id)
    assert not open_calls


@virtual
async def test_a_hook_of_a_child_asks_at_the_root():
    done = []
    child = calls_then_done(ToolCall("", "plain", {"text": "x"}), name="child", deps=done, hooks=approve(tools=["plain"]))
    calls = [ToolCall("", "child", {"input": str(n)}) for n in range(2)]
    runner = Runner(calls_then_done(*calls, name="root", deps=done, tools=[as_tool(child)]), MemoryStore())
    result = await runner.query("go", "s")
    assert [(i.path, i.tool_name) for i in result.interrupts] == [(("root", "child"), "plain")] * 2
    result = await runner.resume("s", {result.interrupts[1].id: {"decision": "deny", "reason": "no"}})
    assert len(result.interrupts) == 1
    result = await runner.resume("s", {result.interrupts[0].id: "allow"})
    assert result.text == "plain x; denied: no"
    assert done == ["plain x"]
    await log_of(runner)


@virtual
async def test_an_approval_of_a_child_agent_as_a_tool():
    child = calls_then_done(asks("inner?"), name="child")
    root = calls_then_done(
        ToolCall("", "child", {"input": "x"}), name="root", tools=[as_tool(child)], hooks=approve(tools=["child"])
    )
    runner = Runner(root, MemoryStore())
    result = await runner.query("go", "s")
    assert [i.question for i in result.interrupts] == ['Run child with {"input":"x"}?']
    result = await runner.resume("s", {result.interrupts[0].id: {"decision": "allow", "args": {"input": "y"}}})
    assert [i.question for i in result.interrupts] == ["inner?"]
    result = await runner.resume("s", {result.interrupts[0].id: "yes"})
    assert result.text == "inner? yes"
    log = await log_of(runner)
    assert next(e for e in log if isinstance(e, AgentStart) and e.origin.call_id).input[0].text == "y"
    assert sum(isinstance(e, AgentStart) and e.resumes is None for e in log) == 2


@pytest.mark.parametrize(
    ("question", "schema"),
    [(5, None), (None, None), ("which?", bool), ("which?", "string"), ("which?", {"type": bool}), ("which?", [])],
)
@pytest.mark.parametrize("asker", ["tool", "hook"])
def test_a_question_that_no_log_could_keep_is_an_error_result_of_its_call_alone(asker, question, schema):
    @virtual
    async def main():
        @tool
        async def odd(ctx: ToolContext) -> str:
            return f"{await ctx.interrupt(question, schema)}"

        hook = Hooks(before_tool=lambda call: Ask(question, schema) if call.name == "plain" else None)
        call = ToolCall("", "odd") if asker == "tool" else ToolCall("", "plain", {"text": "x"})
        agent = calls_then_done(call, asks("and?"), tools=[odd, ask, plain], hooks=hook)
        runner = Runner(agent, MemoryStore())
        result = await runner.query("go", "s")
        assert [i.question for i in result.interrupts] == ["and?"]
        result = await runner.resume("s", {result.interrupts[0].id: "yes"})
        assert result.outcome == "completed"
        failed, answered = (m for m in result.messages if m.role == "tool")
        assert failed.is_error
        assert "question is text" in failed.text or "schema of a question is" in failed.text
        assert answered.text == "and? yes"
        await log_of(runner)

    main()
