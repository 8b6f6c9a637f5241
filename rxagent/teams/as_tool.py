"""`as_tool`: an agent as a tool of another one."""

from collections.abc import Awaitable
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rxagent.engine.agent import Agent
from rxagent.engine.child import ChildEnd, run_child
from rxagent.errors import InvalidTool, ToolInterrupted
from rxagent.messages import JsonObject, ToolDeclaration, ToolResult, UserMessage
from rxagent.teams.naming import checked_name, host_of, tool_name
from rxagent.tools import InvalidArguments, ToolContext
from rxagent.tools.arguments import explained, schema_of


class _Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid")
    input: Annotated[str, Field(description="The task, with all that is needed to do it.")]


class AgentTool:
    """An agent as a tool; see `as_tool`."""

    resumable = True
    sequential = False
    timeout: float | None = None

    def __init__(self, agent: Agent, name: str, description: str) -> None:
        self.agent = agent
        self.declaration = ToolDeclaration(name, description, schema_of(name, _Arguments))

    def __repr__(self) -> str:
        return f"<tool {self.declaration.name}: agent {self.agent.name!r}>"

    def bind(self, arguments: JsonObject) -> "BoundAgent":
        """Takes ``{"input": text}``; raises `InvalidArguments`."""
        try:
            return BoundAgent(self.agent, _Arguments.model_validate(arguments).input)
        except ValidationError as error:
            raise InvalidArguments(explained(self.declaration.name, error)) from None


class BoundAgent:
    """One call of an agent."""

    def __init__(self, agent: Agent, text: str) -> None:
        self._agent = agent
        self._text = text
        self.arguments: JsonObject = {"input": text}

    def start(self, context: ToolContext) -> Awaitable[ToolResult]:
        """Runs the agent, or goes on with it."""
        return self._run(context)

    async def _run(self, context: ToolContext) -> ToolResult:
        agent = self._agent
        end = await run_child(host_of(context), agent.profile(), (UserMessage(self._text),), context.signal)
        return result_of(agent.name, end)


def result_of(name: str, end: ChildEnd) -> ToolResult:
    """What a child's end is to its parent; raises `ToolInterrupted` where it waits for answers."""
    if end.outcome == "interrupted":
        raise ToolInterrupted(f"{name} waits for answers")
    details = {"agent": name, "outcome": end.outcome}
    if end.outcome == "completed":
        return ToolResult(end.text, details)
    why = f": {end.error.message}" if end.error is not None else ""
    said = f"\nIts last answer: {end.text}" if end.text else ""
    return ToolResult(f"{name} ended as {end.outcome}{why}{said}", details, is_error=True, summary=f"{end.outcome}{why}"[:120])


def as_tool(agent: Agent, *, name: str | None = None, description: str | None = None) -> AgentTool:
    """Makes an agent (or a team) a tool: the model sends it a text, its answer is the result.

    Each call is a new conversation of the agent. Its events pass through with a ``path`` that ends in its name, and
    with the call's id as ``origin.call_id``; its interrupts surface at the root; its transcript stays its own. The
    result is its last non-empty answer; a run that did not complete is an error result.

    Args:
        name: instead of the agent's name.
        description: what the model is told the agent is for.

    Raises:
        InvalidTool: it is no agent, or no model may send that name.
    """
    if not isinstance(agent, Agent):  # pyright: ignore[reportUnnecessaryIsInstance] callers aren't all typed
        raise InvalidTool(f"as_tool takes an Agent, not {agent!r:.100}")
    text = f"Hands a task to the agent {agent.name!r} and gives its answer." if description is None else description
    return AgentTool(agent, checked_name(name) if name is not None else tool_name("", agent.name), text)
