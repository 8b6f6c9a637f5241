"""An MCP server for the tests, written with the official SDK; run it with ``stdio`` or ``http PORT``."""

import os
import sys
from pathlib import Path
from typing import Annotated

import anyio
import mcp_types
from mcp.server import MCPServer
from mcp.server.mcpserver import AcceptedElicitation, Context, Elicit, ElicitationResult, Image, Resolve
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import BaseModel

server = MCPServer("tests")
PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010806000000"
    "1f15c4890000000d49444154789c6360606060000000050001a5f645400000000049454e44ae426082"
)


class Answer(BaseModel):
    flavour: str


class Point(BaseModel):
    x: int
    y: int


@server.tool(annotations=mcp_types.ToolAnnotations(read_only_hint=True))
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


@server.tool()
def point() -> Point:
    return Point(x=1, y=2)


@server.tool(structured_output=False)
def pixel() -> list:
    return ["a pixel:", Image(data=PIXEL, format="png")]


@server.tool(structured_output=False)
def odd_things() -> list:
    return [
        mcp_types.ResourceLink(name="readme", uri="file:///readme", description="read it"),
        mcp_types.EmbeddedResource(resource=mcp_types.TextResourceContents(uri="x:1", text="inside")),
        mcp_types.EmbeddedResource(resource=mcp_types.BlobResourceContents(uri="x:2", blob="AAAA", mime_type="a/b")),
        mcp_types.AudioContent(data="AAAA", mime_type="audio/wav"),
    ]


@server.tool()
def fail(reason: str) -> str:
    raise ToolError(reason)


@server.tool()
def environment(name: str) -> str:
    return os.environ.get(name, "unset")


@server.tool(name="nämé with/odd.chars")
def odd_name() -> str:
    return "found"


@server.tool(name="n_m__with_odd_chars")
def odd_name_twin() -> str:
    return "twin"


@server.tool()
async def count(to: int, ctx: Context) -> str:
    for n in range(1, to + 1):
        await ctx.report_progress(n, to, f"at {n}")
    return "counted"


@server.tool()
async def hang(path: str) -> str:
    """Leaves a mark when it begins and when it is cancelled."""
    Path(path).write_text("begun")
    try:
        await anyio.sleep_forever()
    except anyio.get_cancelled_exc_class():
        Path(path).write_text("cancelled")
        raise


@server.tool()
def crash() -> str:
    os._exit(3)


def flavour() -> Elicit[Answer]:
    return Elicit("Which flavour?", Answer)


@server.tool()
def ice(answer: Annotated[ElicitationResult[Answer], Resolve(flavour)]) -> str:
    return f"{answer.data.flavour} ice" if isinstance(answer, AcceptedElicitation) else f"no ice: {answer.action}"


@server.tool()
async def old_ice(ctx: Context) -> str:
    """Asks as servers did before protocol 2026-07-28."""
    answer = await ctx.elicit("Which flavour?", Answer)
    return f"{answer.data.flavour} ice" if answer.action == "accept" else f"no ice: {answer.action}"


if __name__ == "__main__":
    if sys.argv[1] == "stdio":
        server.run("stdio")
    else:
        server.run("streamable-http", port=int(sys.argv[2]))
