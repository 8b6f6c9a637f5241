"""Scenarios that together reach every await of the engine."""

import asyncio
import contextlib
from dataclasses import dataclass, field, replace

import reactivex as rx

from rxagent import AgentState, Hooks, ToolContext, errors, hooks, reduce, tool
from rxagent.events import ModelError, ResponseEnd, TextDelta
from rxagent.messages import ToolCall
from rxagent.models import ScriptedModel
from rxagent.operators.verify import check


@dataclass
class Stage:
    """The agents of a scenario, watched."""

    modules: dict
    agents: list = field(default_factory=list)
    logs: list = field(default_factory=list)
    folded: list = field(default_factory=list)
    problems: list = field(default_factory=list)

    @property
    def engine(self):
        """The engine that is probed: the agents, and what they are given, come from there."""
        return self.modules["rxagent.engine"]

    def agent(self, model, **options):
        made = self.engine.Agent(model, **options)
        self.watch(made)
        return made

    def again(self, agent, log):
        """Another process takes up what a log says."""
        log = list(log)
        made = agent.over(agent.restored(log[0].origin.session_id, log))
        self.watch(made, log)
        return made

    def watch(self, agent, log=()) -> None:
        log, state = list(log), [AgentState((agent.name,))]
        for event in log:
            state[0] = reduce(state[0], event)

        def see(event) -> None:
            log.append(event)
            state[0] = reduce(state[0], event)
            if not agent._session._late and agent.state != state[0]:
                self.problems.append(f"{event.seq} {event.type}: live state differs from the fold")

        agent.events.subscribe(see)
        agent.errors.subscribe(lambda fault: None)
        self.agents.append(agent)
        self.logs.append(log)

    def abort(self) -> None:
        for agent in self.agents:
            agent.abort("from the test")

    def check(self) -> None:
        assert not self.problems, self.problems
        for log in self.logs:
            if not log:
                continue  # an agent that was only made
            restored = log[0].seq == 0 and log[0] in self.logs[0] and log is not self.logs[0]
            unmoved = restored and log == self.logs[0][: len(log)]  # the fault came before the process did anything
            check(log, prefix=unmoved)
            if unmoved:
                continue
            own = [e for e in log if len(e.origin.path) == 1]
            assert sum(e.type == "agent_start" for e in own) == sum(e.type == "agent_end" for e in own)


class Scenario:
    def __init__(self, play) -> None:
        self.play = play
        self.name = play.__name__

    @property
    def real(self) -> bool:
        """Whether it needs real threads, and so a real clock."""
        return getattr(self.play, "real", False)

    def stage(self, modules) -> Stage:
        return Stage(modules)


SCENARIOS: list[Scenario] = []


def scenario(play):
    SCENARIOS.append(Scenario(play))
    return play


@tool
async def add(a: int, b: int, ctx: ToolContext) -> int:
    await ctx.update("adding")
    await ctx.emit("note", a)
    return a + b


@tool
def in_thread(ctx: ToolContext) -> str:
    ctx.update("half")
    return "ok"


@tool
async def stream():
    for i in range(3):
        await asyncio.sleep(0.1)
        yield i


@tool
async def observable():
    return rx.of(1, 2)


@tool
async def slow() -> str:
    await asyncio.sleep(50)
    return "slow"


@tool
async def careful(ctx: ToolContext) -> str:
    await ctx.signal.wait()
    return "let go"


@tool
async def stubborn(ctx: ToolContext) -> str:
    for _ in range(10):
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(3 if ctx.signal else 0)
    return "too late"


def calls(*names: str, **arguments):
    return [ToolCall(f"c{i}", name, arguments if name == "add" else {}) for i, name in enumerate(names)]


async def wait(*args) -> None:
    await asyncio.sleep(0.01)


async def same(messages):
    await asyncio.sleep(0.01)
    return messages


async def listener(event) -> None:
    await asyncio.sleep(0.001)


@scenario
async def tools_hooks_and_listeners(stage: Stage) -> None:
    model = ScriptedModel([["text", *calls("add", "in_thread", "stream", "observable", a=1, b=2)], "done", "more", "and more"])
    every = Hooks(
        transform_context=same,
        convert_to_model=same,
        prepare_request=wait,
        before_tool=wait,
        after_tool=wait,
        after_turn=wait,
        get_api_key=wait,
    )
    agent = stage.agent(model, tools=[add, in_thread, stream, observable], hooks=every)
    agent.subscribe(listener)
    agent.subscribe(listener, capacity=3)
    run = agent.prompt("x")
    agent.follow_up("f")
    await asyncio.sleep(0.1)
    agent.steer("s")
    await run
    await agent.wait_for_idle()


@scenario
async def retries_fallbacks_and_timeouts(stage: Stage) -> None:
    bad = [TextDelta("half"), ModelError("overloaded", "busy", retryable=True)]
    first = ScriptedModel([bad, ModelError("server", "down", retryable=True)])
    agent = stage.agent([first, ScriptedModel(["fine"], name="second")], retry=stage.engine.Retry(attempts=2))
    agent.subscribe(listener)
    await agent.prompt("x")
    slow_model = ScriptedModel(["never"], delay=100)
    agent.model = slow_model
    agent.limits = stage.engine.Limits(first_event_timeout=1)
    agent.retry_policy = stage.engine.Retry(attempts=1)
    await agent.prompt("y")


@scenario
async def limits_and_errors(stage: Stage) -> None:
    agent = stage.agent(ScriptedModel([calls("add", a=1, b=1)] * 3), tools=[add], limits=stage.engine.Limits(max_turns=1))
    await agent.prompt("x")
    agent.model = ScriptedModel([ModelError("auth", "no")])
    agent.limits = stage.engine.Limits()
    await agent.retry()


@scenario
async def aborted_tools(stage: Stage) -> None:
    names = ("slow", "careful", "stubborn", "in_thread")
    agent = stage.agent(ScriptedModel([calls(*names)]), tools=[slow, careful, stubborn, in_thread])
    run = agent.prompt("x")
    await asyncio.sleep(1)
    agent.abort("stop")
    await run
    await agent.wait_for_idle()


@scenario
async def tool_timeouts_limits_and_cuts(stage: Stage) -> None:
    turns = [calls("slow", "slow", "add", a=1, b=1), calls("slow", "slow"), "done"]
    agent = stage.agent(ScriptedModel(turns), tools=[slow, add], limits=stage.engine.Limits(tool_timeout=5, max_parallel_tools=2))
    agent.subscribe(listener)
    run = agent.prompt("x")
    await asyncio.sleep(12)
    agent.steer("now", interrupt=True)
    await run


@scenario
async def an_iterator_left_early(stage: Stage) -> None:
    agent = stage.agent(ScriptedModel(["one two three"], delay=0.1))
    events = aiter(agent.prompt("x"))
    for _ in range(7):
        await anext(events)
    await events.aclose()
    await agent.wait_for_idle()


@scenario
async def a_whole_prompt(stage: Stage) -> None:
    agent = stage.agent(ScriptedModel(["one two"], delay=0.1))
    await agent._whole("x", ())
    task = asyncio.ensure_future(agent._whole("y", ()))
    await asyncio.sleep(0.05)
    task.cancel()
    await asyncio.wait([task])


@scenario
async def a_slow_listener_in_front_of_parallel_tools(stage: Stage) -> None:
    agent = stage.agent(ScriptedModel([calls("add", "add", "stream", a=1, b=1), "done"]), tools=[add, stream])

    async def very_slow(event) -> None:
        await asyncio.sleep(0.2)

    agent.subscribe(very_slow)
    await agent.prompt("x")


@scenario
async def a_cold_run(stage: Stage) -> None:
    engine = stage.modules["rxagent.engine"]
    log = []
    context = engine.AgentContext(tools=[add])
    cold = engine.run_loop("hi", context, engine.LoopConfig(model=ScriptedModel(["hello"])))
    done = asyncio.Event()
    subscription = cold.subscribe(log.append, lambda error: done.set(), done.set)
    await asyncio.wait([asyncio.ensure_future(done.wait())], timeout=5)
    subscription.dispose()
    cold.subscribe().dispose()


@scenario
async def interrupted(stage: Stage) -> None:
    ask_first = Hooks(before_tool=lambda call: hooks.Ask("sure?"))
    agent = stage.agent(ScriptedModel([calls("add", a=1, b=1)]), tools=[add], hooks=ask_first)
    agent.subscribe(listener)
    await agent.prompt("x")


async def ask(ctx: ToolContext) -> str:
    return f"answer: {await ctx.interrupt('which?')}"


def answers(agent) -> dict[str, str]:
    return {interrupt.id: "this" for interrupt in agent.state.interrupts}


def with_child(stage: Stage, *child_turns, tools=(), **options):
    as_tool = stage.modules["rxagent.teams"].as_tool
    child = stage.modules["rxagent.engine"].Agent(ScriptedModel(child_turns), name="child", tools=tools, **options)
    parent = ScriptedModel([[ToolCall("k", "child", {"input": "do it"})], "parent done"])
    return stage.agent(parent, tools=[as_tool(child)], name="parent")


@scenario
async def a_child(stage: Stage) -> None:
    agent = with_child(stage, calls("add", "in_thread", a=1, b=1), "child done", tools=[add, in_thread])
    agent.subscribe(listener)
    await agent.prompt("x")
    await agent.wait_for_idle()


@scenario
async def an_interrupted_child(stage: Stage) -> None:
    agent = with_child(stage, calls("ask"), "child done", tools=[tool(ask)])
    agent.subscribe(listener)
    await agent.prompt("x")
    await agent.resume(answers(agent))


@scenario
async def interrupts_and_their_answers(stage: Stage) -> None:
    agent = stage.agent(ScriptedModel([calls("ask", "add", a=1, b=1), "done"]), tools=[tool(ask), add])
    agent.subscribe(listener)
    await agent.prompt("x")
    await agent.resume(answers(agent))


@scenario
async def a_handoff(stage: Stage) -> None:
    teams = stage.modules["rxagent.teams"]
    target = stage.modules["rxagent.engine"].Agent(ScriptedModel(["target here", "still here"]), name="target")
    give = teams.handoff(target)
    agent = stage.agent(ScriptedModel([[ToolCall("h", give.declaration.name, {})]]), tools=[give])
    agent.subscribe(listener)
    await agent.prompt("x")
    await agent.prompt("y")


@scenario
async def a_hook_that_changes_the_configuration(stage: Stage) -> None:
    agent = stage.agent(ScriptedModel(["a"]), hooks=Hooks(prepare_request=lambda r: replace(r, system_prompt="new")))
    await agent.prompt("x")


class Journal:
    """Keeps nothing, but says so a little later."""

    def append(self, event) -> None:
        pass

    async def acknowledged(self) -> None:
        await asyncio.sleep(0.001)

    async def finished(self) -> None:
        await asyncio.sleep(0.001)


async def take_up_everywhere(stage: Stage, make) -> None:
    log = list(stage.logs[0])
    for cut in range(2, len(log) + 1):
        agent = stage.again(make(), log[:cut])
        agent._session.journal = Journal()
        agent.subscribe(listener)
        with contextlib.suppress(errors.UsageError):
            await agent.resume({})
        with contextlib.suppress(errors.UsageError):
            await agent.resume(answers(agent))
        again = stage.again(make(), log[:cut])
        launch = stage.modules["rxagent.engine.launch"]
        with contextlib.suppress(errors.UsageError):
            await again._begin("resume", launch.with_answers(again.session, {}, "rerun"))


@scenario
async def resumed_runs_that_a_process_left_at_any_event(stage: Stage) -> None:
    def make():
        def answer(request):
            done = sum(m.role == "tool" for m in request.messages)
            return calls("ask", "add", a=1, b=1) if done == 0 else "done"

        return stage.agent(ScriptedModel(answer), tools=[tool(ask), add])

    first = make()
    await first.prompt("x")
    await first.resume(answers(first))
    await take_up_everywhere(stage, make)


@scenario
async def runs_that_a_process_left_at_any_event(stage: Stage) -> None:
    def make():
        agent = with_child(stage, [*calls("ask", "add", a=1, b=1)], "child done", tools=[tool(ask), add])
        agent.model = ScriptedModel(lambda request: answer(request))
        return agent

    def answer(request):
        done = sum(m.role == "tool" for m in request.messages)
        return [["text", ToolCall("k", "child", {"input": "do it"})], "parent done"][min(done, 1)]

    first = make()
    first.follow_up("f")
    await first.prompt(["x", "y"])
    await take_up_everywhere(stage, make)


@scenario
async def listeners_behind_the_run(stage: Stage) -> None:
    agent = stage.agent(ScriptedModel([[ResponseEnd()]]))

    async def very_slow(event) -> None:
        await asyncio.sleep(0.2)

    agent.subscribe(very_slow, capacity=100)
    await agent.prompt("x")
    await agent.wait_for_idle()


@scenario
async def progress_from_a_thread(stage: Stage) -> None:
    agent = stage.agent(ScriptedModel([calls("in_thread"), "done"]), tools=[in_thread])
    await agent.prompt("x")


progress_from_a_thread.real = True  # under a virtual loop thread work runs inline
