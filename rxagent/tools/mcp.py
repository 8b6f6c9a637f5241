"""Tools from MCP servers, through the official SDK: ``pip install 'rxagent[mcp]'``.

    async with McpServer.stdio("python", "server.py") as server:
        agent = Agent("openai:…", tools=server.tools)

- The server judges the arguments; what it refuses is an error result for the model.
- Progress becomes `ToolUpdate`s; a cancelled call is cancelled at the server.
- What a server asks of the user in the midst of a call (elicitation) becomes an `Interrupt`.
"""

import asyncio
import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self, cast

from rxagent.errors import McpServerError, MissingExtra, ToolFailed, ToolInterrupted
from rxagent.messages import JsonObject, ToolResult
from rxagent.tools.context import ToolContext

try:
    import httpx2
    import mcp_types as wire
    from mcp import Client, MCPError, StdioServerParameters
    from mcp.client.session import ClientRequestContext
    from mcp.client.streamable_http import streamable_http_client
except ImportError as error:
    raise MissingExtra("tools from MCP servers need the mcp package, version 2: pip install 'rxagent[mcp]'") from error

from rxagent.tools.mcp_tool import McpTool
from rxagent.tools.mcp_values import answered, asked, result_of

ROUNDS = 20  # times that a server may come back with questions before it has to answer
PAUSE = 0.1  # seconds before asking again where the server wants nothing but time
_UNUSABLE = re.compile(r"[^A-Za-z0-9_-]")


@dataclass(eq=False, slots=True)
class _Running:
    """A call on its way, and how it ended if the server asked a question that nobody has answered yet."""

    context: ToolContext
    task: "asyncio.Task[ToolResult] | None" = None
    interrupted: ToolInterrupted | None = None


class McpServer:
    """A connection to one MCP server: an async context manager, open as long as its tools are to work.

    ``tools`` are those the server offered when it was opened, or at the last ``refresh``. They may be used from any
    event loop while the one that opened the connection is running.

    Args:
        target: whatever the SDK's ``Client`` takes: a URL, ``StdioServerParameters``, a transport, a server object.
        prefix: put before the tools' names, so that several servers don't clash.
        sequential: a batch with one of these tools runs one call at a time. Needed where an older server
            (before protocol 2026-07-28) asks questions in calls that would otherwise run side by side.
        timeout: seconds that connecting may take.
    """

    def __init__(self, target: object, *, prefix: str = "", sequential: bool = False, timeout: float = 30.0) -> None:
        self.name = _described(target)
        self.tools: Sequence[McpTool] = ()
        self._target = target
        self._headers: dict[str, str] | None = None
        self._prefix = prefix
        self._sequential = sequential
        self._timeout = timeout
        self._client: Client | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop = asyncio.Event()
        self._connection: asyncio.Task[None] | None = None
        self._running: set[_Running] = set()

    @classmethod
    def stdio(
        cls, command: str, *args: str, env: Mapping[str, str] | None = None, cwd: str | Path | None = None, prefix: str = ""
    ) -> Self:
        """A server that is started as a process and spoken to on its standard streams.

        It sees a few safe variables of this process's environment, and ``env``.
        """
        parameters = StdioServerParameters(command=command, args=list(args), env=dict(env) if env else None, cwd=cwd)
        return cls(parameters, prefix=prefix)

    @classmethod
    def http(cls, url: str, *, headers: Mapping[str, str] | None = None, prefix: str = "") -> Self:
        """A server at a URL, over streamable HTTP. ``headers``: for authentication; they are never shown in errors."""
        server = cls(url, prefix=prefix)
        server._headers = dict(headers) if headers else None
        return server

    async def __aenter__(self) -> Self:
        """Connects and lists the tools.

        Raises:
            McpServerError: the server can't be started or reached, isn't an MCP server, or took too long.
        """
        self._loop = asyncio.get_running_loop()
        ready: asyncio.Future[Client] = self._loop.create_future()
        # A task of its own, because the SDK's scopes must be left by the task that entered them.
        self._stop = asyncio.Event()
        self._connection = self._loop.create_task(self._connect(ready), name=f"MCP server {self.name}")
        try:
            async with asyncio.timeout(self._timeout):
                self._client = await ready
                await self.refresh()
        except TimeoutError as error:
            await self._disconnect()
            raise McpServerError(f"MCP server {self.name} did not answer within {self._timeout:g} s") from error
        except BaseException:
            await self._disconnect()
            raise
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self._disconnect()

    async def refresh(self) -> None:
        """Lists the tools again; agents made before keep those they have.

        Raises:
            McpServerError: not connected, or the server can't list them.
        """
        client = self._require()
        tools: list[McpTool] = []
        cursor: str | None = None
        try:
            while True:
                page = await client.list_tools(cursor=cursor, cache_mode="refresh")
                for offered in page.tools:
                    tools.append(McpTool(self, offered, self._name_for(offered.name, tools), sequential=self._sequential))
                cursor = page.next_cursor
                if cursor is None:
                    break
        except Exception as error:  # whatever the SDK, the transport or the validation of the answer raises
            raise McpServerError(f"MCP server {self.name} can't list its tools: {_reason(error)}") from error
        self.tools = tuple(tools)

    async def call(self, name: str, arguments: JsonObject, context: ToolContext) -> ToolResult:
        """Calls a tool by the server's own name for it.

        Raises:
            ToolFailed: the server refused, or is gone.
            ToolInterrupted: it asked a question that a person has to answer first.
        """
        home = self._loop
        if home is None or home is asyncio.get_running_loop():
            return await self._call(name, arguments, context)
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._call(name, arguments, context), home))

    async def _call(self, name: str, arguments: JsonObject, context: ToolContext) -> ToolResult:
        running = _Running(context)
        self._running.add(running)
        running.task = asyncio.ensure_future(self._rounds(name, arguments, context))
        try:
            return await running.task
        except asyncio.CancelledError:
            if running.interrupted is not None:
                raise running.interrupted from None
            running.task.cancel()
            raise
        except (ToolInterrupted, ToolFailed):
            raise
        except Exception as error:  # whatever the SDK, the transport or the validation of the answer raises
            raise ToolFailed(f"{name} at MCP server {self.name}: {_reason(error)}") from error
        finally:
            self._running.discard(running)

    async def _rounds(self, name: str, arguments: JsonObject, context: ToolContext) -> ToolResult:
        """Asks for the result, answering the questions that come back instead (protocol 2026-07-28)."""
        session = self._require().session
        responses: wire.InputResponses | None = None
        state: str | None = None

        async def report(progress: float, total: float | None, message: str | None) -> None:
            shown: JsonObject = {"progress": progress, "total": total, "message": message}
            await context.update({key: value for key, value in shown.items() if value is not None})

        for _ in range(ROUNDS):
            result = await session.call_tool(
                name,
                cast("dict[str, object]", arguments),
                progress_callback=report,
                input_responses=responses,
                request_state=state,
                allow_input_required=True,
            )
            if isinstance(result, wire.CallToolResult):
                return result_of(result)
            if not result.input_requests:  # it wants time
                await asyncio.sleep(PAUSE)
            responses = {key: await _respond(request, context) for key, request in (result.input_requests or {}).items()}
            state = result.request_state
        raise ToolFailed(f"{name} asked {ROUNDS} times and never answered")

    async def _asked(self, context: ClientRequestContext, params: wire.ElicitRequestParams) -> wire.ElicitResult | wire.ErrorData:
        """A question of an older server, which doesn't say in which call it arose."""
        del context
        if len(self._running) != 1:
            return wire.ErrorData(
                code=wire.INVALID_REQUEST,
                message="several calls are running, and it can't be told which of them asks; "
                "connect with McpServer(…, sequential=True)",
            )
        (running,) = self._running
        question, schema = asked(params)
        try:
            return answered(params, await running.context.interrupt(question, schema))
        except ToolInterrupted as error:
            running.interrupted = error
            if running.task is not None:
                running.task.cancel()
            return wire.ElicitResult(action="cancel")

    async def _connect(self, ready: "asyncio.Future[Client]") -> None:
        try:
            async with self._clients() as client:
                if not ready.done():
                    ready.set_result(client)
                await self._stop.wait()
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # the SDK's task groups raise groups, also of their own cancellations
            if not ready.done():
                ready.set_exception(McpServerError(f"MCP server {self.name} can't be reached: {_reason(error)}"))
        finally:
            self._client = None

    @asynccontextmanager
    async def _clients(self) -> AsyncGenerator[Client, None]:
        """The connected client."""
        target = self._target
        if isinstance(target, str):
            async with (
                httpx2.AsyncClient(headers=self._headers, timeout=httpx2.Timeout(30.0, read=300.0)) as http,
                self._made(streamable_http_client(target, http_client=http)) as client,
            ):
                yield client
        else:
            async with self._made(target) as client:
                yield client

    def _made(self, target: object) -> Client:
        return Client(cast("str", target), elicitation_callback=self._asked)

    async def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is None:
            return
        if self._client is None:  # still connecting, or broken
            connection.cancel()
        self._stop.set()
        await asyncio.wait((connection,))
        self._client = None

    def _require(self) -> Client:
        if self._client is None:
            raise McpServerError(f"the connection to MCP server {self.name} is closed")
        return self._client

    def _name_for(self, name: str, taken: "Sequence[McpTool]") -> str:
        """A name that every provider takes, and that no other tool of this server has."""
        plain = _UNUSABLE.sub("_", self._prefix + name)[:64]
        names = {tool.declaration.name for tool in taken}
        count = 1
        unique = plain
        while unique in names:
            count += 1
            unique = f"{plain[: 63 - len(str(count))]}_{count}"
        return unique


async def _respond(request: "wire.InputRequest", context: ToolContext) -> "wire.ElicitResult":
    if not isinstance(request, wire.ElicitRequest):
        raise ToolFailed(f"the MCP server asks for {request.method}, which this client doesn't offer")
    question, schema = asked(request.params)
    return answered(request.params, await context.interrupt(question, schema))


def _described(target: object) -> str:
    if isinstance(target, StdioServerParameters):
        return " ".join([target.command, *target.args])
    return target if isinstance(target, str) else type(target).__name__


def _reason(error: BaseException) -> str:
    """The first plain error in what may be a group of groups."""
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    return str(error) if isinstance(error, MCPError | McpServerError) else f"{type(error).__name__}: {error}"
