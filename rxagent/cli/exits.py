"""Exit codes of the command."""

from rxagent.events import Outcome

COMPLETED = 0
FAILED = 1
USAGE = 2
LIMIT = 3
INTERRUPTED = 4
ABORTED = 130  # as shells count an end by Ctrl-C


def of(outcome: Outcome) -> int:
    """The exit code of a run's outcome."""
    match outcome:
        case "completed":
            return COMPLETED
        case "failed":
            return FAILED
        case "limit":
            return LIMIT
        case "interrupted":
            return INTERRUPTED
        case "aborted":
            return ABORTED
