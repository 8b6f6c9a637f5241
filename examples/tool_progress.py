"""A tool that is an Observable: each item is progress, the last one is also the result.

Prints::

    running: measure
      measure: 10
      measure: 20
      measure: 30
    running: nothing
    The last value was 30.
"""

import asyncio

import reactivex as rx
from reactivex import Observable
from reactivex import operators as rxops

from rxagent import Agent, tool
from rxagent import operators as ops
from rxagent.events import ToolUpdate
from rxagent.messages import ToolCall
from rxagent.models import ScriptedModel


@tool
def measure(times: int) -> Observable[int]:
    """Measures several times."""
    return rx.range(1, times + 1).pipe(rxops.map(lambda n: n * 10))


async def main() -> None:
    agent = Agent(ScriptedModel([ToolCall("1", "measure", {"times": 3}), "The last value was 30."]), tools=[measure])
    agent.events.pipe(ops.pending_tool_calls()).subscribe(
        lambda calls: print("running:", ", ".join(call.tool_name for call in calls) or "nothing")
    )
    agent.events.pipe(ops.of_type(ToolUpdate)).subscribe(lambda update: print(f"  {update.tool_name}: {update.partial}"))
    result = await agent.prompt("measure")
    print(result.text)


if __name__ == "__main__":
    asyncio.run(main())
