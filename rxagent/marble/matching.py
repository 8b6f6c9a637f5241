"""Whether something that came is what a term of the legend expects; only what the term names is compared."""

from collections.abc import Mapping
from typing import cast

from rxagent import events, messages
from rxagent.marble.legend import Anything, Literal, Pattern, Slot, Term
from rxagent.marble.vocabulary import CLASSES, ROLES, SHORT, Evaluate, check_fields, principal, read_call
from rxagent.messages import ToolResult


def accepts(term: Term, value: object, evaluate: Evaluate) -> bool:
    """Whether ``value`` is one that ``term`` expects."""
    if term.word == "call":
        return _accepts_call(term, value, evaluate)
    if term.word in ROLES or term.word == "result":
        return _accepts_message(term, value, evaluate)
    word = SHORT.get(term.word, term.word)
    if word not in CLASSES:  # what is done to an agent, or makes a stream end, never comes out of one
        return False
    check_fields(term, CLASSES[word])
    if isinstance(value, events.MessageUpdate) and word != "message_update":
        value = value.delta
    if isinstance(value, str) and word in ("text_delta", "thinking_delta"):
        return len(term.positional) == 1 and fits(term.positional[0], value, evaluate)
    return getattr(value, "type", None) == word and _fields_fit(term, value, evaluate)


def _fields_fit(term: Term, value: object, evaluate: Evaluate) -> bool:
    names = principal(term.word, term.positional, [name for name, _ in term.fields])
    return all(
        _field_fits(value, name, slot, evaluate) for name, slot in (*zip(names, term.positional, strict=True), *term.fields)
    )


def _field_fits(value: object, name: str, slot: Slot, evaluate: Evaluate) -> bool:
    if name == "tool_name" and isinstance(slot, Literal) and slot.source.endswith(")"):
        called, positional, keywords = read_call(slot, evaluate)
        return look_up(value, "tool_name") == called and _arguments_fit(look_up(value, "args"), positional, keywords)
    try:
        found = look_up(value, name)
    except LookupError:
        return False
    return fits(slot, found, evaluate)


def _arguments_fit(args: object, positional: list[object], keywords: dict[str, object]) -> bool:
    if not isinstance(args, Mapping):
        return False
    given = cast("Mapping[str, object]", args)
    rest = [value for name, value in given.items() if name not in keywords]
    return rest == positional and all(given.get(name, _MISSING) == value for name, value in keywords.items())


_MISSING = object()


def _accepts_call(term: Term, value: object, evaluate: Evaluate) -> bool:
    if isinstance(value, events.MessageUpdate):
        value = value.delta
    if not term.positional or not isinstance(term.positional[0], Literal):
        return isinstance(value, messages.ToolCall)
    name, positional, keywords = read_call(term.positional[0], evaluate)
    if isinstance(value, events.ToolCallStart):
        return value.name == name
    return (
        isinstance(value, messages.ToolCall)
        and value.name == name
        and _arguments_fit(value.arguments, positional, keywords)
        and all(_field_fits(value, field, slot, evaluate) for field, slot in term.fields)
    )


def _accepts_message(term: Term, value: object, evaluate: Evaluate) -> bool:
    message = getattr(value, "message", value)
    if term.word == "result":
        if isinstance(value, events.ToolEnd):
            message = value.result
        elif not isinstance(value, ToolResult):
            return False
    elif getattr(message, "role", None) != term.word:
        return False
    return all(fits(slot, message, evaluate) for slot in term.positional) and all(
        _field_fits(message, name, slot, evaluate) for name, slot in term.fields
    )


def look_up(value: object, path: str) -> object:
    """``value.a.b[0]`` for the path ``a.b[0]``; raises ``LookupError`` where there is none."""
    for step in path.replace("[", ".[").split("."):
        try:
            if step.startswith("["):
                value = cast("list[object]", value)[int(step[1:-1])]
            elif isinstance(value, Mapping):
                value = cast("Mapping[str, object]", value)[step]
            else:
                value = getattr(value, step)
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            raise LookupError(f"there is no {path}: {error}") from None
    return value


def fits(slot: Slot, value: object, evaluate: Evaluate) -> bool:
    """Whether ``value`` is what ``slot`` expects."""
    if isinstance(slot, Anything):
        return True
    if isinstance(slot, Pattern):
        return slot.regex.search(text_of(value)) is not None
    return same(evaluate(slot), value)


def same(wanted: object, value: object) -> bool:
    """Equality as a reader of the block means it: 1 is not True, and a message or result equals its text."""
    if isinstance(wanted, bool | int | float) and isinstance(value, bool | int | float):
        return isinstance(wanted, bool) == isinstance(value, bool) and wanted == value
    if isinstance(wanted, str) and isinstance(value, str):
        return wanted == value
    try:
        if (type(wanted) is type(value) or not isinstance(wanted, str)) and bool(wanted == value):
            return True
    except Exception:
        return repr(wanted) == repr(value)
    if isinstance(wanted, BaseException):
        return type(wanted) is type(value) and wanted.args == cast("BaseException", value).args
    return isinstance(wanted, str | int | float) and _has_text(value) and text_of(value) == str(wanted)


def _has_text(value: object) -> bool:
    """Whether ``value`` is one of ours that people know by its text, or a sequence of such."""
    if isinstance(value, tuple | list):
        items = cast("list[object]", value)
        return len(items) > 0 and all(_has_text(item) for item in items)
    return isinstance(value, events.ErrorInfo) or isinstance(getattr(value, "text", None), str)


def text_of(value: object) -> str:
    """The text by which people know ``value``: a message's text, an error's message, else its repr."""
    if isinstance(value, str):
        return value
    text = getattr(value, "text", None)
    if isinstance(text, str):
        return text
    if isinstance(value, events.ErrorInfo | BaseException):
        return str(value)
    if isinstance(value, tuple | list):
        return "".join(text_of(item) for item in cast("list[object]", value))
    return repr(value)
