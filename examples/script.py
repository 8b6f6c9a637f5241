"""A script on asyncio: the answer as it streams, each tool with the time it took, then what it cost.

python script.py "add 20 and 22" --model openai:gpt-5-mini   (without a model: the built-in demo)
"""

import argparse
import asyncio

from rxagent import Agent, tool
from rxagent.events import MessageUpdate, ToolEnd, ToolStart


@tool
async def add(a: float, b: float) -> str:
    """Adds two numbers."""
    await asyncio.sleep(0.3)
    return f"{a + b:g}"


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("prompt", nargs="?", default="add 20 and 22")
    parser.add_argument("--model", default="demo")
    arguments = parser.parse_args()
    agent = Agent(arguments.model, tools=[add])
    run = agent.prompt(arguments.prompt)
    async for event in run:
        match event:
            case MessageUpdate() if event.delta.type == "text_delta":
                print(event.delta.text, end="", flush=True)
            case ToolStart():
                print(f"\n→ {event.tool_name} {event.args}")
            case ToolEnd():
                print(f"← {event.result.text}   {event.duration:.1f} s")
            case _:
                pass
    result = await run
    print(f"\n({result.outcome}, {result.usage.total or 0} tokens)")


if __name__ == "__main__":
    asyncio.run(main())
