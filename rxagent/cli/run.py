"""`rxagent run`: one prompt, one run, in text or JSON mode; or an agent on stdio."""

import asyncio
from argparse import Namespace
from contextlib import AsyncExitStack

from rxagent.cli import exits
from rxagent.cli.interrupts import aborting
from rxagent.cli.places import opened
from rxagent.cli.progress import Progress
from rxagent.cli.rpc import Rpc
from rxagent.cli.settings import Settings, make_agent, read_settings
from rxagent.cli.terminal import Terminal
from rxagent.cli.view import TextView
from rxagent.engine import Agent, Run
from rxagent.events import AnyEvent, to_json
from rxagent.runner import Runner


def start(arguments: Namespace) -> int:
    """Runs the prompt; returns the exit code of its outcome."""
    settings = read_settings(arguments)
    return asyncio.run(_run(settings))


async def _run(settings: Settings) -> int:
    async with AsyncExitStack() as stack:
        store = await stack.enter_async_context(opened(settings.store, must_exist=False)) if settings.store else None
        runner = Runner(make_agent(settings), store)
        agent = await runner.open(settings.session)
        terminal = Terminal(lambda: agent.abort("nobody reads the answer any more"), quiet=settings.quiet)
        if settings.is_demo:
            terminal.note("demo model: offline, its answers are scripted. For a real one: --model PROVIDER:NAME")
        if settings.store:
            terminal.note(f"session {agent.session_id}")
        if settings.mode == "rpc":
            return await _serve(Rpc(runner, agent, terminal), agent, terminal)
        return await _answer(settings, runner, agent, terminal)


async def _answer(settings: Settings, runner: Runner, agent: Agent, terminal: Terminal) -> int:
    if settings.mode == "json":
        _json_lines(agent, terminal)
    else:
        TextView(agent.events, terminal)
    with aborting(lambda: agent.abort("by Ctrl-C"), asyncio.get_running_loop()):
        async with Progress(agent, terminal):
            answers = settings.answers
            run: Run = agent.prompt(settings.prompt) if answers is None else runner.resume(agent.session_id, answers)
            result = await run
    if result.outcome == "interrupted":
        where = f"--store {settings.store} --session {agent.session_id}" if settings.store else "--store FILE from the start"
        terminal.note(f"answer with: rxagent run {where} --answer ID=ANSWER")
    return exits.of(result.outcome)


async def _serve(rpc: Rpc, agent: Agent, terminal: Terminal) -> int:
    _json_lines(agent, terminal)
    with aborting(rpc.abort, asyncio.get_running_loop()):
        run = await rpc.serve()
    return exits.COMPLETED if run is None or run.outcome is None else exits.of(run.outcome)


def _json_lines(agent: Agent, terminal: Terminal) -> None:
    def write(event: AnyEvent) -> None:
        terminal.answer.write(f"{to_json(event).decode()}\n")

    agent.events.subscribe(write)
