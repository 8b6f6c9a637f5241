"""What `sequential`, `parallel` and `loop` share: a plan in the place of a model, and members in the place of tools.

1. A team's run is that of any agent: each step is a turn whose calls are made by the plan. The plan is a pure
   function of the transcript, so a team goes on from any place of its log.
2. A call carries the index of its round's first message: the transcript is never searched, however long it grows.
3. A step is given the prompt, and the answer of the step before it as a message of its own.
"""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Protocol, cast

from pydantic_core import from_json, to_json

from rxagent.engine.agent import Agent
from rxagent.engine.limits import Limits, Retry
from rxagent.errors import InvalidTool, UsageError
from rxagent.events import ModelError, ModelEvent, ResponseEnd, ResponseStart, TextDelta, ToolCallEnd, ToolCallStart
from rxagent.hooks import Hooks
from rxagent.messages import AnyMessage, JsonObject, SystemMessage, ToolAction
from rxagent.models.base import ModelRequest
from rxagent.teams.member import MemberTool
from rxagent.teams.naming import tool_name
from rxagent.teams.rounds import StepResult, round_of


@dataclass(frozen=True, slots=True)
class Steps:
    """A plan's decision: run these members now (by index), as step number ``number``."""

    number: int
    members: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Finish:
    """A plan's decision: this is the team's answer."""

    text: str


@dataclass(frozen=True, slots=True)
class Fail:
    """A plan's decision: the team fails."""

    reason: str


Decision = Steps | Finish | Fail


class Plan(Protocol):
    """The order of a team."""

    loops: bool

    def first(self) -> Decision:
        """What begins."""
        ...

    async def after(self, number: int, results: Sequence[StepResult]) -> Decision:
        """What follows step ``number``."""
        ...


class Workflow:
    """A plan as a `Model`: asked what comes next, it answers with calls of the members, or with the team's answer."""

    provider = "team"

    def __init__(self, name: str, plan: Plan, members: Sequence[Agent]) -> None:
        self.name = name
        self.plan = plan
        self.tools: list[MemberTool] = []
        self._tool_of: list[MemberTool] = []
        for member in members:
            self._tool_of.append(self._tool(member, name))

    def __repr__(self) -> str:
        return f"<{self.name}: {', '.join(tool.agent.name for tool in self._tool_of)}>"

    def _tool(self, member: Agent, team: str) -> "MemberTool":
        taken: set[str] = set()
        for tool in self.tools:
            if tool.agent is member:
                return tool
            taken.add(tool.declaration.name)
        name = tool_name("", member.name)
        number = 2
        while name in taken:
            name = f"{tool_name('', member.name)[:56]}_{number}"
            number += 1
        self.tools.append(MemberTool(member, name, team))
        return self.tools[-1]

    def window(self, messages: Sequence[AnyMessage]) -> Sequence[AnyMessage]:
        """The hook ``transform_context`` of a team: all that the plan needs to know, whatever the transcript's length."""
        return (SystemMessage(to_json(round_of(messages)).decode()),)

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """The plan's next decision, as an answer."""
        data = cast("JsonObject", from_json(cast("SystemMessage", request.messages[0]).text))
        since, number = cast("int", data["since"]), cast("int", data["number"])
        results = [StepResult(**r) for r in cast("list[dict[str, str]]", data["results"])]  # pyright: ignore[reportArgumentType] as they were written
        decision = await self._decide(number, results, again=bool(data["again"]))
        yield ResponseStart(self.name)
        match decision:
            case Fail(reason):
                yield ModelError("server", reason)
            case Finish(text):
                if text:
                    yield TextDelta(text, 0)
                yield ResponseEnd("stop")
            case Steps(number, members):
                for index, member in enumerate(members):
                    yield ToolCallStart("", self._tool_of[member].declaration.name, index)
                    yield ToolCallEnd(index, {"step": number, "since": since})
                yield ResponseEnd("tool_use")

    async def _decide(self, number: int, results: Sequence[StepResult], *, again: bool) -> Decision:
        if number < 0:
            return self.plan.first()
        if again:
            before = self.plan.first()
            return Steps(number, before.members) if self.plan.loops and isinstance(before, Steps) else self._same(number, before)
        return await self.plan.after(number, results)

    @staticmethod
    def _same(number: int, first: Decision) -> Decision:
        """Step ``number`` once more, as it was."""
        return Steps(number, (number,) if number else first.members) if isinstance(first, Steps) else first

    def action_of(self, messages: Sequence[AnyMessage]) -> ToolAction | None:
        """How the team's last step asked to end what is around the team."""
        asked: set[ToolAction] = {result.action for result in round_of(messages[:-1]).results if result.action is not None}
        if "exit" in asked:
            return "exit"
        return "break_loop" if asked and not self.plan.loops else None


def team(name: str, plan: Plan, members: Sequence[Agent]) -> Agent:
    """An agent that follows a plan.

    Raises:
        UsageError: there are no members.
        InvalidTool: a member is no agent.
    """
    if not members:
        raise UsageError(f"{name}() needs at least one agent")
    for member in members:
        if not isinstance(member, Agent):  # pyright: ignore[reportUnnecessaryIsInstance] callers aren't all typed
            raise InvalidTool(f"a member of {name!r} is an Agent or a team, not {member!r:.100}")
    workflow = Workflow(name, plan, members)
    return Agent(
        workflow,
        name=name,
        tools=workflow.tools,
        hooks=Hooks(transform_context=workflow.window),
        limits=Limits(max_turns=None, first_event_timeout=None, idle_timeout=None),
        retry=Retry(attempts=1),
        streaming=False,
    )
