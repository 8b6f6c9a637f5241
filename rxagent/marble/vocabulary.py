"""The words of a legend, and what each makes when it stands in an input.

Every `AgentEvent` and `ModelEvent` is a word (its ``type``), besides the short ones listed in `SHORT`.
"""

import ast
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, fields
from typing import cast, get_args

from rxagent.events import BlockEvent, KnownEvent, ModelError, ResponseEnd, ResponseStart
from rxagent.marble.legend import Literal, Slot, Term
from rxagent.messages import JsonObject, ToolResult, UserMessage


@dataclass(frozen=True, slots=True)
class Call:
    """In a model's line: a whole tool call."""

    name: str
    arguments: JsonObject
    id: str = ""


@dataclass(frozen=True, slots=True)
class Returned:
    """In a tool's line: the tool returns ``value``."""

    value: object


@dataclass(frozen=True, slots=True)
class Asked:
    """In a tool's line: the tool interrupts with a question."""

    question: str


@dataclass(frozen=True, slots=True)
class Action:
    """In a user's line: something done to the agent (see `ACTIONS`), with its text."""

    kind: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class Cut:
    """In a model's line: the stream stops without its terminal event."""


SHORT = {
    "text": "text_delta",
    "thinking": "thinking_delta",
    "done": "response_end",
    "error": "model_error",
    "update": "message_update",
}
ACTIONS = frozenset({"prompt", "steer", "interrupt", "follow_up", "abort", "continue", "retry", "reset"})
ROLES = frozenset({"system", "user", "assistant", "tool"})
CLASSES: dict[str, type] = {
    str(next(f.default for f in fields(kind) if f.name == "type")): kind
    for kind in (*get_args(KnownEvent), *get_args(BlockEvent), ResponseStart, ResponseEnd, ModelError)
}
WORDS = frozenset({*CLASSES, *SHORT, *ACTIONS, *ROLES, "call", "result", "ask", "cut"})

# What the positional arguments of a word mean, in order; the last list that is long enough counts.
_PRINCIPAL: dict[str, tuple[tuple[str, ...], ...]] = {
    "message_update": (("delta",),),
    "message_start": (("message",), ("message.role", "message")),
    "message_end": (("message",), ("message.role", "message")),
    "agent_start": (("input",),),
    "agent_end": (("outcome",), ("outcome", "error")),
    "turn_start": (("turn",),),
    "turn_end": (("message",),),
    "tool_start": (("tool_name",),),
    "tool_update": (("partial",), ("tool_name", "partial")),
    "tool_end": (("result",), ("tool_name", "result")),
    "model_retry": (("delay",), ("delay", "error")),
    "custom": (("name",), ("name", "data")),
    "handoff": (("target",), ("source", "target")),
    "tool_call_start": (("name",),),
    "tool_call_end": (("arguments",),),
    "model_error": (("kind",), ("kind", "message")),
}

Evaluate = Callable[[Literal], object]


def principal(word: str, given: Sequence[Slot], named: Collection[str] = ()) -> tuple[str, ...]:
    """The fields that the positional arguments of ``word`` mean beside the ``named`` ones.

    Raises ``ValueError`` if so many mean nothing.
    """
    names = meanings(SHORT.get(word, word), given, named)
    if len(names) < len(given):
        raise ValueError(f"{word} takes fewer values without a name; write field=value")
    return names


def meanings(word: str, given: Sequence[Slot], named: Collection[str] = ()) -> tuple[str, ...]:
    """As `principal` for the full ``word``, but empty if so many mean nothing."""
    count = len(given)
    if word in ("tool_end", "tool_update") and count == 1 and _is_name(given[0]):
        options: tuple[tuple[str, ...], ...] = (("tool_name",),)
    elif word in _PRINCIPAL:
        options = _PRINCIPAL[word]
    elif word in ROLES:
        options = (("text",),)
    else:
        kind = CLASSES.get(word)
        names = [f.name for f in fields(kind) if f.name not in ("seq", "origin", "type")] if kind else []
        options = (tuple(names),)
    fitting = (names[:count] for names in options if len(names) >= count)
    return next((names for names in fitting if not set(names) & set(named)), ())


def _is_name(slot: Slot) -> bool:
    """Whether ``slot`` is a bare word, or a call such as ``add(2, 2)``: a tool's, not what it returned."""
    if not isinstance(slot, Literal) or slot.source in ("True", "False", "None"):
        return False
    return re.fullmatch(r"[A-Za-z_][\w-]*(\(.*\))?", slot.source, re.DOTALL) is not None


def check_fields(term: Term, kind: type) -> None:
    """Raise ``ValueError`` if ``term`` names a field that ``kind`` has not."""
    unknown = next((name for name, _ in term.fields if not hasattr(kind, name.partition(".")[0].partition("[")[0])), None)
    if unknown is not None:
        known = ", ".join(f.name for f in fields(kind) if f.name not in ("seq", "type"))
        raise ValueError(f"{term.word} has no field {unknown!r}; expected one of {known}")


def make(term: Term, evaluate: Evaluate) -> object:  # noqa: PLR0911 - one return for each kind of word
    """The value that ``term`` is in an input line. Raises ``ValueError`` if it can't be one."""
    if term.word == "call":
        return _make_call(term, evaluate)
    if term.word == "result":
        return Returned(_make_result(term, evaluate))
    values = [_given(slot, evaluate) for slot in term.positional]
    named = {name: _given(slot, evaluate) for name, slot in term.fields}
    if term.word in ACTIONS:
        return Action(term.word, *(str(v) for v in values), **{k: str(v) for k, v in named.items()})
    if term.word == "ask":
        return Asked(*(str(v) for v in values))
    if term.word == "cut":
        return Cut()
    if term.word == "user":
        return UserMessage(str(values[0]) if values else "")
    if term.word in ROLES:
        raise ValueError(f"{term.word} can be expected, but it can't stand in an input")
    kind = CLASSES[SHORT.get(term.word, term.word)]
    check_fields(term, kind)
    names = principal(term.word, term.positional, named)
    if any("." in name for name in names):
        raise ValueError(f"{term.word} takes fewer values without a name; write field=value")
    return kind(**dict(zip(names, values, strict=True)), **named)


def _given(slot: Slot, evaluate: Evaluate) -> object:
    if isinstance(slot, Literal):
        return evaluate(slot)
    raise ValueError("a pattern can only be expected; an input needs a value")


def _make_call(term: Term, evaluate: Evaluate) -> Call:
    named = {name: str(_given(slot, evaluate)) for name, slot in term.fields}
    if len(term.positional) != 1 or not isinstance(term.positional[0], Literal):
        raise ValueError("expected  call name(arguments)")
    name, positional, keywords = read_call(term.positional[0], evaluate)
    letters = [chr(ord("a") + n) for n in range(len(positional))]
    return Call(name, cast("JsonObject", {**dict(zip(letters, positional, strict=True)), **keywords}), **named)


def read_call(slot: Literal, evaluate: Evaluate) -> tuple[str, list[object], dict[str, object]]:
    """Read ``name(1, x=2)`` as its name and its values."""
    try:
        tree = ast.parse(slot.source, mode="eval").body
    except SyntaxError:  # a bare word such as a-b
        return slot.source, [], {}
    if not isinstance(tree, ast.Call):
        return slot.source, [], {}

    def value(node: ast.expr) -> object:
        return evaluate(Literal(f"({ast.unparse(node)})", slot.place))

    keywords = {k.arg: value(k.value) for k in tree.keywords if k.arg is not None}
    return ast.unparse(tree.func), [value(node) for node in tree.args], keywords


def _make_result(term: Term, evaluate: Evaluate) -> object:
    values = [_given(slot, evaluate) for slot in term.positional]
    named = {name: _given(slot, evaluate) for name, slot in term.fields}
    if not named and len(values) == 1:
        return values[0]
    content = values[0] if values else ""
    build = cast("Callable[..., ToolResult]", ToolResult)
    return build(content if isinstance(content, str | list | tuple) else str(content), **named)
