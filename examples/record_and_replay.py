"""A session in a store: the log is all there is, and everything can be had from it again.

Prints::

    completed: add says 42. (Told by the demo model, which is scripted.)
    replayed the same: True
    state after the log: 4 messages
"""

import asyncio
import tempfile
from pathlib import Path

from rxagent import Agent, Runner, tool
from rxagent import operators as ops
from rxagent.flow import to_aiter
from rxagent.stores import SqliteStore


@tool
async def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


async def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        async with SqliteStore(str(Path(directory) / "runs.db")) as store:
            runner = Runner(Agent("demo", tools=[add]), store)
            result = await runner.query("add 20 and 22", session="sums")
            print(f"{result.outcome}: {result.text}")
            texts = [text async for text in to_aiter(runner.replay("sums").pipe(ops.final_text()))]
            print(f"replayed the same: {texts[-1] == result.text}")
            print(f"state after the log: {len((await runner.state('sums')).messages)} messages")


if __name__ == "__main__":
    asyncio.run(main())
