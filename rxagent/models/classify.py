"""What went wrong, out of what a server says: a status, headers, and a body of any shape."""

import email.utils
import re
import time
from collections.abc import Mapping
from typing import cast

from pydantic_core import from_json

from rxagent.events.model import ErrorKind, ModelError

_LONGEST = 2000  # characters of a server's message that are kept

# In all the wordings that servers are known for. The first pattern that matches wins.
_WORDINGS: tuple[tuple[ErrorKind, bool, re.Pattern[str]], ...] = (
    (
        "context_overflow",
        False,
        re.compile(
            r"context_length_exceeded|context[ _-]?(length|window|size|limit)|maximum context|model_context_window"
            r"|prompt is too long|prompt (is )?too (long|large)|input (is )?too long|too many (input )?tokens|exceeds? the (available )?context"
            r"|input token count.{0,40}exceeds|exceeds? the maximum (number of )?(input )?tokens|maximum (input|prompt) length"
            r"|reduce the length of|request_too_large|tokens? .{0,40}exceed.{0,40}(limit|maximum|context)|exceed_context|string_above_max_length"
            r"|max_model_len|n_ctx|(input|prompt|request).{0,30}(exceeds|larger than|longer than).{0,60}(tokens|context)",
            re.IGNORECASE | re.DOTALL,
        ),
    ),
    (
        "rate_limit",
        False,
        re.compile(
            r"insufficient_quota|exceeded your current quota|quota (has been )?(exhausted|exceeded)|billing|insufficient (credits?|balance|funds)"
            r"|credit balance is too low|payment required|out of credits|spending limit|monthly limit|usage limit|free[- ]tier.{0,40}exhausted",
            re.IGNORECASE | re.DOTALL,
        ),
    ),
    (
        "overloaded",
        True,
        re.compile(r"overloaded|at capacity|over capacity|no (healthy |available )?(upstream|capacity)|engine is currently|model is (currently )?busy|server is busy|temporarily unavailable|slow_down|capacity exceeded", re.IGNORECASE),
    ),
    (
        "rate_limit",
        True,
        re.compile(r"rate.?limit|too many requests|resource_exhausted|resource exhausted|tokens per (minute|day|min)|requests per (minute|day|min)|throttl|concurrency limit", re.IGNORECASE),
    ),
    (
        "auth",
        False,
        re.compile(r"authenticat|unauthori[sz]ed|invalid.{0,20}api.?key|incorrect api key|api.?key.{0,30}(not valid|invalid|missing|expired)|permission_?(denied|error)|no auth credentials|forbidden", re.IGNORECASE),
    ),
    ("timeout", True, re.compile(r"timed? ?out|deadline.?exceeded|timeout", re.IGNORECASE)),
    (
        "server",
        True,
        re.compile(r"server_error|internal.{0,10}(server )?error|api_error|bad gateway|service unavailable|upstream|unavailable|\binternal\b|worker died|something went wrong|try again", re.IGNORECASE),
    ),
    ("invalid_request", False, re.compile(r"invalid|bad request|not.?found|unsupported|does not exist|unprocessable|validation|required|must be", re.IGNORECASE)),
)

_BY_STATUS: Mapping[int, tuple[ErrorKind, bool]] = {
    401: ("auth", False),
    402: ("rate_limit", False),
    403: ("auth", False),
    408: ("timeout", True),
    409: ("server", True),
    413: ("context_overflow", False),
    425: ("server", True),
    429: ("rate_limit", True),
    498: ("auth", False),
    499: ("transport", True),
    503: ("overloaded", True),
    504: ("timeout", True),
    524: ("timeout", True),
    529: ("overloaded", True),
}


def error_of(body: object, status: int | None = None, headers: Mapping[str, str] | None = None) -> ModelError:
    """Classifies a failure. ``body``: parsed JSON of any shape, or text (HTML too)."""
    message, words, code = _read(body)
    status = status if status is not None and status >= 400 else code
    kind, retryable = _kind(words or message, status)
    after = retry_after(headers or {}, body)
    return ModelError(kind, message or _unsaid(status), retryable=retryable, retry_after=after, status=status)


def error_of_bytes(raw: bytes, status: int, headers: Mapping[str, str]) -> ModelError:
    """`error_of` for a body as it came."""
    text = raw.decode("utf-8", "replace").strip().removeprefix("\ufeff")
    body: object = text
    if text[:1] in "{[":
        try:
            body = from_json(text)
        except ValueError:
            body = text
    elif text.startswith("data:"):
        body = _first_data(text)
    error = error_of(body, status, headers)
    hint = headers.get("x-should-retry", "").lower()
    if hint in ("true", "false"):
        error = ModelError(error.kind, error.message, retryable=hint == "true", retry_after=error.retry_after, status=error.status)
    return error


def _first_data(text: str) -> object:
    line = text.splitlines()[0].removeprefix("data:").strip()
    try:
        return from_json(line)
    except ValueError:
        return text


def _unsaid(status: int | None) -> str:
    return f"the server answered with HTTP status {status} and no message" if status else "the server reports an error without a message"


def _kind(words: str, status: int | None) -> tuple[ErrorKind, bool]:
    said: tuple[ErrorKind, bool] | None = next(
        ((kind, retryable) for kind, retryable, pattern in _WORDINGS if pattern.search(words)), None
    )
    if status is None:
        return said or ("server", True)
    # a status beats the words, but for what only words can tell
    if said and (said[0] == "context_overflow" and status in (400, 413, 422, 429, 500, 503) or said == ("rate_limit", False) and status in (400, 402, 403, 429)):
        return said
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    if status >= 500:
        return said if said and said[0] in ("overloaded", "rate_limit", "timeout") else ("server", True)
    if said and said[0] in ("overloaded", "rate_limit", "auth"):
        return said
    return ("invalid_request", False)


def _read(body: object) -> tuple[str, str, int | None]:
    """Message, all words worth looking at, and a status, from a body of any shape."""
    if isinstance(body, list):
        items = cast("list[object]", body)
        return _read(items[0]) if items else ("", "", None)
    if not isinstance(body, dict):
        text = _plain(str(body) if body is not None else "")
        return text, text, None
    value = cast("dict[str, object]", body)
    inner = next((value[key] for key in ("error", "errors", "detail", "message", "msg", "error_message") if value.get(key)), None)
    if isinstance(inner, dict | list) and inner:
        message, words, code = _read(cast("object", inner))
    else:
        message, words, code = _plain(inner if isinstance(inner, str) else ""), "", None
    marks = [str(value[key]) for key in ("type", "code", "status", "reason", "error") if isinstance(value.get(key), str | int)]
    raw = _metadata(value.get("metadata"))
    if raw and raw not in message:
        message = f"{message}: {raw}" if message else raw
    code = code if code is not None else _status_in(value)
    return message, " ".join([message, words, *marks]), code


def _metadata(value: object) -> str:
    # OpenRouter puts the upstream's own words there, often as JSON text
    raw = cast("dict[str, object]", value).get("raw") if isinstance(value, dict) else None
    if isinstance(raw, str) and raw.lstrip()[:1] == "{":
        try:
            return _read(from_json(raw))[0]
        except ValueError:
            return _plain(raw)
    return _plain(raw) if isinstance(raw, str) else ""


def _status_in(value: dict[str, object]) -> int | None:
    for key in ("code", "status", "status_code"):
        found = value.get(key)
        if isinstance(found, str) and found.isdigit():
            found = int(found)
        if isinstance(found, int) and 400 <= found < 600:
            return found
    return None


def _plain(text: str) -> str:
    if re.match(r"\s*<(!doctype|html|\?xml|head|body|h1)", text, re.IGNORECASE):
        title = re.search(r"<(title|h1)[^>]*>(.*?)</\1>", text, re.IGNORECASE | re.DOTALL)
        words = title.group(2) if title else re.sub(r"<[^>]*>", " ", text)
        text = "an HTML page instead of an answer: " + " ".join(words.split())
    return text.strip()[:_LONGEST]


_SPAN = re.compile(r"(?:(\d+)h)?(?:(\d+)m(?!s))?(?:(\d+(?:\.\d+)?)s)?(?:(\d+(?:\.\d+)?)ms)?")
_IN_WORDS = re.compile(r"(?:try again|retry|retrying|wait)(?: again)?(?: in| after)? (?:about )?(\d+(?:\.\d+)?)\s*(ms|milliseconds?|s\b|sec|seconds?|m\b|min|minutes?)", re.IGNORECASE)


def retry_after(headers: Mapping[str, str], body: object = None) -> float | None:
    """Seconds that the server asks to wait, from its headers or its body; None where it doesn't say."""
    if (ms := _number(headers.get("retry-after-ms"))) is not None:
        return ms / 1000
    said = (headers.get("retry-after") or "").strip()
    if said:
        if (seconds := _number(said)) is not None:
            return seconds
        if (when := _date(said)) is not None:
            return when
    for key in ("retryDelay", "retry_after", "retry_after_seconds"):
        if (found := _deep(body, key, 6)) is not None and (seconds := _span(str(found))) is not None:
            return seconds
    words = _IN_WORDS.search(_read(body)[0]) if body is not None else None
    if words:
        scale = {"ms": 0.001, "mi": 60.0, "m": 60.0}.get("ms" if words[2].lower().startswith(("ms", "milli")) else words[2].lower()[:2].strip(), 1.0)
        return float(words[1]) * scale
    return None


def _number(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return max(value, 0.0) if value < float("inf") else None


def _date(text: str) -> float | None:
    try:
        return max(email.utils.parsedate_to_datetime(text).timestamp() - time.time(), 0.0)
    except (ValueError, OverflowError):
        return None


def _span(text: str) -> float | None:
    """``7``, ``7.5s``, ``1m30s``, ``120ms`` in seconds."""
    if (plain := _number(text)) is not None:
        return plain
    match = _SPAN.fullmatch(text.strip())
    if not match or not any(match.groups()):
        return None
    hours, minutes, seconds, ms = (float(part or 0) for part in match.groups())
    return hours * 3600 + minutes * 60 + seconds + ms / 1000


def _deep(value: object, key: str, depth: int) -> object:
    if depth == 0:
        return None
    if isinstance(value, dict):
        items = cast("dict[str, object]", value)
        if isinstance(items.get(key), str | int | float):
            return items[key]
        nested = list(items.values())
    else:
        nested = cast("list[object]", value) if isinstance(value, list) else []
    return next((found for item in nested if (found := _deep(item, key, depth - 1)) is not None), None)
