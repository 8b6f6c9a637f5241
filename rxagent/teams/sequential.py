"""`sequential`: agents one after the other, as ``concat`` is for streams."""

from collections.abc import Sequence

from rxagent.engine.agent import Agent
from rxagent.teams.rounds import StepResult
from rxagent.teams.workflow import Decision, Fail, Finish, Steps, team


class _InOrder:
    loops = False

    def __init__(self, count: int) -> None:
        self._count = count

    def first(self) -> Decision:
        return Steps(0, (0,))

    async def after(self, number: int, results: Sequence[StepResult]) -> Decision:
        result = results[0]
        if result.outcome != "completed":
            return Fail(result.text)
        if result.action is not None or number + 1 == self._count:
            return Finish(result.text)
        return Steps(number + 1, (number + 1,))


def sequential(*agents: Agent, name: str = "sequential") -> Agent:
    """Makes a team that runs its members one after the other.

    The first is given the prompt, each further one the prompt and the answer of the one before it, as a message of
    its own. The team's answer is the last one's. A member that does not complete ends the team as failed; one that
    ends with `Exit` ends it with what it said.

    Raises:
        UsageError: there is no member.
    """
    return team(name, _InOrder(len(agents)), agents)
