"""A supervisor hands tasks to specialists, each an agent of its own, and answers with what they found.

Prints::

    supervisor -> researcher: the height of Mont Blanc
    supervisor -> calculator: 4806 m in feet
    researcher: Mont Blanc is 4806 m high.
    calculator: 4806 m are 15768 feet.
    supervisor: Mont Blanc is 4806 m high, that is 15768 feet.
"""

import asyncio

from rxagent import Agent, as_tool, tool
from rxagent.events import MessageEnd, ToolStart
from rxagent.messages import AssistantMessage, ToolCall
from rxagent.models import ModelRequest, ScriptedModel


@tool
async def feet(metres: float) -> str:
    """Converts metres to feet."""
    return f"{metres / 0.3048:.0f} feet"


def calculate(request: ModelRequest) -> object:
    last = request.messages[-1]
    return f"4806 m are {last.text}." if last.role == "tool" else ToolCall("", "feet", {"metres": 4806})


researcher = Agent(ScriptedModel(["Mont Blanc is 4806 m high."]), name="researcher", system_prompt="You look things up.")
calculator = Agent(ScriptedModel(calculate), name="calculator", tools=[feet])
supervisor = Agent(
    ScriptedModel(
        [
            [
                ToolCall("", "researcher", {"input": "the height of Mont Blanc"}),
                ToolCall("", "calculator", {"input": "4806 m in feet"}),
            ],
            "Mont Blanc is 4806 m high, that is 15768 feet.",
        ]
    ),
    name="supervisor",
    system_prompt="Hand out tasks, then sum up.",
    tools=[
        as_tool(researcher, description="Knows facts."),
        as_tool(calculator, description="Does sums."),
    ],
)


def show(event: object) -> None:
    match event:
        case ToolStart(tool_name=name, args={"input": task}, origin=origin):
            print(f"{origin.agent} -> {name}: {task}")
        case MessageEnd(message=AssistantMessage(text=str(text)), origin=origin) if text:
            print(f"{origin.agent}: {text}")
        case _:
            pass


async def main() -> None:
    supervisor.events.subscribe(show)
    await supervisor.prompt("How high is Mont Blanc, in feet?")


if __name__ == "__main__":
    asyncio.run(main())
