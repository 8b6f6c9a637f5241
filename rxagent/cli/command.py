"""The way in: reads the arguments, calls the subcommand, turns errors into one line and an exit code."""

import importlib
import sys
from collections.abc import Callable, Sequence
from typing import cast

from rxagent.cli import exits
from rxagent.cli.parser import make_parser
from rxagent.cli.terminal import let_go, open_missing, say
from rxagent.errors import RxAgentError, UsageError, told


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command and returns its exit code: 0 completed, 1 failed, 2 usage, 3 limit, 4 interrupted, 130 aborted."""
    open_missing()
    arguments = make_parser().parse_args(argv)
    try:
        module = importlib.import_module(f"rxagent.cli.{arguments.module}")
        start = cast("Callable[[object], int]", module.start)
        code = start(arguments)
        sys.stdout.flush()
    except BrokenPipeError:  # whoever read our output has left; there is nobody to complain to
        let_go(sys.stdout)
        return exits.ABORTED
    except OSError as error:  # a full disk, say
        let_go(sys.stdout)
        say(told(error))
        return exits.FAILED
    except KeyboardInterrupt:
        say("aborted")
        return exits.ABORTED
    except RxAgentError as error:
        say(told(error))
        return exits.USAGE if isinstance(error, UsageError) else exits.FAILED
    return code
