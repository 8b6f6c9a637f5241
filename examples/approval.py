"""A call that a person has to allow: the run ends with a question, and goes on in another run with the answer.

Prints::

    interrupted: Run delete with {"path":"old.txt"}?
    deleted old.txt
    completed: It is gone.
"""

import asyncio

from rxagent import Agent, Runner, approve, tool
from rxagent.messages import ToolCall
from rxagent.models import ScriptedModel


@tool
async def delete(path: str) -> str:
    """Deletes a file."""
    print(f"deleted {path}")
    return "done"


async def main() -> None:
    model = ScriptedModel([ToolCall("1", "delete", {"path": "old.txt"}), "It is gone."])
    runner = Runner(Agent(model, tools=[delete], hooks=approve(tools=[delete])))
    asked = await runner.query("delete old.txt", session="s")
    for interrupt in asked.interrupts:
        print(f"{asked.outcome}: {interrupt.question}")
    answered = await runner.resume("s", {interrupt.id: "allow" for interrupt in asked.interrupts})
    print(f"{answered.outcome}: {answered.text}")


if __name__ == "__main__":
    asyncio.run(main())
