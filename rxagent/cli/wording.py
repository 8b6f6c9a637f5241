"""How values are said in one line."""

from pydantic import JsonValue
from pydantic_core import to_json

from rxagent.messages import JsonObject

_WIDTH = 200  # characters of a line that people read


def first_line(value: JsonValue) -> str:
    """The first line of a text, or a value as JSON, cut to what fits."""
    text = value if isinstance(value, str) else to_json(value).decode()
    line, _, rest = text.strip().partition("\n")
    return f"{line[: _WIDTH - 1]}…" if rest.strip() or len(line) > _WIDTH else line


def arguments_of(args: JsonObject | str) -> str:
    """The arguments of a call as they would stand in a program."""
    if isinstance(args, str):
        return first_line(args)
    return first_line(", ".join(f"{name}={to_json(value).decode()}" for name, value in args.items()))


def seconds(duration: float) -> str:
    """A duration."""
    return f"{duration:.1f} s" if duration < 60 else f"{duration // 60:.0f} min {duration % 60:.0f} s"
