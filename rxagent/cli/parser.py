"""What can be asked of the command: its subcommands and their options, as argparse has them."""

import argparse
import sys
from collections.abc import Callable
from typing import get_args

from rxagent.messages import ThinkingLevel

_EPILOG = """exit codes: 0 completed, 1 failed, 2 usage, 3 limit, 4 interrupted (a question waits), 130 aborted"""
_RUN = """Runs an agent on a prompt. The answer goes to stdout, everything else to stderr.

Without --model the built-in demo model answers, offline and by script.
"""


Add = Callable[..., argparse.ArgumentParser]  # what add_parser of argparse is; its class has no public name


class _Lines(argparse.RawDescriptionHelpFormatter):
    """Keeps the line breaks of descriptions."""


def make_parser() -> argparse.ArgumentParser:
    """The parser; each subcommand sets ``module``, which has a function ``start(arguments) -> exit code``."""
    parser = argparse.ArgumentParser(
        prog="rxagent", description="LLM agents as reactive streams.", epilog=_EPILOG, formatter_class=_Lines
    )
    parser.add_argument("--version", action=_Version, help="show the version and leave")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _run(commands.add_parser)
    return parser


class _Version(argparse.Action):
    def __init__(self, option_strings: list[str], dest: str, help: str | None = None) -> None:  # noqa: A002 - argparse's word
        super().__init__(option_strings, dest, nargs=0, default=argparse.SUPPRESS, help=help)

    def __call__(self, parser: argparse.ArgumentParser, *_: object, **__: object) -> None:
        from importlib.metadata import version

        sys.stdout.write(f"rxagent {version('rxagent')}\n")
        parser.exit()


def _run(add: Add) -> None:
    run = add("run", help="run an agent on a prompt", description=_RUN, epilog=_EPILOG, formatter_class=_Lines)
    run.set_defaults(module="run")
    run.add_argument("prompt", nargs="*", help='the prompt; "-" stands for what stdin holds. Without one, stdin is the prompt')
    add_agent_options(run)
    run.add_argument("--mode", choices=("text", "json"), help="text (default), or json: one event per line")
    run.add_argument("-q", "--quiet", action="store_true", default=None, help="nothing but errors on stderr")


def add_agent_options(parser: argparse.ArgumentParser) -> None:
    """The options that say what the agent is; None or empty where not given."""
    agent = parser.add_argument_group("agent")
    agent.add_argument("-m", "--model", help='PROVIDER:NAME, "local" or "demo" (default); see rxagent models')
    agent.add_argument("--base-url", metavar="URL", help="of any compatible server")
    agent.add_argument("--api-key", metavar="KEY", help="in place of the provider's environment variable")
    agent.add_argument("-s", "--system", metavar="TEXT", help="system prompt")
    agent.add_argument(
        "-t", "--tool", action="append", metavar="MODULE:FUNCTION", help="a tool for the agent; may be given several times"
    )
    agent.add_argument("--thinking", choices=get_args(ThinkingLevel), help="how much the model should reason")
    agent.add_argument("--no-stream", action="store_true", default=None, help="ask for each answer in one piece")
    agent.add_argument("--max-turns", type=_at_least_one, metavar="N", help="end with outcome limit after N turns (default 50)")
    agent.add_argument("--retries", type=_not_negative, metavar="N", help="repeats of a failed request (default 2)")
    agent.add_argument("--config", metavar="FILE", help="TOML file with these options; by default the user's, if there is one")


def _at_least_one(text: str) -> int:
    number = _not_negative(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"expected 1 or more, not {text!r}")
    return number


def _not_negative(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"expected a whole number, not {text!r}")
    return int(text)
