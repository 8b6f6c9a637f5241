"""Tools of MCP servers: real servers, written with the official SDK, as a process and over HTTP."""

import asyncio
import functools
import gc
import importlib.util
import socket
import subprocess
import sys
import threading
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

pytest.importorskip("mcp")

import mcp

import rxagent.tools.mcp as room
from rxagent import Agent
from rxagent.engine.answers import check_fit
from rxagent.errors import InterruptError, McpServerError, ToolFailed, ToolInterrupted
from rxagent.events import NOWHERE, Interrupt, ResponseEnd, ToolCallEnd, ToolCallStart, ToolEnd, ToolUpdate
from rxagent.messages import ImagePart, TextPart
from rxagent.models import ScriptedModel
from rxagent.signals import Signal
from rxagent.tools import Tool, ToolContext
from rxagent.tools.context import Told
from rxagent.tools.mcp import McpServer

SERVER = Path(__file__).with_name("mcp_server.py")


def in_process():
    """The server's object itself, in this process."""
    spec = importlib.util.spec_from_file_location("mcp_server_under_test", SERVER)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return McpServer(module.server)


def as_process(**options):
    return McpServer.stdio(sys.executable, str(SERVER), "stdio", **options)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture(scope="module")
def url():
    port = free_port()
    process = subprocess.Popen([sys.executable, str(SERVER), "http", str(port)], stderr=subprocess.DEVNULL)

    async def listening():
        async with asyncio.timeout(60):
            while True:
                try:
                    _, writer = await asyncio.open_connection("127.0.0.1", port)
                except OSError:
                    await asyncio.sleep(0.05)
                    continue
                writer.close()
                await writer.wait_closed()
                return

    asyncio.run(listening())
    yield f"http://127.0.0.1:{port}/mcp"
    process.kill()
    process.wait()


@pytest.fixture(params=["object", "stdio", "http"])
def connect(request, url):
    """Makes an `McpServer`, by each way to reach one."""
    return {"object": in_process, "stdio": as_process, "http": lambda: McpServer.http(url)}[request.param]


class Host:
    """The engine's side of a call, as far as a tool sees it."""

    origin = NOWHERE

    def __init__(self, *answers):
        self.answers = list(answers)
        self.questions = []
        self.updates = []

    def update(self, call_id, partial):
        self.updates.append(partial)
        return Told()

    def emit(self, name, data):
        return Told()

    def answer(self, call_id, question, schema):
        self.questions.append((question, schema))
        return (True, self.answers.pop(0)) if self.answers else (False, None)


async def called(server, name, arguments, host=None):
    (tool,) = [tool for tool in server.tools if tool.declaration.name == name]
    context = ToolContext(host or Host(), "c1", name, Signal(), None)
    return await tool.bind(arguments).start(context)


def test_its_tools_are_tools(connect):
    async def main():
        async with connect() as server:
            assert all(isinstance(tool, Tool) for tool in server.tools)
            tools = {tool.declaration.name: tool for tool in server.tools}
            add = tools["add"]
            assert add.declaration.description == "Adds two numbers."
            assert add.declaration.parameters["required"] == ["a", "b"]
            assert add.annotations == {"readOnlyHint": True}
            assert add.sequential is False

    asyncio.run(main())


def test_results_of_all_kinds_arrive(connect):
    async def main():
        async with connect() as server:
            assert (await called(server, "add", {"a": 2, "b": "3"})).text == "5"  # the server coerces
            point = await called(server, "point", {})
            assert point.details == {"x": 1, "y": 2}
            pixel = await called(server, "pixel", {})
            assert isinstance(pixel.content[0], TextPart)
            assert isinstance(pixel.content[1], ImagePart)
            assert pixel.content[1].mime_type == "image/png"
            odd = await called(server, "odd_things", {})
            assert [part.text for part in odd.content] == [
                "[resource readme, file:///readme: read it]",
                "[resource x:1]\ninside",
                "[resource x:2, a/b: not shown]",
                "[audio, audio/wav: not shown]",
            ]

    asyncio.run(main())


def test_what_the_server_refuses_is_an_error_result(connect):
    async def main():
        async with connect() as server:
            failed = await called(server, "fail", {"reason": "no milk"})
            assert failed.is_error
            assert "no milk" in failed.text
            assert len(failed.summary) <= 120
            wrong = await called(server, "add", {"a": "x"})
            assert wrong.is_error
            assert "b" in wrong.text
            assert (await called(server, "add", {"a": 1, "b": 1})).text == "2"

    asyncio.run(main())


def test_progress_arrives_in_order_before_the_result(connect):
    async def main():
        async with connect() as server:
            host = Host()
            assert (await called(server, "count", {"to": 20}, host)).text == "counted"
            assert host.updates == [{"progress": n, "total": 20, "message": f"at {n}"} for n in range(1, 21)]

    asyncio.run(main())


def test_calls_run_side_by_side(connect):
    async def main():
        async with connect() as server:
            results = await asyncio.gather(*(called(server, "add", {"a": n, "b": n}) for n in range(30)))
            assert [result.text for result in results] == [str(2 * n) for n in range(30)]

    asyncio.run(main())


def test_a_cancelled_call_is_cancelled_at_the_server(connect, tmp_path):
    mark = tmp_path / "mark"

    async def main():
        async with connect() as server, asyncio.timeout(30):
            call = asyncio.create_task(called(server, "hang", {"path": str(mark)}))
            while not mark.exists() or mark.read_text() != "begun":
                await asyncio.sleep(0.01)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            while mark.read_text() != "cancelled":
                await asyncio.sleep(0.01)
            assert (await called(server, "add", {"a": 1, "b": 1})).text == "2"

    asyncio.run(main())


def test_a_question_of_the_server_interrupts_and_its_answer_finishes_the_call(connect):
    async def main():
        async with connect() as server:
            unanswered = Host()
            with pytest.raises(ToolInterrupted, match="flavour"):
                await called(server, "ice", {}, unanswered)
            question, schema = unanswered.questions[0]
            assert question == "Which flavour?"
            assert schema["properties"]["flavour"]["type"] == "string"
            interrupt = Interrupt("c:0", question, schema)
            for answer in ({"flavour": "lemon"}, "mint", None, False):  # what is taken below is also let through by resume
                check_fit(interrupt, answer)
            for answer in ({"flavour": 7}, {}, 7, ["mint"]):
                with pytest.raises(InterruptError):
                    check_fit(interrupt, answer)
            assert (await called(server, "ice", {}, Host({"flavour": "lemon"}))).text == "lemon ice"
            assert (await called(server, "ice", {}, Host("mint"))).text == "mint ice"
            assert (await called(server, "ice", {}, Host(None))).text == "no ice: decline"

    asyncio.run(main())


@pytest.fixture
def older(monkeypatch):
    monkeypatch.setattr(room, "Client", functools.partial(mcp.Client, mode="legacy"))


def test_a_question_of_an_older_server_does_the_same(older, connect):
    async def main():
        async with connect() as server:
            with pytest.raises(ToolInterrupted, match="flavour"):
                await called(server, "old_ice", {})
            assert (await called(server, "old_ice", {}, Host({"flavour": "lemon"}))).text == "lemon ice"
            assert (await called(server, "old_ice", {}, Host(False))).text == "no ice: decline"
            assert (await called(server, "count", {"to": 2})).text == "counted"

    asyncio.run(main())


def test_an_older_servers_questions_from_parallel_calls_are_not_mixed_up(older):
    async def main():
        async with as_process() as server:
            hosts = [Host("a"), Host("b")]
            calls = [called(server, "old_ice", {}, host) for host in hosts]
            first, second = await asyncio.gather(*calls, return_exceptions=True)
            assert "sequential=True" in str(first)  # it can't be told whose question it is, so nobody's is answered
            assert isinstance(second, ToolFailed) or second.text == "b ice"

    asyncio.run(main())


def test_names_are_made_usable_unique_and_prefixed():
    async def main():
        async with as_process(prefix="test.") as server:
            names = [tool.declaration.name for tool in server.tools]
            assert len(set(names)) == len(names)
            assert all(name.startswith("test_") for name in names)
            assert (await called(server, "test_n_m__with_odd_chars", {})).text == "found"
            assert (await called(server, "test_n_m__with_odd_chars_2", {})).text == "twin"

    asyncio.run(main())


def test_a_process_sees_the_variables_it_is_given_and_no_others(monkeypatch):
    monkeypatch.setenv("SECRET_KEY", "1234")

    async def main():
        async with as_process(env={"GIVEN": "yes"}) as server:
            assert (await called(server, "environment", {"name": "GIVEN"})).text == "yes"
            assert (await called(server, "environment", {"name": "SECRET_KEY"})).text == "unset"

    asyncio.run(main())


def test_a_server_that_dies_fails_its_calls_and_nothing_else(tmp_path):
    async def main():
        async with as_process() as server, asyncio.timeout(30):
            hanging = asyncio.create_task(called(server, "hang", {"path": str(tmp_path / "mark")}))
            while not (tmp_path / "mark").exists():
                await asyncio.sleep(0.01)
            with pytest.raises(ToolFailed, match=r"mcp_server\.py"):
                await called(server, "crash", {})
            with pytest.raises(ToolFailed):
                await hanging
            with pytest.raises(ToolFailed):
                await called(server, "add", {"a": 1, "b": 1})

    asyncio.run(main())


def test_after_the_end_its_tools_say_so():
    async def main():
        async with in_process() as server:
            pass
        with pytest.raises(ToolFailed, match="closed"):
            await called(server, "add", {"a": 1, "b": 1})
        with pytest.raises(McpServerError):
            await server.refresh()
        async with server:  # and can be opened again
            assert (await called(server, "add", {"a": 1, "b": 1})).text == "2"

    asyncio.run(main())


@pytest.mark.parametrize(
    ("target", "why"),
    [
        (McpServer.stdio("no-such-command-anywhere"), "no-such-command"),
        (McpServer.stdio(sys.executable, "-c", "print('hello')"), "hello"),
        (McpServer.stdio(sys.executable, "-c", "raise SystemExit(4)"), "SystemExit"),
        (McpServer.http("http://127.0.0.1:9/mcp"), "127.0.0.1:9"),
        (McpServer.http("nonsense"), "nonsense"),
    ],
)
def test_what_cannot_be_reached_is_a_clear_error(target, why):
    async def main():
        async with asyncio.timeout(60):
            with pytest.raises(McpServerError, match=why):
                async with target:
                    pass
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(main())
    gc.collect()


def test_a_server_that_never_answers_is_given_up():
    async def main():
        silent = McpServer(mcp.StdioServerParameters(command=sys.executable, args=["-c", "input(); input()"]), timeout=0.5)
        with pytest.raises(McpServerError, match=r"0\.5 s"):
            async with silent:
                pass

    asyncio.run(asyncio.wait_for(main(), 60))


def test_headers_reach_the_server_and_no_message():
    seen = []

    @asynccontextmanager
    async def web():
        async def answer(reader, writer):
            seen.append(await reader.readuntil(b"\r\n\r\n"))
            writer.write(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            await writer.drain()
            writer.close()

        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        async with server:
            yield server.sockets[0].getsockname()[1]

    async def main():
        async with web() as port:
            with pytest.raises(McpServerError) as failure:
                async with McpServer.http(f"http://127.0.0.1:{port}/mcp", headers={"Authorization": "Bearer s3cret"}):
                    pass
            assert b"Bearer s3cret" in seen[0]
            assert "s3cret" not in str(failure.value)

    asyncio.run(asyncio.wait_for(main(), 60))


def test_other_loops_may_call_while_its_own_loop_runs():
    async def main():
        async with as_process() as server:
            results = []
            host = Host()

            def elsewhere():
                results.append(asyncio.run(called(server, "count", {"to": 3}, host)).text)

            thread = threading.Thread(target=elsewhere)
            thread.start()
            while thread.is_alive():
                await asyncio.sleep(0.01)
            assert results == ["counted"]
            assert len(host.updates) == 3

    asyncio.run(main())


def turn(name, arguments):
    return [ToolCallStart("c1", name), ToolCallEnd(arguments=arguments), ResponseEnd("tool_use")]


def test_an_agent_uses_them(connect):
    async def main():
        async with connect() as server:
            agent = Agent(ScriptedModel([turn("count", {"to": 3}), turn("add", {"a": 40, "b": 2}), "done"]), tools=server.tools)
            events = []
            agent.events.subscribe(events.append)
            result = await agent.prompt("go")
            assert result.text == "done"
            assert [e.partial["progress"] for e in events if isinstance(e, ToolUpdate)] == [1, 2, 3]
            assert [e.result.text for e in events if isinstance(e, ToolEnd)] == ["counted", "42"]

    asyncio.run(main())


def test_an_agent_that_is_aborted_cancels_the_servers_work(tmp_path):
    mark = tmp_path / "mark"

    async def main():
        async with as_process() as server, asyncio.timeout(30):
            agent = Agent(ScriptedModel([turn("hang", {"path": str(mark)})]), tools=server.tools)
            run = agent.prompt("go")
            while not mark.exists() or mark.read_text() != "begun":
                await asyncio.sleep(0.01)
            agent.abort()
            assert (await run).outcome == "aborted"
            while mark.read_text() != "cancelled":
                await asyncio.sleep(0.01)

    asyncio.run(main())


def test_a_question_ends_the_run_as_interrupted():
    async def main():
        async with as_process() as server:
            agent = Agent(ScriptedModel([turn("ice", {})]), tools=server.tools)
            assert (await agent.prompt("go")).outcome == "interrupted"
            (interrupt,) = agent.state.interrupts
            assert interrupt.question == "Which flavour?"
            assert interrupt.tool_name == "ice"

    asyncio.run(main())


def test_without_the_sdk_the_error_names_the_extra():
    code = "import sys; sys.modules['mcp'] = None\nimport rxagent\nimport rxagent.tools.mcp"
    failed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "MissingExtra" in failed.stderr
    assert "rxagent[mcp]" in failed.stderr


def test_importing_rxagent_does_not_load_the_sdk():
    code = "import sys, rxagent; sys.exit('mcp' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
