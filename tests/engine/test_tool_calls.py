"""Tool calls: every kind of tool, every way to go wrong, modes, limits, progress, results."""

import asyncio
import threading
from dataclasses import dataclass

import pytest
import reactivex as rx
from agent_harness import Watched, virtual
from pydantic import BaseModel

from rxagent import Agent, Limits, ToolContext, ToolResult, tool
from rxagent.errors import ToolFailed
from rxagent.events import (
    Custom,
    ResponseEnd,
    ResponseStart,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
    ToolEnd,
    ToolStart,
    ToolUpdate,
)
from rxagent.flow import Hub
from rxagent.messages import ImagePart, TextPart, ToolCall, ToolResultMessage
from rxagent.models import ScriptedModel


async def run_tools(*tools, calls, limits=None, deps=None, **options) -> Watched:
    w = Watched(Agent(ScriptedModel([list(calls), "done"]), tools=tools, limits=limits, deps=deps, **options))
    result = await w.agent.prompt("x")
    assert result.outcome == "completed"
    w.check()
    return w


def call(name: str, call_id: str = "c", /, **arguments) -> ToolCall:
    return ToolCall(call_id, name, arguments)


async def only_result(function, **arguments):
    made = tool(function)
    w = await run_tools(made, calls=[call(made.__name__, **arguments)])
    return w.of(ToolEnd)[0]


@virtual
async def test_plain_functions_coroutines_generators_and_observables_are_tools():
    def plain(x: int) -> int:
        assert x
        return x + 1

    async def coroutine(x: int) -> int:
        return x + 1

    async def async_generator(x: int):
        yield x
        yield x + 1

    def generator(x: int):
        yield x
        yield x + 1

    def observable(x: int):
        return rx.of(x, x + 1)

    async def gives_observable(x: int):
        return rx.of(x, x + 1)

    for function, updates in [
        (plain, []),
        (coroutine, []),
        (async_generator, [1, 2]),
        (generator, [1, 2]),
        (observable, [1, 2]),
        (gives_observable, [1, 2]),
    ]:
        made = tool(function)
        w = await run_tools(made, calls=[call(made.__name__, x=1)])
        assert [u.partial for u in w.of(ToolUpdate)] == updates, function
        assert w.of(ToolEnd)[0].result.text == "2", function


@virtual
async def test_a_stream_without_items_is_an_empty_result():
    def nothing():
        return rx.empty()

    async def no_items():
        return
        yield

    for function in (nothing, no_items):
        end = await only_result(function)
        assert (end.result.content, end.is_error) == ((), False)


@virtual
async def test_a_stream_that_fails_after_progress_is_an_error_result_and_the_progress_was_shown():
    async def half():
        yield "one"
        raise ValueError("gone")

    made = tool(half)
    w = await run_tools(made, calls=[call("half")])
    assert [u.partial for u in w.of(ToolUpdate)] == ["one"]
    assert w.of(ToolEnd)[0].is_error
    assert "gone" in w.of(ToolEnd)[0].result.text


def test_plain_functions_run_in_a_thread_of_their_own_and_see_the_context_variables():
    here = threading.get_ident()
    seen = []

    @tool
    def where(ctx: ToolContext) -> str:
        seen.append(threading.get_ident())
        ctx.update("half")
        return "ok"

    async def main():
        return await run_tools(where, calls=[call("where")])

    w = asyncio.run(main())
    assert seen[0] != here
    assert [u.partial for u in w.of(ToolUpdate)] == ["half"]


class Point(BaseModel):
    x: int
    y: int


@dataclass
class Pair:
    a: int
    b: str


@virtual
async def test_results_of_every_kind():
    for value, text, details in [
        ("text", "text", None),
        (None, "", None),
        (4, "4", 4),
        ({"a": [1, None]}, '{"a":[1,null]}', {"a": [1, None]}),
        (Point(x=1, y=2), '{"x":1,"y":2}', {"x": 1, "y": 2}),
        (Pair(1, "b"), '{"a":1,"b":"b"}', {"a": 1, "b": "b"}),
        ([], "[]", []),
        (TextPart("part"), "part", None),
        ([TextPart("two "), TextPart("parts")], "two parts", None),
        (ToolResult("content", {"rows": 3}, summary="3 rows"), "content", {"rows": 3}),
    ]:

        async def give():
            return value  # noqa: B023 - awaited within this round

        end = await only_result(give)
        assert (end.result.text, end.result.details, end.is_error) == (text, details, False)
    picture = ImagePart("aGk=")

    async def draw():
        return picture

    assert (await only_result(draw)).result.content == (picture,)


@virtual
async def test_a_result_without_a_json_form_is_a_named_error_result():
    async def bad():
        return object()

    async def bad_details():
        return ToolResult("x", details=threading.Lock())

    async def bad_progress(ctx: ToolContext):
        ctx.update(object())
        return "never"

    for function in (bad, bad_details, bad_progress):
        end = await only_result(function)
        assert end.is_error
        assert "no JSON form" in end.result.text


@virtual
async def test_unknown_tools_invalid_arguments_and_crashes_are_error_results_the_model_sees():
    @tool
    async def div(a: int, b: int) -> float:
        return a / b

    @tool
    async def refuses() -> str:
        raise ToolFailed("not today")

    turn = [
        ResponseStart(),
        ToolCallStart("1", "nope", 0),
        ToolCallEnd(0),
        ToolCallStart("2", "div", 1),
        ToolCallDelta('{"a": "x"}', 1),
        ToolCallEnd(1),
        ToolCallStart("3", "div", 2),
        ToolCallDelta('{"a": 1', 2),
        ToolCallEnd(2),
        ToolCallStart("4", "div", 3),
        ToolCallDelta('{"a": 1, "b": 0}', 3),
        ToolCallEnd(3),
        ToolCallStart("5", "refuses", 4),
        ToolCallEnd(4),
        ResponseEnd("tool_use"),
    ]
    model = ScriptedModel([turn, "done"])
    w = Watched(Agent(model, tools=[div, refuses]))
    await w.agent.prompt("x")
    w.check()
    texts = {e.call_id: e.result.text for e in w.of(ToolEnd)}
    assert all(e.is_error for e in w.of(ToolEnd))
    assert "nope" in texts["1"]
    assert "div" in texts["1"]
    assert "a: " in texts["2"]
    assert "b: " in texts["2"]
    assert "not a JSON object" in texts["3"]
    assert "ZeroDivisionError" in texts["4"]
    assert texts["5"] == "not today"
    assert {e.call_id: e.args for e in w.of(ToolStart)}["3"] == '{"a": 1'
    assert [m.call_id for m in model.requests[1].messages if isinstance(m, ToolResultMessage)] == ["1", "2", "3", "4", "5"]


@virtual
async def test_arguments_are_coerced_and_events_show_what_ran():
    got = {}

    @tool
    async def book(day: str, people: int = 2, *, point: Point | None = None) -> str:
        got.update(day=day, people=people, point=point)
        return "ok"

    w = await run_tools(book, calls=[call("book", day="mon", people="3", point={"x": "1", "y": 2})])
    assert got == {"day": "mon", "people": 3, "point": Point(x=1, y=2)}
    assert w.of(ToolStart)[0].args == {"day": "mon", "people": 3, "point": {"x": 1, "y": 2}}


@virtual
async def test_parallel_calls_start_in_call_order_and_end_as_they_finish_results_in_call_order():
    @tool
    async def wait(seconds: int) -> int:
        await asyncio.sleep(seconds)
        return seconds

    w = await run_tools(wait, calls=[call("wait", f"c{s}", seconds=s) for s in (3, 1, 2)])
    assert [e.call_id for e in w.of(ToolStart)] == ["c3", "c1", "c2"]
    assert [e.call_id for e in w.of(ToolEnd)] == ["c1", "c2", "c3"]
    assert [e.duration for e in w.of(ToolEnd)] == pytest.approx([1, 2, 3])
    assert [text for role, text in w.transcript if role == "tool"] == ["3", "1", "2"]
    assert asyncio.get_running_loop().time() == pytest.approx(3)


@pytest.mark.parametrize("how", ["mode", "tool", "limit"])
def test_sequential_calls_run_one_by_one(how):
    @virtual
    async def main():
        running = []
        most = []

        async def step(seconds: int) -> int:
            running.append(seconds)
            most.append(len(running))
            await asyncio.sleep(seconds)
            running.remove(seconds)
            return seconds

        made = tool(sequential=True)(step) if how == "tool" else tool(step)
        model = ScriptedModel([[call("step", f"c{s}", seconds=s) for s in (3, 1, 2)], "done"])
        w = Watched(Agent(model, tools=[made], limits=Limits(max_parallel_tools=1 if how == "limit" else None)))
        if how == "mode":
            w.agent.tool_mode = "sequential"
        await w.agent.prompt("x")
        w.check()
        assert max(most) == 1
        assert [(e.type, e.call_id) for e in w.log if isinstance(e, ToolStart | ToolEnd)] == [
            (kind, c) for c in ("c3", "c1", "c2") for kind in ("tool_start", "tool_end")
        ]

    main()


@virtual
async def test_max_parallel_tools_queues_the_rest():
    now, most = [], []

    @tool
    async def step(n: int) -> int:
        now.append(n)
        most.append(len(now))
        await asyncio.sleep(1)
        now.remove(n)
        return n

    await run_tools(step, calls=[call("step", f"c{n}", n=n) for n in range(10)], limits=Limits(max_parallel_tools=3))
    assert max(most) == 3
    assert asyncio.get_running_loop().time() == pytest.approx(4)


@virtual
async def test_a_tool_that_takes_too_long_gets_an_error_result_and_the_others_go_on():
    @tool
    async def slow() -> str:
        await asyncio.sleep(100)
        return "never"

    @tool(timeout=20)
    async def patient() -> str:
        await asyncio.sleep(10)
        return "made it"

    w = await run_tools(slow, patient, calls=[call("slow", "a"), call("patient", "b")], limits=Limits(tool_timeout=3))
    ends = {e.call_id: e for e in w.of(ToolEnd)}
    assert ends["a"].is_error
    assert "3 s" in ends["a"].result.text
    assert ends["b"].result.text == "made it"


@virtual
async def test_terminate_stops_the_run_only_when_every_call_of_the_batch_says_so():
    @tool
    async def stop() -> ToolResult:
        return ToolResult("bye", terminate=True)

    @tool
    async def go() -> str:
        return "on"

    model = ScriptedModel([[call("stop", "a"), call("stop", "b")], "never"])
    w = Watched(Agent(model, tools=[stop]))
    assert (await w.agent.prompt("x")).outcome == "completed"
    w.check()
    assert len(model.requests) == 1
    model = ScriptedModel([[call("stop", "a"), call("go", "b")], "went on"])
    assert (await Agent(model, tools=[stop, go]).prompt("x")).text == "went on"


@virtual
async def test_the_context_tells_who_calls_and_lets_a_tool_report_and_emit():
    seen = {}

    @tool
    async def curious(note: str, ctx: ToolContext) -> str:
        seen.update(call=ctx.call_id, tool=ctx.tool_name, agent=ctx.agent, path=ctx.path, deps=ctx.deps)
        ctx.update({"percent": 50})
        await ctx.update("almost")
        await ctx.emit("note", {"text": note})
        return "ok"

    assert "ctx" not in curious.declaration.parameters["properties"]
    w = await run_tools(curious, calls=[call("curious", "c9", note="n")], deps={"db": 1})
    assert seen == {"call": "c9", "tool": "curious", "agent": "agent", "path": ("agent",), "deps": {"db": 1}}
    assert [u.partial for u in w.of(ToolUpdate)] == [{"percent": 50}, "almost"]
    assert [(c.name, c.data) for c in w.of(Custom)] == [("note", {"text": "n"})]


@virtual
async def test_progress_of_a_stream_waits_for_slow_consumers():
    made = []

    @tool
    async def eager():
        for i in range(5):
            made.append((i, asyncio.get_running_loop().time()))
            yield i

    w = Watched(Agent(ScriptedModel([[call("eager")], "done"]), tools=[eager]))

    async def slow(event):
        if isinstance(event, ToolUpdate):
            await asyncio.sleep(1)

    w.agent.subscribe(slow)
    await w.agent.prompt("x")
    w.check()
    assert [round(t) for _, t in made] == [0, 1, 2, 3, 4]


@virtual
async def test_a_hot_source_as_a_tools_progress_is_followed_until_it_ends():
    hub: Hub[int] = Hub()

    @tool
    async def follow():
        return hub

    async def feed():
        await asyncio.sleep(1)
        for i in range(3):
            hub.on_next(i)
        hub.on_completed()

    task = asyncio.ensure_future(feed())
    w = await run_tools(follow, calls=[call("follow")])
    await task
    assert [u.partial for u in w.of(ToolUpdate)] == [0, 1, 2]


@virtual
async def test_methods_and_lambdas_and_callable_objects_can_be_tools():
    class Shop:
        def __init__(self):
            self.sold = 0

        @tool
        async def sell(self, n: int) -> int:
            """Sells."""
            self.sold += n
            return self.sold

        async def price(self, item: str) -> str:
            return f"{item}: 5"

    class Greeter:
        async def __call__(self, name: str) -> str:
            return f"hi {name}"

    shop = Shop()
    greet = tool(name="greet")(Greeter())
    w = await run_tools(
        shop.sell,
        shop.price,
        greet,
        calls=[call("sell", "1", n=2), call("price", "2", item="tea"), call("greet", "3", name="Bo")],
    )
    assert [e.result.text for e in sorted(w.of(ToolEnd), key=lambda e: e.call_id)] == ["2", "tea: 5", "hi Bo"]
    assert shop.sold == 2
