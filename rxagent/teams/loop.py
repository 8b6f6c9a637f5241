"""`loop`: an agent again and again, as ``repeat`` is for streams."""

import inspect
from collections.abc import Awaitable, Callable, Sequence

from rxagent.engine.agent import Agent
from rxagent.errors import UsageError
from rxagent.teams.rounds import StepResult
from rxagent.teams.workflow import Decision, Fail, Finish, Steps, team

Until = Callable[[StepResult], bool | Awaitable[bool]]


class _Repeated:
    loops = True

    def __init__(self, until: Until | None, max_iterations: int | None) -> None:
        self._until = until
        self._most = max_iterations

    def first(self) -> Decision:
        return Steps(0, (0,))

    async def after(self, number: int, results: Sequence[StepResult]) -> Decision:
        result = results[0]
        if result.outcome != "completed":
            return Fail(result.text)
        if result.action is not None or number + 1 == self._most or await self._enough(result):
            return Finish(result.text)
        return Steps(number + 1, (0,))

    async def _enough(self, result: StepResult) -> bool:
        if self._until is None:
            return False
        verdict = self._until(result)
        return await verdict if inspect.isawaitable(verdict) else verdict


def loop(agent: Agent, *, until: Until | None = None, max_iterations: int | None = None, name: str = "loop") -> Agent:
    """Makes a team that runs an agent (or a team) again and again.

    The first iteration is given the prompt, each further one the prompt and the answer of the one before it. The
    team's answer is the last one's. It ends where ``until`` is true, after ``max_iterations``, where a tool within
    gives `BreakLoop` or `Exit`, and as failed where an iteration does not complete.

    Args:
        until: told each iteration's `StepResult` (``text``, ``outcome``); sync or async. It is asked again about the
            same result where a run is taken up after a crash.
        max_iterations: None: no bound.

    Raises:
        UsageError: ``max_iterations`` is less than 1.
    """
    if max_iterations is not None and max_iterations < 1:
        raise UsageError(f"loop: max_iterations is at least 1 or None, not {max_iterations}")
    return team(name, _Repeated(until, max_iterations), (agent,))
