"""What lines that begin with a slash do."""

from typing import Protocol, cast, get_args

from rxagent.engine import Agent
from rxagent.errors import UsageError
from rxagent.messages import ThinkingLevel

ACTIONS = {
    "new": "new",
    "history": "history",
    "theme": "theme",
    "keys": "keys",
    "help": "keys",
    "retry": "retry",
    "stop": "stop",
    "quit": "leave",
    "exit": "leave",
}
"""Commands that are a key's action under a name."""


class Commanded(Protocol):
    """What is asked of the app."""

    agent: Agent | None

    def use_model(self, name: str) -> None:
        """Another model."""
        ...

    def act(self, name: str) -> None:
        """An action by its name, as a key would do it."""
        ...

    def fault(self, error: BaseException) -> None:
        """Shows what went wrong."""
        ...

    def refresh_bars(self) -> None:
        """Shows the present state."""
        ...


def is_command(line: str) -> bool:
    """Whether a line is meant as a command; a path, such as ``/etc/hosts``, is not."""
    name = line[1:].split(maxsplit=1)[:1]
    return line.startswith("/") and bool(name) and name[0].isalpha()


def run_command(app: Commanded, line: str) -> bool:
    """Does what the line says, or says what there is; whether it was a command that could be done."""
    name, _, rest = line[1:].partition(" ")
    rest = rest.strip()
    if name == "model":
        if rest:
            app.use_model(rest)
        else:
            app.act("models")
    elif name == "thinking":
        _think(app, rest)
    elif name in ACTIONS:
        app.act(ACTIONS[name])
    else:
        known = ", ".join(f"/{each}" for each in ("model", "thinking", *ACTIONS))
        app.fault(UsageError(f"there is no command /{name[:40]}; there are {known}"))
        return False
    return True


def _think(app: Commanded, level: str) -> None:
    levels = get_args(ThinkingLevel)
    if level not in levels:
        app.fault(UsageError(f"/thinking takes one of {', '.join(levels)}"))
    elif app.agent is not None:
        app.agent.thinking_level = cast("ThinkingLevel", level)
        app.refresh_bars()
