"""The whole of rxagent in `speed`: the chat wire, an `Agent` a run, one state observer and one text observer each."""

import asyncio
import gc
import time

from fake_server import token
from harness import serve

from rxagent import Agent, AgentState
from rxagent import operators as ops
from rxagent.models import Model, resolve


async def answer(model: Model) -> str:
    agent = Agent(model)
    text: list[str] = []
    last: list[AgentState] = [agent.state]

    def observe(state: AgentState) -> None:
        last[0] = state

    agent.states.subscribe(observe)
    agent.events.pipe(ops.text_deltas()).subscribe(text.append)
    result = await agent.prompt("Go.")
    assert result.outcome == "completed"
    assert len(last[0].messages) == 2
    assert result.text == "".join(text)
    return result.text


async def measured(port: int, deltas: int, runs: int) -> float:
    model = resolve("openai:m", base_url=f"http://127.0.0.1:{port}/{deltas}/v1", api_key="")
    await answer(model)
    gc.collect()
    start = time.process_time()
    texts = await asyncio.gather(*(answer(model) for _ in range(runs)))
    cpu = time.process_time() - start
    expected = "".join(token(n) for n in range(deltas))
    assert all(text == expected for text in texts)
    return cpu


if __name__ == "__main__":
    serve(lambda **job: {"cpu": asyncio.run(measured(**job))})
