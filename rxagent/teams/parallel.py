"""`parallel`: agents at the same time, as ``merge`` is for streams."""

from collections.abc import Callable, Sequence

from rxagent.engine.agent import Agent
from rxagent.teams.rounds import StepResult
from rxagent.teams.workflow import Decision, Fail, Finish, Steps, team

Combine = Callable[[Sequence[StepResult]], str]


def _joined(results: Sequence[StepResult]) -> str:
    return "\n\n".join(result.text for result in results if result.outcome == "completed" and result.text)


class _AtOnce:
    loops = False

    def __init__(self, count: int, combine: Combine) -> None:
        self._count = count
        self._combine = combine

    def first(self) -> Decision:
        return Steps(0, tuple(range(self._count)))

    async def after(self, number: int, results: Sequence[StepResult]) -> Decision:
        if all(result.outcome != "completed" for result in results):
            return Fail("; ".join(result.text for result in results))
        text = self._combine(results)
        if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance] callers aren't all typed
            raise TypeError(f"combine gives the team's answer as text, not {text!r:.80}")
        return Finish(text)


def parallel(*agents: Agent, name: str = "parallel", combine: Combine = _joined) -> Agent:
    """Makes a team that runs its members at the same time, each with the prompt and a transcript of its own.

    A member that fails does not stop the others; the team fails only where all did. What members ask is asked
    together when all are done or waiting. ``agent.limits`` may bound how many run at once (``max_parallel_tools``).

    Args:
        combine: makes the team's answer of the members' results, in their order; by default it is the answers of
            those that completed, with blank lines between. What it raises ends the team as failed.

    Raises:
        UsageError: there is no member.
    """
    return team(name, _AtOnce(len(agents), combine), agents)
