"""What a command was asked for: its arguments, over a configuration file, over the defaults."""

import os
import sys
import tomllib
from argparse import Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, cast

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError
from pydantic_core import from_json

from rxagent.cli.demo_tools import DEMO_TOOLS
from rxagent.cli.loading import load_tools
from rxagent.engine import Agent, Limits, Retry
from rxagent.errors import UsageError
from rxagent.messages import ThinkingLevel
from rxagent.models import Model, resolve


class Settings(BaseModel):
    """The options of the agent and its run; also the keys of a configuration file (with ``-`` or ``_``)."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    model: str = "demo"
    base_url: str | None = None
    api_key: str | None = Field(default=None, repr=False)
    system: str = ""
    tool: tuple[str, ...] = ()
    thinking: ThinkingLevel = "off"
    no_stream: bool = False
    max_turns: int = Field(default=50, ge=1)
    retries: int = Field(default=2, ge=0)
    mode: Literal["text", "json", "rpc"] = "text"
    quiet: bool = False
    prompt: str = ""
    store: str | None = None
    session: str | None = None
    answer: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    theme: Literal["auto", "dark", "light"] = "auto"

    @property
    def answers(self) -> dict[str, JsonValue] | None:
        """What is answered to an interrupted run, by interrupt id; None: the run begins with a prompt."""
        return {key: _json_or_text(value) for key, _, value in (each.partition("=") for each in self.answer)} or None

    @property
    def is_demo(self) -> bool:
        """Whether the built-in model answers."""
        return self.model == "demo"


def read_settings(arguments: Namespace) -> Settings:
    """The settings of a command.

    Raises:
        UsageError: the configuration file can't be read, or says something that is no setting; names file and key.
    """
    given = {name: value for name, value in vars(arguments).items() if name in Settings.model_fields and value is not None}
    path, is_own = _config_file(cast("str | None", arguments.config))
    from_file = _read_file(path, required=is_own) if path is not None else {}
    words = cast("Sequence[str]", given.pop("prompt", ()))
    if "model" in given and from_file.get("model", given["model"]) != given["model"]:
        from_file = {key: value for key, value in from_file.items() if key not in ("base_url", "api_key")}  # of another model
    settings = _checked({**from_file, **given}, str(path))
    if settings.answer and not (settings.store and settings.session):
        raise UsageError("--answer needs --store and --session: where the run is that asked")
    if unnamed := [each for each in settings.answer if "=" not in each[1:]]:
        raise UsageError(f"--answer {unnamed[0]!r}: write ID=ANSWER")
    return settings.model_copy(update={"prompt": read_prompt(words, settings)}) if hasattr(arguments, "prompt") else settings


def make_agent(settings: Settings) -> Agent:
    """The agent that the settings describe; the demo model brings its own tools unless others are named.

    Raises:
        UsageError: a model, key or tool is not to be had; says which.
    """
    tools = load_tools(settings.tool) or (list(DEMO_TOOLS) if settings.is_demo else [])
    return Agent(
        make_model(settings),
        system_prompt=settings.system,
        tools=tools,
        thinking_level=settings.thinking,
        streaming=not settings.no_stream,
        limits=Limits(max_turns=settings.max_turns),
        retry=Retry(attempts=settings.retries + 1),
    )


def make_model(settings: Settings) -> Model:
    """The model that the settings name."""
    if settings.is_demo and settings.base_url is not None:
        raise UsageError("--base-url needs --model, the server's name for the model")
    return resolve(settings.model, base_url=settings.base_url, api_key=settings.api_key)


def read_prompt(words: Sequence[str], settings: Settings) -> str:
    """The prompt: the words given, ``-`` standing for stdin; without any, the file's, or stdin if that is no terminal.

    Raises:
        UsageError: there is no prompt.
    """
    if settings.mode == "rpc" or settings.answer:
        return ""
    if not words and settings.prompt:
        return settings.prompt
    if words == ["-"] or (not words and not sys.stdin.isatty()):
        prompt = _stdin()
    else:
        prompt = "\n\n".join(" ".join(part) if part != ["-"] else _stdin() for part in _parts(words))
    if not prompt.strip():
        raise UsageError('there is no prompt: give one, as in rxagent run "add 2 and 2", or - to read it from stdin')
    return prompt


def _parts(words: Sequence[str]) -> list[list[str]]:
    """Words in a row as one part, each ``-`` as a part of its own."""
    parts: list[list[str]] = []
    for word in words:
        if word == "-" or not parts or parts[-1] == ["-"]:
            parts.append([])
        parts[-1].append(word)
    if parts.count(["-"]) > 1:
        raise UsageError("- stands for stdin and can be given once")
    return parts


def _json_or_text(text: str) -> JsonValue:
    try:
        return from_json(text)
    except ValueError:
        return text


def _stdin() -> str:
    data = sys.stdin.buffer.read()
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise UsageError(f"stdin is no UTF-8 text: {error.reason} at byte {error.start}") from None


def _config_file(given: str | None) -> tuple[Path | None, bool]:
    """The file to read, and whether it was asked for by name."""
    named = given or os.environ.get("RXAGENT_CONFIG")
    if named:
        return Path(named), True
    home = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")  # noqa: PTH111 - Path.home() raises where there is none
    return Path(home) / "rxagent" / "config.toml", False


def _read_file(path: Path, *, required: bool) -> dict[str, object]:
    try:
        with path.open("rb") as file:
            data: Mapping[str, object] = tomllib.load(file)
    except (FileNotFoundError, NotADirectoryError) as error:
        if not required:
            return {}
        raise UsageError(f"there is no configuration file {str(path)!r}") from error
    except OSError as error:
        raise UsageError(f"the configuration file {str(path)!r} can't be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"the configuration file {str(path)!r} is no TOML: {error}") from error
    return {key.replace("-", "_"): value for key, value in data.items()}


def _checked(values: Mapping[str, object], path: str) -> Settings:
    try:
        return Settings.model_validate(values)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        key = ".".join(str(step) for step in first["loc"])
        known = f" (known: {', '.join(Settings.model_fields)})" if first["type"] == "extra_forbidden" else ""
        raise UsageError(f"the configuration file {path!r}: {key}: {first['msg']}{known}") from error
