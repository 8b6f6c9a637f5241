"""A model that fails: the attempt is repeated, then the next model answers; what was withdrawn is shown once.

Prints::

    [attempt 1: overloaded, first again]
    [attempt 2: overloaded, second again]
    All is well.
"""

import asyncio

from rxagent import Agent, Retry
from rxagent import operators as ops
from rxagent.events import ModelError, ModelRetry
from rxagent.models import ScriptedModel

BUSY = ModelError("overloaded", "too many requests", retryable=True)


async def main() -> None:
    first = ScriptedModel([["All is", BUSY], BUSY], name="first")
    second = ScriptedModel(["All is well."], name="second")
    agent = Agent([first, second], retry=Retry(attempts=2, base_delay=0.01))
    agent.events.pipe(ops.of_type(ModelRetry)).subscribe(
        lambda retry: print(f"[attempt {retry.attempt}: {retry.error.kind}, {retry.model} again]")
    )
    agent.events.pipe(ops.final_text()).subscribe(print)
    await agent.prompt("how are things?")


if __name__ == "__main__":
    asyncio.run(main())
