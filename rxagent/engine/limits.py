"""`Limits` and `Retry`: when a run is cut, and how often a failed request is repeated. Seconds everywhere."""

import random
from dataclasses import dataclass

from rxagent.errors import InvalidOption
from rxagent.messages import Usage


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of a run. None: no bound.

    Args:
        max_turns: turns of one run.
        max_usage: tokens (or cost) of one run; any field that is set bounds that field.
        max_parallel_tools: calls running at once; further ones queue.
        tool_timeout: seconds a call may run, unless the tool says otherwise.
        first_event_timeout: seconds until a model's first event; then a retryable error.
        idle_timeout: seconds between a model's events; then a retryable error.
        grace: seconds a cancelled tool has to end by itself before it is abandoned.
    """

    max_turns: int | None = 50
    max_usage: Usage | None = None
    max_parallel_tools: int | None = None
    tool_timeout: float | None = None
    first_event_timeout: float | None = 60.0
    idle_timeout: float | None = 120.0
    grace: float = 5.0

    def __post_init__(self) -> None:
        for name in ("max_turns", "max_parallel_tools"):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, int) and value >= 1):
                raise InvalidOption(f"Limits.{name} must be at least 1 or None, not {value!r}")
        for name in ("tool_timeout", "first_event_timeout", "idle_timeout"):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, int | float) and value > 0):
                raise InvalidOption(f"Limits.{name} must be more than 0 seconds or None, not {value!r}")
        if not (isinstance(self.grace, int | float) and self.grace >= 0):  # pyright: ignore[reportUnnecessaryIsInstance] callers without a type checker
            raise InvalidOption(f"Limits.grace is a number of seconds that isn't negative, not {self.grace!r}")
        if self.max_usage is not None and not isinstance(self.max_usage, Usage):  # pyright: ignore[reportUnnecessaryIsInstance] as above
            raise InvalidOption(f"Limits.max_usage is Usage(output=…) or None, not {self.max_usage!r:.100}")

    def used_up(self, used: Usage) -> str | None:
        """Which bound of ``max_usage`` is reached, in words; None if none is."""
        bound = self.max_usage
        if bound is None:
            return None
        for name in ("input", "output", "cache_read", "cache_write", "reasoning", "cost"):
            most, now = getattr(bound, name), getattr(used, name)
            if most is not None and now is not None and now >= most:
                return f"max_usage.{name}: {now} of {most} used"
        return None


@dataclass(frozen=True, slots=True)
class Retry:
    """Repeats of a failed request. ``attempts=1``: none.

    The n-th repeat waits about ``base_delay * 2**(n-1)`` seconds, at most ``max_delay``, at least half
    of that (jitter); a server's ``Retry-After`` is honoured instead, up to ``max_retry_after``: one that
    asks for more is not retried.
    """

    attempts: int = 3
    base_delay: float = 0.5
    max_delay: float = 30.0
    max_retry_after: float = 60.0

    def __post_init__(self) -> None:
        if not (isinstance(self.attempts, int) and self.attempts >= 1):  # pyright: ignore[reportUnnecessaryIsInstance] as above
            raise InvalidOption(f"Retry.attempts counts the first one too, so it is at least 1, not {self.attempts!r}")
        for name in ("base_delay", "max_delay", "max_retry_after"):
            value = getattr(self, name)
            if not (isinstance(value, int | float) and value >= 0):
                raise InvalidOption(f"Retry.{name} is a number of seconds that isn't negative, not {value!r}")

    def delay(self, failed: int, retry_after: float | None) -> float | None:
        """Seconds before the next attempt after ``failed`` ones; None: the server asks for too long a wait."""
        if retry_after is not None:
            return max(0.0, retry_after) if retry_after <= self.max_retry_after else None
        full = min(self.max_delay, self.base_delay * 2 ** min(failed - 1, 32))
        return full * random.uniform(0.5, 1.0)  # noqa: S311 - jitter, not a secret
