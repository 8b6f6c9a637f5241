"""`handoff`: a tool with which a model lets another agent take over."""

from collections.abc import Awaitable

from rxagent.engine.agent import Agent
from rxagent.errors import InvalidTool
from rxagent.messages import JsonObject, ToolDeclaration, ToolResult
from rxagent.teams.naming import checked_name, host_of, tool_name
from rxagent.tools import InvalidArguments, ToolContext

_PARAMETERS: JsonObject = {
    "type": "object",
    "properties": {"reason": {"type": "string", "description": "Why the other one takes over."}},
    "additionalProperties": False,
}


class HandoffTool:
    """The tool; ``target`` takes over. See `handoff`."""

    resumable = True
    sequential = False
    timeout: float | None = None

    def __init__(self, target: Agent, name: str, description: str) -> None:
        self.target = target
        self.declaration = ToolDeclaration(name, description, _PARAMETERS)

    def __repr__(self) -> str:
        return f"<tool {self.declaration.name}: to agent {self.target.name!r}>"

    def bind(self, arguments: JsonObject) -> "BoundHandoff":
        """Takes ``{"reason": text}`` or nothing; raises `InvalidArguments`."""
        wrong = [f"- {name}: not expected" for name in arguments if name != "reason"]
        reason = arguments.get("reason", "")
        if not isinstance(reason, str):
            wrong.insert(0, f"- reason: should be text (got {reason!r:.100})")
        if wrong:
            raise InvalidArguments("\n".join([f"Invalid arguments for tool {self.declaration.name!r}:", *wrong]))
        return BoundHandoff(self.target.name, arguments)


class BoundHandoff:
    """One call of a handoff."""

    def __init__(self, target: str, arguments: JsonObject) -> None:
        self._target = target
        self.arguments = arguments

    def start(self, context: ToolContext) -> Awaitable[ToolResult]:
        """Hands over when the turn is done."""
        return self._hand_over(context)

    async def _hand_over(self, context: ToolContext) -> ToolResult:
        await host_of(context).hand_over(self._target)
        return ToolResult(f"{self._target} takes over the conversation.", summary=f"to {self._target}")


def handoff(agent: Agent, *, name: str | None = None, description: str | None = None) -> HandoffTool:
    """Makes a tool that hands the conversation to another agent.

    After the turn of the call the target goes on, in the same run and with the same transcript, with its own
    model, prompt, tools and hooks; the limits stay those of the agent that was prompted. The events keep their
    ``path`` (it says where in the tree, not who) and carry the target's name as ``origin.agent``; `Handoff` and
    `ConfigChanged` tell of it. Later prompts of the session go to the target, until it hands over itself.
    The second handoff of one turn is refused.

    Args:
        name: instead of ``transfer_to_<name of the agent>``.
        description: what the model is told the agent is for.

    Raises:
        InvalidTool: it is no agent, or no model may send that name.
    """
    if not isinstance(agent, Agent):  # pyright: ignore[reportUnnecessaryIsInstance] callers aren't all typed
        raise InvalidTool(f"handoff takes an Agent, not {agent!r:.100}")
    text = f"Hands the conversation over to the agent {agent.name!r}." if description is None else description
    return HandoffTool(agent, checked_name(name) if name is not None else tool_name("transfer_to_", agent.name), text)
