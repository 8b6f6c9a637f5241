"""`rxagent chat`: the terminal app."""

import asyncio
import gc
import os
import signal
import sys
from argparse import Namespace
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import cast

from rxagent.cli import exits
from rxagent.cli.demo_tools import ASKING
from rxagent.cli.places import opened
from rxagent.cli.settings import Settings, make_agent, make_model, read_settings
from rxagent.errors import MissingExtra, UsageError
from rxagent.log import EventStore
from rxagent.models import Model
from rxagent.stores import MemoryStore

try:
    from rxagent.chat.app import ChatApp
    from rxagent.chat.desk import Approvals, Desk
    from rxagent.chat.look import DARK, LIGHT, Palette
    from rxagent.chat.offers import offered_models
    from rxagent.chat.window import Options
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] not in ("textual", "rich", "markdown_it"):
        raise
    raise MissingExtra("rxagent chat needs Textual: pip install 'rxagent[chat]'") from error


def start(arguments: Namespace) -> int:
    """Runs the app; returns its exit code."""
    settings = read_settings(arguments)
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("rxagent chat needs a terminal; in a pipe, use rxagent run")
    return asyncio.run(_chat(settings, arguments))


async def _chat(settings: Settings, arguments: Namespace) -> int:
    agent = make_agent(settings)
    async with _store(settings, in_memory=bool(arguments.no_store)) as store:
        desk = Desk(agent, store, _approvals(settings))
        session = settings.session or (await desk.latest() if arguments.last else None)
        options = Options(
            resolve=lambda name: _model(settings, name),
            models=lambda: offered_models(agent.model.name),
            palette=_palette(settings.theme),
            prompt=" ".join(cast("list[str]", arguments.first)),
            session=session,
            is_demo=settings.is_demo,
            slow_line="SSH_CONNECTION" in os.environ,
        )
        gc.collect()
        gc.freeze()  # what is loaded stays: the collector, which stops the app, has less to walk
        app = ChatApp(desk, options)
        with _terminable(lambda: app.exit(exits.ABORTED)):
            code = await app.run_async()
        return (app.return_code or exits.COMPLETED) if code is None else code  # None: it broke down, and has said so


@contextmanager
def _terminable(leave: Callable[[], None]) -> Generator[None]:
    """SIGTERM leaves as a key would: the run is stopped, the terminal is as it was. A second one ends the process."""
    loop = asyncio.get_running_loop()

    def terminate() -> None:
        loop.remove_signal_handler(signal.SIGTERM)
        leave()

    try:
        loop.add_signal_handler(signal.SIGTERM, terminate)
    except NotImplementedError:  # Windows
        yield
        return
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGTERM)


@asynccontextmanager
async def _store(settings: Settings, *, in_memory: bool) -> AsyncGenerator[EventStore]:
    if in_memory:
        async with MemoryStore() as store:
            yield store
        return
    path = settings.store
    if path is None:
        home = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "rxagent"
        try:
            home.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise UsageError(f"{str(home)!r} can't be made: {error.strerror}. Give --store FILE or --no-store") from error
        path = str(home / "chat.sqlite")
    async with opened(path, must_exist=False) as store:
        yield store


def _approvals(settings: Settings) -> Approvals:
    if not settings.ask:
        return Approvals(ASKING if settings.is_demo and not settings.tool else None)
    if "none" in settings.ask:
        return Approvals()
    return Approvals(None if "all" in settings.ask else settings.ask)


def _model(settings: Settings, name: str) -> Model:
    own = name == settings.model
    return make_model(settings if own else settings.model_copy(update={"model": name, "base_url": None, "api_key": None}))


def _palette(theme: str) -> Palette:
    if theme == "auto":  # what some terminals tell of their background: "15;0", light on dark
        background = os.environ.get("COLORFGBG", "").rpartition(";")[2]
        theme = "light" if background in ("7", "15") else "dark"
    return LIGHT if theme == "light" else DARK
