"""`rxagent run`: one prompt, one run, in text or JSON mode."""

import asyncio
from argparse import Namespace

from rxagent.cli import exits
from rxagent.cli.interrupts import aborting
from rxagent.cli.progress import Progress
from rxagent.cli.settings import Settings, make_agent, read_settings
from rxagent.cli.terminal import Terminal
from rxagent.cli.view import TextView
from rxagent.engine import Agent
from rxagent.events import AnyEvent, to_json


def start(arguments: Namespace) -> int:
    """Runs the prompt; returns the exit code of its outcome."""
    settings = read_settings(arguments)
    return asyncio.run(_run(settings))


async def _run(settings: Settings) -> int:
    agent = make_agent(settings)
    terminal = Terminal(lambda: agent.abort("nobody reads the answer any more"), quiet=settings.quiet)
    if settings.is_demo:
        terminal.note("demo model: offline, its answers are scripted. For a real one: --model PROVIDER:NAME")
    if settings.mode == "json":
        _json_lines(agent, terminal)
    else:
        TextView(agent, terminal)
    with aborting(lambda: agent.abort("by Ctrl-C"), asyncio.get_running_loop()):
        async with Progress(agent, terminal):
            result = await agent.prompt(settings.prompt)
    return exits.of(result.outcome)


def _json_lines(agent: Agent, terminal: Terminal) -> None:
    def write(event: AnyEvent) -> None:
        terminal.answer.write(f"{to_json(event).decode()}\n")

    agent.events.subscribe(write)
