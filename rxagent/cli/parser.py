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
_CHAT = """A conversation in a terminal app: ? shows its keys. It needs Textual: pip install 'rxagent[chat]'.

Conversations are kept, and found again with ctrl+p. Without --model the built-in demo model answers, offline and by script.
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
    _chat(commands.add_parser)
    _recorded(commands.add_parser)
    _drawings(commands.add_parser)
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
    run.add_argument(
        "--mode",
        choices=("text", "json", "rpc"),
        help="text (default); json: one event per line; rpc: JSON Lines both ways on stdio (prompt, steer, follow_up, abort, …)",
    )
    run.add_argument("--store", metavar="FILE", help="keep the session in this file: JSON Lines by its suffix, else SQLite")
    run.add_argument("--session", metavar="ID", help="go on with this session of the store, or begin it")
    run.add_argument(
        "--answer", action="append", metavar="ID=ANSWER", help="answer (JSON or text) to what an interrupted run asks"
    )
    run.add_argument("-q", "--quiet", action="store_true", default=None, help="nothing but errors on stderr")


def _chat(add: Add) -> None:
    chat = add("chat", help="talk with an agent in a terminal app", description=_CHAT, formatter_class=_Lines)
    chat.set_defaults(module="chat")
    chat.add_argument("first", nargs="*", metavar="PROMPT", help="sent at once")
    add_agent_options(chat)
    chat.add_argument(
        "--ask", action="append", metavar="TOOL", help="ask before this tool runs; all (default with --tool) or none; repeatable"
    )
    chat.add_argument("--store", metavar="FILE", help="keep conversations in this file; default: the user's own")
    chat.add_argument("--no-store", action="store_true", help="keep nothing")
    chat.add_argument("--session", metavar="ID", help="go on with this conversation")
    chat.add_argument("--last", action="store_true", help="go on with the latest conversation")
    chat.add_argument("--theme", choices=("auto", "dark", "light"), help="colours; ctrl+g switches")


def _recorded(add: Add) -> None:
    run_help = "a file of JSON Lines (- for stdin), or with --store a session's id or the beginning of it"
    replay = add("replay", help="play a recorded run", description="Plays a recorded run, or shows its state at one event.")
    replay.set_defaults(module="replay")
    replay.add_argument("run", metavar="RUN", help=run_help)
    replay.add_argument("--store", metavar="FILE", help="the store that holds it")
    replay.add_argument("--speed", type=_more_than_zero, metavar="X", help="1: as fast as it was, 2: twice as fast; else at once")
    replay.add_argument("--at", type=_not_negative, metavar="SEQ", help="show the state right after this event, as JSON")
    replay.add_argument("--mode", choices=("text", "json"), default="text", help="text (default), or json: one event per line")
    trace = add("trace", help="draw a recorded run as swimlanes", description="Draws a recorded run as swimlanes: SVG or HTML.")
    trace.set_defaults(module="trace")
    trace.add_argument("run", metavar="RUN", help=run_help)
    trace.add_argument("--store", metavar="FILE", help="the store that holds it")
    trace.add_argument("-o", "--output", metavar="FILE", help="where to write it (.svg or .html); default: stdout")
    trace.add_argument("--html", action="store_true", help="a page of its own that scrolls and zooms")
    runs = add("runs", help="list the sessions of a store")
    runs.set_defaults(module="runs")
    runs.add_argument("--store", metavar="FILE", required=True, help="the store")


def _drawings(add: Add) -> None:
    marbles = add("marbles", help="draw the marble blocks of a Markdown file")
    marbles.set_defaults(module="marbles")
    marbles.add_argument("file", metavar="FILE", help="a Markdown file with marble blocks")
    svg_help = "write an SVG for each block, into FILE's name and -svg unless a directory is given; without it, list them"
    marbles.add_argument("--svg", nargs="?", const="", metavar="DIRECTORY", help=svg_help)
    models = add("models", help="list what --model understands")
    models.set_defaults(module="models")


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


def _more_than_zero(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"expected a number above 0, not {text!r}")
    return number


def _not_negative(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"expected a whole number, not {text!r}")
    return int(text)
