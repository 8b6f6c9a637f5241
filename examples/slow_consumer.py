"""Back-pressure: a consumer that needs a millisecond for each piece slows the model, and nothing is lost or piled up.

Prints::

    300 pieces, in order: True
    the model was never more than 20 pieces ahead: True
"""

import asyncio
from collections.abc import AsyncIterator

from rxagent import Agent
from rxagent.events import AnyEvent, MessageUpdate, ModelEvent, ResponseEnd, ResponseStart, TextDelta, text_delta
from rxagent.models import ModelRequest, ScriptedModel


async def main() -> None:
    made: list[int] = []
    seen: list[int] = []
    ahead = 0

    async def answer(request: ModelRequest) -> AsyncIterator[ModelEvent]:
        yield ResponseStart()
        for n in range(300):
            made.append(n)
            yield text_delta(f"{n} ", 0)
        yield ResponseEnd()

    async def consume(event: AnyEvent) -> None:
        nonlocal ahead
        if isinstance(event, MessageUpdate) and isinstance(event.delta, TextDelta):
            await asyncio.sleep(0.001)
            seen.append(int(event.delta.text))
            ahead = max(ahead, len(made) - len(seen))

    agent = Agent(ScriptedModel([answer]))
    agent.subscribe(consume, capacity=16)
    await agent.prompt("count")
    await agent.wait_for_idle()
    print(f"{len(seen)} pieces, in order: {seen == list(range(300))}")
    print(f"the model was never more than 20 pieces ahead: {ahead <= 20}")


if __name__ == "__main__":
    asyncio.run(main())
