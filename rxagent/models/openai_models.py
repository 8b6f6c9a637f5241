"""What OpenAI's models take, by name."""

import re

from rxagent.messages import ThinkingLevel

# The first row that fits a model's name says which efforts it takes, from "off" up; without any it does not reason.
_LEVELS: tuple[ThinkingLevel, ...] = ("off", "minimal", "low", "medium", "high", "xhigh")
_EFFORTS: tuple[tuple[re.Pattern[str], tuple[str, ...]], ...] = tuple(
    (re.compile(pattern), tuple(efforts.split()))
    for pattern, efforts in (
        (r"gpt-[34]|gpt-5(\.\d+)?-chat", ""),
        (r"gpt-5(\.\d+)?-pro", "high high high high high high"),
        (r"gpt-5-codex|gpt-oss|(^|/)o\d", "low low low medium high high"),
        (r"gpt-5\.1-codex-max", "low low low medium high xhigh"),
        (r"gpt-5\.1-codex", "low low low medium high high"),
        (r"gpt-5($|-)", "minimal minimal low medium high high"),
        (r"gpt-5\.1", "none low low medium high high"),
        (r"gpt-\d", "none low low medium high xhigh"),
    )
)
_ANY_EFFORTS = ("", "minimal", "low", "medium", "high", "high")


def effort_of(model: str, level: ThinkingLevel) -> str:
    """The reasoning effort that comes nearest to a thinking level; empty where none is to be sent."""
    known = next((efforts for pattern, efforts in _EFFORTS if pattern.search(model.lower())), None)
    if known == ():
        return ""
    return (known or _ANY_EFFORTS)[_LEVELS.index(level)]
