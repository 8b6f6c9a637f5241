"""How servers word what went wrong. A new wording is one line here."""

import re
from functools import cache

from rxagent.events.model import ErrorKind


def _any(*alternatives: str) -> str:
    return "|".join(alternatives)


# The first that matches wins: kind, whether trying again helps, words.
_WORDINGS: tuple[tuple[ErrorKind, bool, str], ...] = (
    # before the overflows: AWS says "Too many tokens, please wait" when it throttles
    (
        "rate_limit",
        True,
        _any(r"throttl", r"too many tokens,? please wait", r"tokens? per (min|day|hour|sec)", r"\b(TPM|TPD|RPM|RPD)\b"),
    ),
    (
        "context_overflow",
        False,
        _any(
            r"context_length_exceeded",
            r"contextwindowexceeded",
            r"context[ _-]?(length|window|size|limit)s?\b.{0,60}(exceed|reached|is (only )?\d|of only|overflow|full|too)",
            r"(exceed\w*|over|beyond|longer than|larger than|greater than|surpass\w*|fit\w*|than) .{0,60}context",
            r"maximum context length",
            r"model_context_window",
            r"context (window|length|size)s? (of|is) \d+",
            r"(prompt|input|request|messages?|conversation|transcript) (is|are|was|were)? ?(way |far )?too (long|large|big)",
            r"input length .{0,40}exceed",
            r"input token count",
            r"too many (input |prompt )?tokens|too many total text bytes",
            r"(input|prompt|request|messages?) (is|are) (longer|larger|bigger|greater) than .{0,20}(max|allow|limit)",
            r"token limit exceeded",
            r"exceed\w* (the |this |your )?(model'?s? |maximum |max )?(token|input|prompt) (limit|length)",
            r"exceeded model token limit",
            r"exceed\w* (the )?(maximum|max) (number of )?(allowed )?(input |prompt )?(tokens|length)",
            r"(token count|(number|length) of (the )?(input|prompt)|(input|prompt|total|context) tokens?).{0,40}exceed",
            r"tokens? (in|of) (the |your )?(prompt|input|request|messages?).{0,40}exceed",
            r"tokens?,? (which |that )?exceed\w* (the |this |your )?model'?s? (maximum )?limit",
            r"max message tokens|max_prompt_tokens",
            r"(maximum|max) (input|prompt|sequence|model) length",
            r"max_model_len|max_prompt_length|n_ctx\b|exceed_context_size",
            r"reduce (the length|your prompt|the (size|number) of (the|your) (messages|prompt|input))",
            r"must have less than \d+ tokens",
            r"tokens.{0,40}(must be|should be) (<=|less than|at most)",
            r"range of input length should be",
            r"prompt contains \d+ tokens",
            # not that of a call's id, which may have 40 characters
            r"string too long.{0,60}maximum length \d{6,}",
            r"request_too_large|request (entity )?too large|payload too large",
            r"上下文.{0,10}(超|长度)|(输入|prompt|内容|文本|长度).{0,6}(超(长|过|出|限)|过长)",
        ),
    ),
    (
        "rate_limit",
        False,
        _any(
            r"insufficient_quota",
            r"insufficient[ _](credits?|balance|funds)",
            r"(current|daily|monthly|weekly|account) (usage |spending )?(quota|limit).{0,30}(exceeded|reached|exhausted)",
            r"exceeded your (current|monthly|daily) (quota|usage|limit|spending)",
            r"quota.{0,20}(exhausted|exceeded|used up)",
            r"(out of|no|not enough|requires more|add more|purchase more|run out of) credits?",
            r"credit balance",
            r"billing|payment[ _]required|prepaid|past due",
            r"spend(ing)? (limit|cap)|usage[ _]limit[ _](reached|exceeded)|hard limit",
            r"余额不足|欠费",
        ),
    ),
    (
        "overloaded",
        True,
        _any(
            r"overloaded",
            r"(at|over|exceed\w*|insufficient|no|out of|limited) (available )?capacity",
            r"no (healthy |available |active )?(upstream|instances?|workers?|replicas?|backends?)",
            r"(engine|model|server|service|system) is (currently |temporarily |too |very )*(overloaded|busy|unavailable|loading)",
            r"(server|service) (busy|unavailable)|temporarily unavailable|slow_?down|high (demand|load|traffic)|loading model",
        ),
    ),
    (
        "rate_limit",
        True,
        _any(
            r"rate[ _-]?limit",
            r"too[ _]many[ _]requests",
            r"resource[ _]?exhausted",
            r"concurren\w+ (request )?limit",
            r"tpm|rpm limit",
            r"\b1302\b|请求过于频繁",
        ),
    ),
    (
        "auth",
        False,
        _any(
            r"authenticat|unauthori[sz]ed|not authori[sz]ed",
            r"(invalid|incorrect|missing|wrong|expired|no|bad|provide\w*).{0,20}(api[ _-]?key|credentials|token\b|auth)",
            r"api[ _-]?key.{0,30}(not valid|invalid|missing|expired|required|not found|disabled|revoked)",
            r"permission[ _]?(denied|error)|forbidden|access denied|not allowed to|do(es)? not have (access|permission)",
        ),
    ),
    ("timeout", True, _any(r"time[ds]?[ -]?out", r"deadline[ _]?exceeded")),
    (
        "server",
        True,
        _any(
            r"server[ _]?(had an )?error",
            r"internal[ _-]?(server)?[ _]?error|\binternal\b",
            r"api_error|upstream|bad gateway|gateway|service unavailable|unavailable",
            r"(worker|engine|process|backend).{0,20}(died|crash|dead|lost|exited)|cuda|out of memory",
            r"something went wrong|unexpected error|unknown error|(please )?(try again|retry)",
            r"connection (reset|error|closed|refused)|disconnected",
        ),
    ),
    (
        "invalid_request",
        False,
        _any(
            r"invalid|bad[ _]request|malformed|not[ _]?found|unsupported|not support|does not exist|unprocessable",
            r"unknown (model|parameter|field)|validation|required|must be|not allowed|not permitted|unrecognized|unexpected",
        ),
    ),
)


@cache
def _patterns() -> tuple[tuple[ErrorKind, bool, re.Pattern[str]], ...]:
    # at the first failure, not at import: it takes 20 ms
    return tuple((kind, retryable, re.compile(words, re.IGNORECASE | re.DOTALL)) for kind, retryable, words in _WORDINGS)


def told_by(words: str) -> tuple[ErrorKind, bool] | None:
    """Kind of a failure, and whether trying again helps, by what the server says; None where that tells nothing."""
    return next(((kind, retryable) for kind, retryable, pattern in _patterns() if pattern.search(words)), None)
