"""What the generations of Claude take: how they are made to think, and what they refuse. Data, and how it is read.

Source: https://platform.claude.com/docs/en/build-with-claude/thinking
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from rxagent.messages import JsonObject, ThinkingLevel
from rxagent.models.base import ModelRequest

Thinking = Literal["none", "budget", "adaptive"]
_BUDGETS: Mapping[ThinkingLevel, int] = {"minimal": 1024, "low": 4096, "medium": 10_000, "high": 20_000, "xhigh": 32_000}
_LEAST_BUDGET = 1024
_NEW = re.compile(r"claude[-_./](opus|sonnet|haiku|fable|mythos)[-_.](\d{1,2})(?:[-_.](\d{1,2}))?(?!\d)")
_OLD = re.compile(r"claude[-_./](\d)(?:[-_.](\d))?[-_.](opus|sonnet|haiku)")
_PREVIEW = re.compile(r"claude[-_./](fable|mythos)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Abilities:
    """What a model takes.

    Args:
        thinking: how it is asked to think.
        off: what turns thinking off where it is on by default: ``disabled``, or nothing does.
        display: thinking has to be asked for to be shown.
        best: the effort that ``xhigh`` becomes.
        temperature: it takes one.
        structured: it takes a schema for its answer.
        max_tokens: the cap on an answer, where the request has none.

    """

    thinking: Thinking = "budget"
    off: Literal["omit", "disabled", "impossible"] = "omit"
    display: bool = False
    best: str = "xhigh"
    temperature: bool = True
    structured: bool = False
    max_tokens: int = 8192


# (family or "", first version, abilities): the last row that fits is the model's
_46 = Abilities(thinking="adaptive", best="high", structured=True, max_tokens=64_000)
_47 = replace(_46, best="xhigh", display=True, temperature=False)
_ALWAYS = replace(_47, off="impossible")
_ROWS: tuple[tuple[str, tuple[int, int], Abilities], ...] = (
    ("", (0, 0), Abilities(thinking="none", max_tokens=4096)),
    ("", (3, 5), Abilities(thinking="none")),
    ("", (3, 7), Abilities(max_tokens=32_000)),
    ("", (4, 5), Abilities(structured=True, max_tokens=32_000)),
    ("", (4, 6), _46),
    ("opus", (4, 6), replace(_46, best="max")),
    ("", (4, 7), _47),
    ("", (5, 0), replace(_47, off="disabled")),
    ("", (5, 5), _ALWAYS),
    ("fable", (0, 0), _ALWAYS),
    ("mythos", (0, 0), _ALWAYS),
)
_UNKNOWN = Abilities()


def abilities(model: str, thinking: str | None = None) -> Abilities:
    """What a model takes, by its name. ``thinking`` (``none``, ``budget``, ``adaptive``) overrides how it is asked to think.

    Names that say no version of Claude, as other makers' models have, get the oldest form that is widely understood.
    """
    found = _UNKNOWN
    version = _version(model.lower())
    if version is not None:
        family, number = version
        for row_family, first, row in _ROWS:
            if row_family in ("", family) and number >= first:
                found = row
    if thinking == "adaptive" or thinking == "budget" or thinking == "none":  # noqa: PLR1714 - narrows to the literal
        found = replace(found, thinking=thinking)
    return found


def is_claude(model: str) -> bool:
    """Whether a name is that of a Claude, which signs its thinking."""
    return _version(model.lower()) is not None


def _version(model: str) -> tuple[str, tuple[int, int]] | None:
    if found := _NEW.search(model):
        return found[1], (int(found[2]), int(found[3] or 0))
    if found := _OLD.search(model):
        return found[3], (int(found[1]), int(found[2] or 0))
    if found := _PREVIEW.search(model):
        return found[1], (5, 0)
    return None


def max_tokens_and_thinking(request: ModelRequest, able: Abilities, *, default: int | None, may_begin: bool) -> JsonObject:
    """The fields ``max_tokens``, ``thinking`` and ``output_config`` that a thinking level means for a model.

    Args:
        request: what is asked.
        able: what the model takes.
        default: the cap on an answer where neither request nor model has one.
        may_begin: False where the turn at the end goes on after calls that no thinking of this model came
            before. A budget is refused there.

    """
    level = request.thinking_level
    cap = request.max_tokens or default or able.max_tokens
    if able.thinking == "none":
        return {"max_tokens": cap}
    if able.thinking == "adaptive":
        return {"max_tokens": cap, **_adaptive(level, able)}
    budget = _BUDGETS.get(level, 0)
    if request.max_tokens is None:
        cap = max(cap, budget + 8192)
    budget = min(budget, cap - _LEAST_BUDGET)
    if budget < _LEAST_BUDGET or not may_begin:
        return {"max_tokens": cap}
    return {"max_tokens": cap, "thinking": {"type": "enabled", "budget_tokens": budget}}


def _adaptive(level: ThinkingLevel, able: Abilities) -> JsonObject:
    if level == "off":
        if able.off == "impossible":
            return {"output_config": {"effort": "low"}}
        return {"thinking": {"type": "disabled"}} if able.off == "disabled" else {}
    effort = {"minimal": "low", "xhigh": able.best}.get(level, level)
    thinking: JsonObject = {"type": "adaptive", "display": "summarized"} if able.display else {"type": "adaptive"}
    return {"thinking": thinking, "output_config": {"effort": effort}}
