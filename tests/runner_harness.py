"""Runs a saga to its end under a runner, answering whatever is asked, and checks what holds of every run."""

from collections import Counter
from collections.abc import Sequence

from sagas import Saga, transcript

from rxagent import AgentState, Runner, reduce
from rxagent.events import AnyEvent, EventReader, ToolEnd, ToolStart, to_json
from rxagent.operators.verify import check
from rxagent.stores import MemoryStore

SESSION = "saga"


def answer_to(question: str, unknown: object = "rerun") -> object:
    """The same answer to the same question, in every process."""
    return unknown if "nobody knows" in question else f"yes to {question}"


async def store_of(events: Sequence[AnyEvent]) -> MemoryStore:
    """A store whose session has just these events, read from their JSON as another process would."""
    store = MemoryStore()
    reader = EventReader()
    if events:
        await store.append(SESSION, 0, [reader.read(to_json(event)) for event in events])
    return store


class Watch:
    """Compares live state with the fold of the log at every event."""

    def __init__(self, agent, log: Sequence[AnyEvent] = ()) -> None:
        self.agent = agent
        self.state = AgentState((agent.name,))
        for event in log:
            self.state = reduce(self.state, event)
        agent.events.subscribe(self._see)
        self.seen = 0

    def _see(self, event: AnyEvent) -> None:
        self.state = reduce(self.state, event)
        self.seen += 1
        assert self.agent.session._late or self.agent.state == self.state, f"{event.seq} {event.type}"


async def complete(runner: Runner, first, unknown: object = "rerun", most: int = 30):
    """Answers what is asked until the session's run is over; the last result."""
    result = await first
    for _ in range(most):
        if result.outcome != "interrupted":
            return result
        answers = {i.id: answer_to(i.question, unknown) for i in result.interrupts}
        result = await runner.resume(SESSION, answers)
    raise AssertionError(f"still asking: {result.interrupts}")


async def reference(seed: int, *, queued: bool = False) -> tuple[list[AnyEvent], list, Counter[int]]:
    """The whole log of a saga, its final transcript, and how often each call was carried out."""
    saga = Saga(seed)
    runner = Runner(saga.root, MemoryStore())
    agent = await runner.open(SESSION)
    watch = Watch(agent)
    if queued:
        agent.steer("steer 1")
        agent.steer("steer 2")
        agent.follow_up("later 1")
        agent.follow_up("later 2")
    await complete(runner, runner.query("begin", SESSION))
    log = await runner.events(SESSION)
    check(log)
    assert watch.seen == len(log)
    reader = EventReader()
    assert [reader.read(to_json(event)) for event in log] == log
    return log, transcript(agent.state), saga.ledger


def finished(events: Sequence[AnyEvent]) -> dict[str, ToolEnd]:
    """The calls that came to a result."""
    return {e.call_id: e for e in events if isinstance(e, ToolEnd) and not e.interrupted}


def check_nothing_twice(prefix: Sequence[AnyEvent], whole: Sequence[AnyEvent]) -> None:
    """No call that was finished before the cut begins after it."""
    assert list(whole[: len(prefix)]) == list(prefix)
    done = finished(prefix)
    again = [e for e in whole[len(prefix) :] if isinstance(e, ToolStart) and e.call_id in done]
    assert not again, again


def carried_out(events: Sequence[AnyEvent]) -> Counter[int]:
    """How often each numbered call of a real tool is finished in a log."""
    numbered = (e for e in finished(events).values() if e.tool_name in ("work", "ask", "watch", "leave", "broken"))
    return Counter(e.args["number"] for e in numbered if isinstance(e.args, dict))
