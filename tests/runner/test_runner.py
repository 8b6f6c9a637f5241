"""Queries, sessions, stores that fail, forks, replays: what a runner promises around a run."""

import asyncio
import gc
import weakref

import pytest
from agent_harness import at, virtual
from runner_harness import Watch

from rxagent import Agent, Limits, Runner, ToolContext, as_tool, tool
from rxagent.errors import (
    AgentBusy,
    InterruptError,
    InvalidMessage,
    NoRunningLoop,
    NothingToContinue,
    SessionLocked,
    StoreError,
    StoreFull,
    UnknownSession,
    Unserialisable,
    UsageError,
    WrongSeq,
)
from rxagent.events import AgentEnd, AgentStart, Custom, MessageUpdate, ModelRetry, ToolStart
from rxagent.messages import ToolCall, UserMessage
from rxagent.models import ScriptedModel
from rxagent.operators.verify import check, check_run
from rxagent.runner import times
from rxagent.runner.journal import BACKLOG, BATCH
from rxagent.stores import JsonlStore, MemoryStore, SqliteStore


def echo(**options):
    """An agent that says what it was sent, all of it."""
    return Agent(ScriptedModel(lambda r: " | ".join(m.text for m in r.messages), **options), name="echo")


@tool
async def slow(seconds: float) -> str:
    await asyncio.sleep(seconds)
    return f"slept {seconds}"


def sleeper(*seconds, tools=(slow,), **options):
    """An agent that sleeps in tools, then says so."""

    def answer(request):
        if request.messages[-1].role == "user":
            return [ToolCall("", "slow", {"seconds": s}) for s in seconds]
        return "slept"

    return Agent(ScriptedModel(answer), name="sleeper", tools=tools, **options)


# -- queries


@virtual
async def test_queries_are_independent_and_leave_the_agent_alone():
    agent = Agent(ScriptedModel(lambda r: " | ".join(m.text for m in r.messages)), messages=[UserMessage("before")])
    runner = Runner(agent)
    first, second = runner.query("one"), runner.run([UserMessage("two")])
    assert (await first).text == "before | one"
    assert (await second).text == "before | two"
    assert first.origin.session_id != second.origin.session_id
    assert [m.text for m in agent.state.messages] == ["before"]
    assert not agent.is_running
    check_run(list(first.values))


@virtual
async def test_queries_of_one_session_are_one_conversation():
    runner = Runner(echo(), MemoryStore())
    await runner.query("one", "s")
    assert (await runner.query("two", "s")).text == "one | one | two"
    check(await runner.events("s"))


@virtual
async def test_two_hundred_overlapping_queries_of_independent_sessions():
    runner = Runner(Agent(ScriptedModel(lambda r: "word " * 20, delay=0.01)), MemoryStore())
    results = await asyncio.gather(*(runner.query(f"{n}", f"s{n}").result() for n in range(200)))
    assert {r.outcome for r in results} == {"completed"}
    assert len(await runner.sessions()) == 200


@virtual
async def test_a_second_run_of_a_running_session_is_refused_and_one_right_after_the_end_is_not():
    runner = Runner(sleeper(1.0), MemoryStore())
    run = runner.query("go", "s")
    with pytest.raises(AgentBusy, match="'s'"):
        runner.query("again", "s")
    with pytest.raises(AgentBusy):
        runner.resume("s", {})
    await run
    assert (await runner.query("again", "s")).outcome == "completed"


def test_what_can_not_begin_is_refused_at_once():
    runner = Runner(echo())
    with pytest.raises(NoRunningLoop):
        runner.query("x")
    with pytest.raises(UsageError, match="ask, rerun, fail"):
        Runner(echo(), unknown_calls="guess")

    @virtual
    async def main():
        with pytest.raises(InvalidMessage):
            runner.run([7])
        with pytest.raises(NothingToContinue):
            runner.run([])
        with pytest.raises(Unserialisable):
            runner.resume("s", {"id": object()})
        with pytest.raises(UnknownSession):
            await runner.resume("s", {})
        with pytest.raises(UsageError, match="more than 0"):
            runner.replay("s", 0)

    main()


@virtual
async def test_a_run_is_an_async_iterator_and_leaving_it_early_aborts_it_and_leaks_nothing():
    runner = Runner(sleeper(100.0), MemoryStore())
    async for event in runner.query("go", "s"):
        if isinstance(event, ToolStart):
            break
    await asyncio.sleep(0)
    await asyncio.sleep(6)
    log = await runner.events("s")
    check(log)
    assert isinstance(log[-1], AgentEnd)
    assert log[-1].outcome == "aborted"


@virtual
async def test_unsubscribing_does_not_stop_a_run():
    runner = Runner(sleeper(5.0))
    run = runner.query("go")
    subscription = run.subscribe(lambda _: None)
    await asyncio.sleep(1)
    subscription.dispose()
    assert (await run).outcome == "completed"


@virtual
async def test_a_late_subscriber_gets_the_run_from_its_start():
    runner = Runner(echo(), MemoryStore())
    run = runner.query("hello", "s")
    await run
    seen = []
    run.subscribe(seen.append)
    check_run(seen)
    assert isinstance(seen[0], AgentStart)


@virtual
async def test_aborting_before_the_session_is_loaded_aborts():
    runner = Runner(echo(), MemoryStore())
    run = runner.query("go", "s")
    run.abort("changed my mind")
    result = await run
    assert result.outcome == "aborted"
    check(await runner.events("s"))
    assert (await runner.query("go on", "s")).outcome == "completed"


@virtual
async def test_without_a_store_named_and_waiting_sessions_are_kept_and_others_live_with_their_runs():
    @tool
    async def ask(ctx: ToolContext) -> str:
        return f"{await ctx.interrupt('what?')}"

    runner = Runner(Agent(ScriptedModel(lambda r: ToolCall("", "ask") if r.messages[-1].text == "ask" else "ok"), tools=[ask]))
    await runner.query("named", "s")
    waiting = runner.query("ask")
    name = waiting.origin.session_id
    interrupts = (await waiting).interrupts
    loose = runner.query("loose")
    await loose
    await asyncio.sleep(0.1)
    here = loose.origin.session_id
    assert {i.id for i in await runner.sessions()} == {"s", name, here}
    assert (await runner.query("more", here)).outcome == "completed"
    other = runner.query("gone")
    gone, kept = other.origin.session_id, weakref.ref(other)
    await other
    await asyncio.sleep(0.1)
    del other, waiting
    gc.collect()
    assert kept() is None
    assert gone not in {i.id for i in await runner.sessions()}
    assert (await runner.resume(name, {interrupts[0].id: 1})).outcome == "completed"


# -- sessions that are open


@virtual
async def test_an_open_session_is_steered_watched_and_kept():
    store = MemoryStore()
    runner = Runner(sleeper(5.0), store)
    agent = await runner.open("s")
    assert await runner.open("s") is agent
    watch = Watch(agent)
    run = runner.query("go", "s")
    await asyncio.sleep(1)
    assert agent.is_running
    agent.steer("quick")
    await run
    await agent.wait_for_idle()
    assert [m.text for m in agent.state.messages if m.role == "user"] == ["go", "quick"]
    await agent.prompt("more")
    log = await runner.events("s")
    check(log)
    assert watch.seen == len(log)
    other = Runner(sleeper(5.0), store)
    assert (await other.open("s")).state == agent.state


@virtual
async def test_a_run_that_has_just_begun_is_opened_and_steered():
    runner = Runner(sleeper(5.0), MemoryStore())
    run = runner.query("go", "s")
    agents = await asyncio.gather(runner.open("s"), runner.open("s"))
    assert agents[0] is agents[1]
    agents[0].steer("quick")
    await asyncio.sleep(1)
    assert agents[0].is_running
    result = await run
    assert [m.text for m in result.messages if m.role == "user"] == ["go", "quick"]


@virtual
async def test_what_is_queued_while_idle_is_stored_and_taken_up_by_another_runner():
    store = MemoryStore()
    agent = await Runner(echo(), store).open("s")
    agent.follow_up("later")
    await asyncio.sleep(1)
    result = await Runner(echo(), store).query("now", "s")
    assert [m.text for m in result.messages if m.role == "user"] == ["now", "later"]


@virtual
async def test_a_session_written_by_somebody_else_meanwhile_is_loaded_again():
    store = MemoryStore()
    mine, other = Runner(echo(), store), Runner(echo(), store)
    agent = await mine.open("s")
    await mine.query("one", "s")
    await other.query("two", "s")
    assert (await mine.query("three", "s")).text.startswith("one | one | two")
    run = agent.prompt("stale")
    with pytest.raises(WrongSeq, match="somebody else"):
        await run
    check(await mine.events("s"))


def test_one_writer_per_session_across_stores(tmp_path):
    async def main():
        async with SqliteStore(tmp_path / "runs.db") as one, SqliteStore(tmp_path / "runs.db") as two:
            first, second = Runner(sleeper(0.3), one), Runner(sleeper(0.0), two)
            run = first.query("go", "s")
            while not any(isinstance(e, ToolStart) for e in list(run.values)):
                await asyncio.sleep(0.01)
            with pytest.raises(SessionLocked):
                await second.query("me too", "s")
            assert (await run).outcome == "completed"
            assert (await second.query("now", "s")).outcome == "completed"
            check(await second.events("s"))

    asyncio.run(main())


# -- stores


class Failing(MemoryStore):
    """A store that fails at an append, counted from 0, and from then on."""

    def __init__(self, at: int, error: Exception) -> None:
        super().__init__()
        self.at = at
        self.error = error
        self.count = 0

    async def append(self, session_id, expected_seq, events):
        self.count += 1
        if self.count > self.at:
            raise self.error
        await super().append(session_id, expected_seq, events)


@pytest.mark.parametrize("error", [StoreFull("the disk is full"), OSError("gone")])
@pytest.mark.parametrize("at_append", range(6))
def test_a_store_that_fails_ends_the_run_as_failed_with_the_grammar_intact(at_append, error):
    @virtual
    async def main():
        ran = []

        @tool
        async def slow(seconds: float) -> str:
            ran.append(seconds)
            await asyncio.sleep(seconds)
            return "ok"

        runner = Runner(sleeper(1.0, 2.0, tools=[slow]), Failing(at_append, error))
        run = runner.query("go", "s")
        seen = []
        run.subscribe(seen.append)
        with pytest.raises(StoreError, match=r"full|gone"):
            await run
        check_run(seen)
        stored = await runner.events("s") if at_append else []
        check(stored, prefix=True)
        if at_append < 5:  # the last append is that of the end itself, which was out by then
            assert seen[-1].outcome == "failed"
            assert "can't be stored" in seen[-1].error.message
            assert seen[-1].error.kind == "store"
        if not any(isinstance(e, ToolStart) for e in stored):
            assert not ran  # no tool runs whose start is not stored

    main()


@pytest.mark.parametrize("at_append", range(6))
@pytest.mark.parametrize("how", ["resume", "query"])
def test_when_the_store_works_again_the_same_runner_goes_on_from_what_was_stored(how, at_append):
    @virtual
    async def main():
        store = Failing(at_append, StoreFull("the disk is full"))
        runner = Runner(sleeper(1.0, 2.0), store, unknown_calls="rerun")
        shown = await runner.open("s")
        failed = runner.query("go", "s")
        with pytest.raises(StoreFull):
            await failed
        store.at = 1000
        if how == "resume" and not at_append:
            with pytest.raises(UnknownSession):
                await runner.resume("s")
            return
        result = await (runner.resume("s") if how == "resume" else runner.query("again", "s"))
        assert (result.outcome, result.text) == ("completed", "slept")
        log = await runner.events("s")
        check(log)
        now = await runner.open("s")
        assert now is not shown
        assert now.state == await runner.state("s")

    main()


def test_a_session_id_is_text_and_not_empty_and_what_is_no_agent_no_store_and_no_answers_is_refused():
    @virtual
    async def main():
        runner = Runner(echo(), MemoryStore())
        for agent, store in (("echo", None), (None, None), (echo(), "runs.db"), (echo(), [])):
            with pytest.raises(UsageError, match=r"Agent or a team|a store is"):
                Runner(agent, store)
        for answers in ("yes", [("a", 1)], 5):
            with pytest.raises(UsageError, match="by interrupt id"):
                runner.resume("s", answers)
        for odd in ("", 5):
            with pytest.raises(UsageError, match="non-empty text"):
                await runner.query("go", odd)
        with pytest.raises(UsageError, match="more than 0"):
            runner.replay("s", float("nan"))

    main()


@virtual
async def test_a_tool_runs_only_after_its_start_is_stored_and_the_run_ends_only_when_its_end_is():
    class Slow(MemoryStore):
        async def append(self, session_id, expected_seq, events):
            await asyncio.sleep(3)
            await super().append(session_id, expected_seq, events)

    store = Slow()
    stored = []

    @tool
    async def slow(seconds: float, ctx: ToolContext) -> str:
        stored.append(any(isinstance(e, ToolStart) and e.call_id == ctx.call_id for e in await store.load("s")))
        return "ok"

    runner = Runner(sleeper(0.0, 0.0, tools=[slow]), store)
    await runner.query("go", "s")
    assert stored == [True, True]
    assert isinstance((await store.load("s"))[-1], AgentEnd)


@virtual
async def test_a_store_that_can_not_keep_up_holds_the_run():
    class Slow(MemoryStore):
        async def append(self, session_id, expected_seq, events):
            await asyncio.sleep(len(events) * 0.01)
            await super().append(session_id, expected_seq, events)

    backlog = []
    runner = Runner(Agent(ScriptedModel(["x" * 8 * (BACKLOG * 3)])), Slow())
    agent = await runner.open("s")
    agent.events.subscribe(lambda _: backlog.append(len(agent.session.journal._waiting)))
    result = await runner.query("go", "s")
    assert len(result.text) == 8 * BACKLOG * 3
    assert BACKLOG < max(backlog) <= BACKLOG + BATCH
    check(await runner.events("s"))


@pytest.mark.parametrize("kind", [SqliteStore, JsonlStore])
def test_a_session_of_a_file_is_the_same_in_another_process(kind, tmp_path):
    async def main():
        async with kind(tmp_path / "runs") as store:
            runner = Runner(sleeper(0.01), store)
            agent = await runner.open("s")
            await runner.query("go", "s")
            state = agent.state
        async with kind(tmp_path / "runs") as store:
            runner = Runner(sleeper(0.01), store)
            assert await runner.state("s") == state
            assert (await runner.query("more", "s")).outcome == "completed"
            check(await runner.events("s"))

    asyncio.run(main())


@virtual
async def test_a_session_is_resumed_only_by_an_agent_of_its_name():
    store = MemoryStore()
    await Runner(echo(), store).query("go", "s")
    with pytest.raises(UsageError, match="of the agent 'echo', not of 'sleeper'"):
        await Runner(sleeper(1.0), store).query("go", "s")


@virtual
async def test_an_agent_that_was_changed_since_shows_as_a_change_of_configuration():
    store = MemoryStore()
    await Runner(Agent(ScriptedModel(lambda r: "a"), system_prompt="old"), store).query("go", "s")
    runner = Runner(Agent(ScriptedModel(lambda r: r.system_prompt), system_prompt="new"), store)
    assert (await runner.query("go", "s")).text == "new"
    assert (await runner.state("s")).system_prompt == "new"
    check(await runner.events("s"))


# -- forks and time


@virtual
async def test_a_fork_at_any_event_goes_its_own_way_and_the_original_stays():
    store = MemoryStore()
    runner = Runner(sleeper(1.0, 2.0), store)
    await runner.query("go", "s")
    await runner.query("on", "s")
    original = await runner.events("s")
    final = await runner.state("s")
    for seq in range(len(original)):
        fork = await runner.fork("s", seq)
        copied = await runner.events(fork)
        assert [e.type for e in copied] == [e.type for e in original[: seq + 1]]
        assert {e.origin.session_id for e in copied} == {fork}
        assert (await runner.state(fork)).messages == (await runner.state("s", seq)).messages
        await runner.query("elsewhere", fork)
        check(await runner.events(fork))
    assert await runner.events("s") == original
    assert await runner.state("s") == final
    for seq in (-1, len(original)):
        with pytest.raises(UsageError, match=f"0 to {len(original) - 1}"):
            await runner.fork("s", seq)
    with pytest.raises(UnknownSession):
        await runner.fork("nobody")


@virtual
async def test_a_fork_of_a_running_session_has_what_is_stored():
    runner = Runner(sleeper(10.0), MemoryStore())
    run = runner.query("go", "s")
    await asyncio.sleep(5)
    fork = await runner.fork("s")
    await run
    result = await runner.resume(fork, {})
    assert [i.tool_name for i in result.interrupts] == ["slow"]
    result = await runner.resume(fork, {result.interrupts[0].id: {"result": "made up"}})
    assert [m.text for m in result.messages if m.role == "tool"] == ["made up"]
    check(await runner.events(fork))


@virtual
async def test_a_replay_gives_the_events_again_at_the_pace_of_the_run():
    runner = Runner(sleeper(4.0, 10.0), MemoryStore())
    await runner.query("go", "s")
    log = await runner.events("s")
    loop = asyncio.get_running_loop()
    for speed, seconds in ((None, 0.0), (1.0, 10.0), (4.0, 2.5)):
        seen, done, began = [], asyncio.Event(), loop.time()
        runner.replay("s", speed).subscribe(seen.append, print, done.set)
        await done.wait()
        assert seen == log
        assert abs(loop.time() - began - seconds) < 0.01
    assert times(log)[-1] == pytest.approx(10.0)
    assert times(log) == sorted(times(log))
    assert times([]) == []
    failed = []
    runner.replay("nobody").subscribe(lambda _: None, failed.append)
    await asyncio.sleep(1)
    assert isinstance(failed[0], UnknownSession)


@virtual
async def test_the_state_of_a_session_at_any_event_is_what_it_was():
    runner = Runner(sleeper(1.0), MemoryStore())
    agent = await runner.open("s")
    states = []
    agent.events.subscribe(lambda _: states.append(agent.state))
    await runner.query("go", "s")
    for seq, state in enumerate(states):
        assert await runner.state("s", seq) == state


# -- processes that died


async def died(agent, kind, count=1, session="s"):
    """A store with the log of a run that ended after the n-th event of a kind."""
    runner = Runner(agent, MemoryStore())
    run = runner.query("go", session)
    run.subscribe(lambda _: None)
    await run
    log = await runner.events(session)
    cut = [i for i, e in enumerate(log) if isinstance(e, kind)][count - 1] + 1
    store = MemoryStore()
    await store.append(session, 0, log[:cut])
    return store


@virtual
async def test_an_unknown_call_is_asked_about_with_the_answers_it_takes():
    store = await died(sleeper(1.0, 2.0), ToolStart, 2)
    runner = Runner(sleeper(1.0, 2.0), store)
    result = await runner.resume("s", {})
    assert result.outcome == "interrupted"
    first, second = result.interrupts
    assert first.call_id != second.call_id
    again = await runner.resume("s", {first.id: "rerun"})
    assert [i.id for i in again.interrupts] == [second.id]
    with pytest.raises(InterruptError, match='"rerun", "fail"'):
        runner.resume("s", {second.id: "whatever"})
    result = await runner.resume("s", {second.id: "fail"})
    tools = [m for m in result.messages if m.role == "tool"]
    assert [m.is_error for m in tools] == [False, True]
    assert "unknown" in tools[1].text
    check(await runner.events("s"))


@virtual
async def test_an_answer_to_an_unknown_call_may_come_with_the_first_resume():
    store = await died(sleeper(1.0), ToolStart)
    probe = Runner(sleeper(1.0), store)
    fork = await probe.fork("s")
    name = (await probe.resume(fork, {})).interrupts[0].id
    result = await Runner(sleeper(1.0), store).resume("s", {name: {"result": "known after all"}})
    assert [m.text for m in result.messages if m.role == "tool"] == ["known after all"]


@virtual
async def test_text_that_was_being_streamed_is_withdrawn_and_asked_for_again():
    store = await died(Agent(ScriptedModel(lambda r: "a long long answer")), MessageUpdate, 3)
    runner = Runner(Agent(ScriptedModel(lambda r: "a long long answer")), store)
    run = runner.resume("s", {})
    assert (await run).text == "a long long answer"
    log = await runner.events("s")
    check(log)
    check_run(list(run.values))
    assert [e.error.kind for e in log if isinstance(e, ModelRetry)] == ["process"]
    assert len((await runner.state("s")).messages) == 2


@virtual
async def test_a_new_prompt_ends_what_a_dead_process_left_open():
    child = sleeper(1.0)
    agent = Agent(
        ScriptedModel(lambda r: ToolCall("", "sleeper", {"input": "x"}) if r.messages[-1].text == "go" else "ok"),
        tools=[as_tool(child)],
    )
    store = await died(agent, ToolStart, 2)
    runner = Runner(agent, store)
    result = await runner.query("start afresh", "s")
    assert result.text == "ok"
    log = await runner.events("s")
    check(log)
    assert [e.outcome for e in log if isinstance(e, AgentEnd)] == ["aborted", "aborted", "completed"]
    texts = [m.text for m in (await runner.state("s")).messages]
    assert texts[-2:] == ["start afresh", "ok"]
    assert "the process ended" in texts[2]


@virtual
async def test_a_prompt_after_a_death_in_the_middle_of_an_answer_keeps_what_was_said_marked():
    store = await died(echo(), MessageUpdate, 1)
    runner = Runner(echo(), store)
    result = await runner.query("again", "s")
    assert result.text == "go | again"
    messages = (await runner.state("s")).messages
    assert [m.stop_reason for m in messages if m.role == "assistant"] == ["aborted", "stop"]
    check(await runner.events("s"))


# -- what was cut off stays cut off


@virtual
async def test_side_effects_of_an_abandoned_branch_never_appear_afterwards():
    log = []

    @tool
    async def stubborn(ctx: ToolContext) -> str:
        for n in range(100):
            try:
                await asyncio.sleep(1)
            except asyncio.CancelledError:
                log.append("told to stop")
            ctx.update(f"still here {n}")
            ctx.emit("still", n)
        return "late result"

    child = Agent(ScriptedModel(lambda r: ToolCall("", "stubborn")), name="child", tools=[stubborn], limits=Limits(grace=2.0))
    root = Agent(
        ScriptedModel(lambda r: ToolCall("", "child", {"input": "x"}) if r.messages[-1].text == "go" else "fine"),
        tools=[as_tool(child)],
        limits=Limits(grace=2.0),
    )
    runner = Runner(root, MemoryStore())
    faults = []
    root.errors.subscribe(faults.append)
    run = runner.query("go", "s")
    await at(5, lambda: run.abort("enough"))
    assert (await run).outcome == "aborted"
    after = len(await runner.events("s"))
    assert (await runner.query("and now", "s")).text == "fine"
    await asyncio.sleep(200)
    events = await runner.events("s")
    check(events)
    assert log
    assert faults
    late = [e for e in events[after:] if isinstance(e, Custom) or e.type == "tool_update"]
    assert not late
    assert not any("late result" in m.text for m in (await runner.state("s")).messages)
