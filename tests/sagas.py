"""Random but repeatable agents for the tests of resuming: what they do follows from their transcript alone.

A saga is a tree of agents. Each agent has turns; a turn is a list of calls and a text. Every call carries a
number of its own, so it can be told how often each was really carried out.
"""

import asyncio
import random
from collections import Counter

from rxagent import Agent, Exit, Retry, ToolContext, as_tool, handoff, loop, parallel, sequential, tool
from rxagent.events import ModelError, TextDelta
from rxagent.messages import AssistantMessage, ToolCall
from rxagent.models import ScriptedModel


@tool
async def work(number: int, seconds: float, ctx: ToolContext) -> str:
    await asyncio.sleep(seconds * ctx.deps.pace)
    ctx.deps.ledger[number] += 1
    return f"did {number}"


@tool
async def ask(number: int, ctx: ToolContext, times: int = 1) -> str:
    answers = [await ctx.interrupt(f"{number}.{i}?") for i in range(times)]
    ctx.deps.ledger[number] += 1
    return f"heard {answers}"


@tool
async def watch(number: int, ctx: ToolContext):
    for i in range(3):
        yield f"{number} at {i}"
        await asyncio.sleep(0.5 * ctx.deps.pace)
    ctx.deps.ledger[number] += 1
    ctx.emit("watched", number)


@tool
def leave(number: int, ctx: ToolContext):
    ctx.deps.ledger[number] += 1
    return Exit(f"left at {number}")


@tool
def broken(number: int, ctx: ToolContext) -> str:
    ctx.deps.ledger[number] += 1
    raise ValueError(f"{number} is broken")


TOOLS = (work, ask, watch, leave, broken)


class Saga:
    """The agents of one seed. ``ledger`` counts what was carried out in this process; ``pace`` stretches time."""

    def __init__(self, seed: int, depth: int = 2, pace: float = 1.0) -> None:
        self.pace = pace
        self._random = random.Random(seed)
        self._number = 0
        self.ledger: Counter[int] = Counter()
        self.names = 0
        self.root = self._agent(depth, "root", root=True)

    def _next(self) -> int:
        self._number += 1
        return self._number

    def _agent(self, depth: int, name: str | None = None, *, root: bool = False) -> Agent:
        pick = self._random
        self.names += 1
        name = name or f"agent{self.names}"
        kind = pick.choice(["plain", "plain", "sequential", "parallel", "loop"]) if depth > 0 and not root else "plain"
        if kind == "sequential":
            return sequential(*[self._agent(depth - 1) for _ in range(2)], name=name)
        if kind == "parallel":
            twin = self._agent(depth - 1, "twin")
            return parallel(twin, self._agent(depth - 1), twin, name=name)
        if kind == "loop":
            return loop(self._agent(depth - 1), max_iterations=2, name=name)
        tools = [*TOOLS]
        children = [self._agent(depth - 1) for _ in range(2 if root else pick.choice([0, 1]))] if depth > 0 else []
        tools += [as_tool(child) for child in children]
        successor = None
        if depth > 0 and pick.random() < 0.4:
            successor = self._agent(depth - 1, f"{name}_next") if pick.random() < 0.5 else self._plain(f"{name}_next")
            tools.append(handoff(successor))
        turns = [self._turn(children, root=root) for _ in range(pick.choice([1, 2]) if root else pick.choice([0, 1]))]
        if successor is not None:
            turns.append(
                [ToolCall("", "work", {"number": self._next(), "seconds": 1.0}), ToolCall("", f"transfer_to_{name}_next")]
            )
        return self._make(name, turns, tools)

    def _plain(self, name: str) -> Agent:
        return self._make(name, [[ToolCall("", "work", {"number": self._next(), "seconds": 0.5})]], TOOLS)

    def _turn(self, children: list[Agent], *, root: bool) -> list[ToolCall]:
        pick = self._random
        calls = []
        kinds = ["work", "ask", "watch", "child", "child", "child", "ask", pick.choice(["broken", "nothing", "leave"])]
        for place in range(pick.choice([1, 2, 3])):
            kind = "child" if root and place == 0 else pick.choice(kinds)
            number = self._next()
            if kind == "child" and children:
                child = pick.choice(children)
                calls.append(ToolCall(pick.choice(["", "same"]), child.name, {"input": f"task {number}"}))
            elif kind == "ask":
                calls.append(ToolCall("", "ask", {"number": number, "times": pick.choice([1, 2])}))
            elif kind == "work":
                calls.append(ToolCall("", "work", {"number": number, "seconds": pick.choice([0.0, 1.0, 2.0])}))
            elif kind == "leave" and not root and pick.random() < 0.4:
                calls.append(ToolCall("", "leave", {"number": number}))
            elif kind in ("watch", "broken", "nothing"):
                calls.append(ToolCall("", kind, {"number": number}))
        return calls

    def _make(self, name: str, turns: list[list[ToolCall]], tools) -> Agent:
        flaky = self._random.random() < 0.3
        doomed = name != "root" and self._random.random() < 0.2
        failed: set[int] = set()

        def answer(request):
            turn = sum(isinstance(m, AssistantMessage) for m in request.messages)
            if flaky and turn not in failed:
                failed.add(turn)
                return [TextDelta(f"{name} begins and fails", 0), ModelError("overloaded", "busy", retryable=True)]
            if doomed and turn > 0:
                return [TextDelta(f"{name} fails", 0), ModelError("server", "down")]
            said = f"{name} turn {turn} after {request.messages[-1].text!r:.60}" if request.messages else f"{name} first"
            at = self._position(name, request.messages, len(turns))
            return [said, *turns[at]] if at < len(turns) else said

        return Agent(
            ScriptedModel(answer, name=name),
            name=name,
            tools=tools,
            retry=Retry(attempts=3, base_delay=0.1 * self.pace),
            deps=self,
        )

    @staticmethod
    def _position(name: str, messages, count: int) -> int:
        """Which of its turns an agent is at: counted by its own answers since the last input it can tell apart."""
        own = 0
        for message in reversed(messages):
            if isinstance(message, AssistantMessage):
                if not message.text.startswith(f"{name} turn") or not message.tool_calls:
                    break
                own += 1
        return min(own, count)


def transcript(state) -> list:
    """A transcript without what differs from run to run: ids and times."""
    names: dict[str, int] = {}
    return [
        (m.role, m.text, [(c.name, dict(c.arguments)) for c in getattr(m, "tool_calls", ())], getattr(m, "is_error", None))
        for m in state.messages
    ] + [len(names)]
