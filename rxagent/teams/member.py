"""A member of a team, as the tool that the team's plan calls."""

from collections.abc import Awaitable, Callable, Sequence

from rxagent.engine.agent import Agent
from rxagent.engine.child import ChildEnd, run_child
from rxagent.messages import AnyMessage, JsonObject, ToolAction, ToolDeclaration, ToolResult
from rxagent.teams.as_tool import result_of
from rxagent.teams.naming import host_of
from rxagent.teams.rounds import input_of
from rxagent.tools import InvalidArguments, ToolContext


class MemberTool:
    """A member of a team, as the tool its plan calls."""

    resumable = True
    sequential = False
    timeout: float | None = None

    def __init__(self, agent: Agent, name: str, team: str) -> None:
        self.agent = agent
        number: JsonObject = {"type": "integer", "minimum": 0}
        parameters: JsonObject = {
            "type": "object",
            "properties": {"step": number, "since": number},
            "required": ["step", "since"],
        }
        self.declaration = ToolDeclaration(name, f"A step of {team}: the agent {agent.name!r}.", parameters)

    def __repr__(self) -> str:
        return f"<member {self.declaration.name}>"

    def bind(self, arguments: JsonObject) -> "BoundMember":
        """Takes what the plan sends; raises `InvalidArguments`."""
        step, since = arguments.get("step"), arguments.get("since")
        if not isinstance(step, int) or not isinstance(since, int):
            raise InvalidArguments(f"{self.declaration.name!r} is called by its team's plan alone")
        return BoundMember(self.agent, step, since)


class BoundMember:
    """One step of one member."""

    def __init__(self, agent: Agent, step: int, since: int) -> None:
        self._agent = agent
        self._step = step
        self._since = since
        self.arguments: JsonObject = {"step": step, "since": since}

    def start(self, context: ToolContext) -> Awaitable[ToolResult]:
        """Runs the member, or goes on with it."""
        return self._run(context)

    async def _run(self, context: ToolContext) -> ToolResult:
        host, agent = host_of(context), self._agent
        messages = input_of(host.transcript, host.id, self._since, with_answer=self._step > 0)
        end = await run_child(host, agent.profile(), messages, context.signal)
        result = result_of(agent.name, end)
        details = {"agent": agent.name, "outcome": end.outcome, "action": _action(agent, end)}
        return ToolResult(result.content, details, is_error=result.is_error, summary=result.summary)


def _action(agent: Agent, end: ChildEnd) -> ToolAction | None:
    if end.action is not None:
        return end.action
    action_of: Callable[[Sequence[AnyMessage]], ToolAction | None] | None = getattr(agent.model, "action_of", None)
    return action_of(end.messages) if action_of is not None and end.outcome == "completed" else None
