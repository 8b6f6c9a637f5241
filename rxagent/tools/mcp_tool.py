"""`McpTool`: one tool of an MCP server, as the engine sees it."""

from dataclasses import dataclass
from typing import Protocol, cast

import mcp_types as wire

from rxagent.messages import JsonObject, ToolDeclaration, ToolResult
from rxagent.tools.context import ToolContext


class Caller(Protocol):
    """What a tool needs of its server."""

    @property
    def name(self) -> str:
        """How the server is called in messages."""
        ...

    async def call(self, name: str, arguments: JsonObject, context: ToolContext) -> ToolResult:
        """Calls a tool by the server's own name for it."""
        ...


class McpTool:
    """One tool of an MCP server. ``annotations`` are the server's hints, such as ``readOnlyHint``: claims, not guarantees."""

    def __init__(self, server: Caller, offered: wire.Tool, name: str, *, sequential: bool) -> None:
        self.sequential = sequential
        self.timeout: float | None = None
        description = offered.description or offered.title or ""
        self.declaration = ToolDeclaration(name, description, cast("JsonObject", offered.input_schema))
        self.annotations: JsonObject = (
            offered.annotations.model_dump(mode="json", by_alias=True, exclude_none=True) if offered.annotations else {}
        )
        self._server = server
        self._name = offered.name

    def __repr__(self) -> str:
        return f"<tool {self.declaration.name} of MCP server {self._server.name}>"

    def bind(self, arguments: JsonObject) -> "McpCall":
        """Takes any arguments; the server says what is wrong with them."""
        return McpCall(self._server, self._name, arguments)


@dataclass(frozen=True, slots=True)
class McpCall:
    """One call of such a tool."""

    server: Caller
    name: str
    arguments: JsonObject

    async def start(self, context: ToolContext) -> ToolResult:
        """Calls the server; see `Caller.call`."""
        return await self.server.call(self.name, self.arguments, context)
