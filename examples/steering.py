"""Reaching an agent while it works: `steer` before its next turn, `follow_up` for when it would stop.

Prints::

    you: How is the weather?
    agent: Let me look.
    you: In Paris, please.
    agent: 21 degrees in Paris.
    you: And tomorrow?
    agent: Rain.
"""

import asyncio

from rxagent import Agent, tool
from rxagent import operators as ops
from rxagent.events import ToolStart
from rxagent.messages import TextPart, ToolCall
from rxagent.models import ScriptedModel


@tool
async def look() -> str:
    """Looks out of the window."""
    return "sunny"


async def main() -> None:
    model = ScriptedModel([[TextPart("Let me look."), ToolCall("1", "look")], "21 degrees in Paris.", "Rain."])
    agent = Agent(model, tools=[look])
    names = {"user": "you", "assistant": "agent"}

    def show(message: object) -> None:
        role, text = getattr(message, "role", ""), getattr(message, "text", "")
        if role in names:
            print(f"{names[role]}: {text}")

    agent.events.pipe(ops.messages()).subscribe(show)
    agent.events.pipe(ops.of_type(ToolStart)).subscribe(lambda start: agent.steer("In Paris, please."))
    run = agent.prompt("How is the weather?")
    agent.follow_up("And tomorrow?")
    await run


if __name__ == "__main__":
    asyncio.run(main())
