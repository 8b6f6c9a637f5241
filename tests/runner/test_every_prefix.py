"""A session can be cut after any event: a fresh runner goes on from there and comes to the same end."""

import os
import random

import pytest
from runner_harness import SESSION, Watch, carried_out, check_nothing_twice, complete, finished, reference, store_of
from sagas import Saga, transcript

from rxagent import Agent, Hooks, Limits, Runner, tool
from rxagent.errors import NothingToContinue
from rxagent.events import AgentStart, MessageUpdate, ModelError, TextDelta, ToolEnd, ToolStart
from rxagent.marble.loop import run_virtual
from rxagent.messages import ToolCall
from rxagent.models import ScriptedModel
from rxagent.operators.verify import check
from rxagent.stores import MemoryStore

REAL = ("work", "ask", "watch", "leave", "broken", "nothing")
NIGHTLY = os.environ.get("HYPOTHESIS_PROFILE") == "nightly"
# chosen for what they have: questions three deep, twins, teams, handoffs, retries
SEEDS = range(100) if NIGHTLY else (15, 37, 12)
EACH = [(seed, queued) for seed in range(100) for queued in (False, True)]
QUEUED = EACH if NIGHTLY else [(12, False), (15, True), (37, False)]


async def resumed(seed: int, prefix, policy: str, unknown: object = "rerun"):
    """The log, transcript and ledger after a fresh runner went on from a cut log."""
    saga = Saga(seed)
    runner = Runner(saga.root, await store_of(prefix), policy)
    agent = await runner.open(SESSION)
    watch = Watch(agent, prefix)
    try:
        result = await complete(runner, runner.resume(SESSION, {}), unknown)
    except NothingToContinue:
        result = None
    log = await runner.events(SESSION)
    assert watch.seen == len(log) - len(prefix)
    check(log)
    check_nothing_twice(prefix, log)
    return result, log, transcript(agent.state), saga.ledger


def cuts(log, *, every: bool = NIGHTLY):
    """The lengths of prefixes that have a prompt in them; of a stretch of deltas only the first two, unless ``every``."""
    first = next(i for i, e in enumerate(log) if isinstance(e, AgentStart))
    for cut in range(first + 1, len(log)):
        inside = cut > 2 and all(isinstance(e, MessageUpdate) for e in log[cut - 3 : cut + 1])
        if every or not inside:
            yield cut


def unknown_calls(prefix):
    """The calls of real tools that have begun and not ended."""
    last = {}
    for event in prefix:
        if isinstance(event, ToolStart | ToolEnd):
            last[event.call_id] = event
    return {i for i, e in last.items() if isinstance(e, ToolStart) and e.tool_name in REAL}


@pytest.mark.parametrize(("seed", "queued"), QUEUED)
def test_every_prefix_comes_to_the_same_transcript_when_unknown_calls_are_run_again(seed, queued):
    async def main():
        log, wanted, ledger = await reference(seed, queued=queued)
        for cut in cuts(log, every=NIGHTLY or seed == 37):
            _, whole, got, again = await resumed(seed, log[:cut], "rerun")
            assert got == wanted, f"cut at {cut}"
            assert again == ledger - carried_out(log[:cut]), f"cut at {cut}"
            assert len(finished(whole)) == len(finished(log)), f"cut at {cut}"

    run_virtual(main())


@pytest.mark.parametrize("seed", SEEDS)
def test_every_prefix_asks_about_unknown_calls_and_runs_them_only_when_told(seed):
    async def main():
        log, wanted, _ = await reference(seed)
        for cut in cuts(log):
            prefix = log[:cut]
            _, _, got, _ = await resumed(seed, prefix, "ask")
            assert got == wanted, f"cut at {cut}"
            saga = Saga(seed)
            runner = Runner(saga.root, await store_of(prefix))
            result = None
            try:
                result = await runner.resume(SESSION, {})
            except NothingToContinue:
                continue
            asked = {i.call_id for i in result.interrupts if "nobody knows" in i.question}
            assert asked == unknown_calls(prefix), f"cut at {cut}"

    run_virtual(main())


@pytest.mark.parametrize("seed", SEEDS[:2])
def test_every_prefix_goes_on_with_an_error_result_when_unknown_calls_fail(seed):
    async def main():
        log, _, ledger = await reference(seed)
        for cut in cuts(log):
            result, whole, _, again = await resumed(seed, log[:cut], "fail")
            assert result is None or result.outcome != "interrupted"
            assert not again - (ledger - carried_out(log[:cut])), f"cut at {cut}: more than in a whole run"
            unknown = {i for i, e in finished(whole).items() if e.is_error and "whether it took effect" in e.result.text}
            assert all(any(isinstance(e, ToolStart) and e.call_id == i for e in log[:cut]) for i in unknown)

    run_virtual(main())


@pytest.mark.parametrize("policy", ["rerun", "ask"])
@pytest.mark.parametrize("seed", range(60) if NIGHTLY else range(6))
def test_a_session_cut_again_and_again_comes_to_the_same_transcript(seed, policy):
    async def main():
        pick = random.Random(seed)
        log, wanted, _ = await reference(seed)
        whole = log
        for _ in range(8):
            cut = pick.choice([*cuts(whole)])
            _, whole, got, _ = await resumed(seed, whole[:cut], policy)
            assert got == wanted, f"cut at {cut}"

    run_virtual(main())


@pytest.mark.parametrize("broken", ["model", "hook", "limit"])
def test_every_prefix_of_a_run_that_fails_fails_again_and_drains_no_queue(broken):
    def agent():
        def answer(request):
            if request.messages[-1].role == "user":
                return ["a", ToolCall("", "plain")]
            return [TextDelta("half", 0), ModelError("server", "down")] if broken == "model" else ToolCall("", "plain")

        @tool
        def plain() -> str:
            return "ok"

        def fail(turn):
            if turn.turn == 1 and broken == "hook":
                raise ValueError("no")

        return Agent(ScriptedModel(answer), name="root", tools=[plain], hooks=Hooks(after_turn=fail), limits=Limits(max_turns=2))

    async def main():
        store = MemoryStore()
        runner = Runner(agent(), store)
        live = await runner.open(SESSION)
        live.follow_up("later")
        result = await runner.query("begin", SESSION)
        log = await runner.events(SESSION)
        for cut in cuts(log, every=True):
            again = Runner(agent(), await store_of(log[:cut]), "rerun")
            end = await again.resume(SESSION, {})
            assert (end.outcome, end.error.message) == (result.outcome, result.error.message), f"cut at {cut}"
            state = await again.state(SESSION)
            assert transcript(state) == transcript(live.state), f"cut at {cut}"
            assert [m.text for m in state.follow_ups] == ["later"]
            check(await again.events(SESSION))

    run_virtual(main())
