"""Plan, carry out, look again: a planner writes the steps, an executor does one at a time, a judge says when it is enough.

Built from `sequential` and `loop` alone; the judge ends the loop with `BreakLoop`.

Prints::

    planner: 1. buy flour 2. bake 3. eat
    executor: did: buy flour
    judge: not yet
    executor: did: bake
    judge: not yet
    executor: did: eat
    all done after 3 steps
"""

import asyncio

from rxagent import Agent, BreakLoop, ToolContext, loop, sequential, tool
from rxagent.events import MessageEnd
from rxagent.messages import AssistantMessage, ToolCall, ToolResult
from rxagent.models import ModelRequest, ScriptedModel

STEPS = ["buy flour", "bake", "eat"]
done: list[str] = []


@tool
async def carry_out(step: str) -> str:
    """Does one step."""
    done.append(step)
    return f"did: {step}"


@tool
async def finish(ctx: ToolContext) -> ToolResult:
    """Ends the work."""
    return BreakLoop(f"all done after {len(done)} steps")


def execute(request: ModelRequest) -> object:
    last = request.messages[-1]
    return last.text if last.role == "tool" else ToolCall("", "carry_out", {"step": STEPS[len(done)]})


def judge_it(request: ModelRequest) -> object:
    return ToolCall("", "finish") if len(done) == len(STEPS) else "not yet"


planner = Agent(ScriptedModel(["1. buy flour 2. bake 3. eat"]), name="planner")
executor = Agent(ScriptedModel(execute), name="executor", tools=[carry_out])
judge = Agent(ScriptedModel(judge_it), name="judge", tools=[finish])
team = sequential(planner, loop(sequential(executor, judge, name="round"), max_iterations=10, name="rounds"), name="plan_execute")


def show(event: object) -> None:
    match event:
        case MessageEnd(message=AssistantMessage(text=str(text)), origin=origin) if text:
            if origin.agent in ("planner", "executor", "judge"):
                print(f"{origin.agent}: {text}")
        case _:
            pass


async def main() -> None:
    team.events.subscribe(show)
    result = await team.prompt("Make a cake.")
    print(result.text)


if __name__ == "__main__":
    asyncio.run(main())
