"""How long a server asks to wait: headers in all their spellings, and bodies that say it in words."""

import email.utils
import re
import time
from collections.abc import Mapping
from datetime import datetime
from typing import cast

_SPAN = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m(?!s))?(?:(\d+(?:\.\d+)?)s)?(?:(\d+(?:\.\d+)?)ms)?")
_WORDS = re.compile(
    r"(?:try again|retry|retrying|wait|available|reset\w*)(?: again)?(?: in| after| for)? (?:about |approximately |another )?"
    r"((?:\d+h)?(?:\d+m)?\d+(?:\.\d+)?)\s*(ms|milliseconds?|s\b|secs?|seconds?|m\b|mins?|minutes?|h\b|hours?)",
    re.IGNORECASE,
)
_UNITS = {"ms": 0.001, "mil": 0.001, "s": 1.0, "sec": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "hou": 3600.0}
_LIMITS = ("requests", "tokens", "input-tokens", "output-tokens")


def retry_after(headers: Mapping[str, str], body: object = None, message: str = "") -> float | None:
    """Seconds to wait, None where the server doesn't say. ``headers`` by lower-case name."""
    if (ms := _number(headers.get("retry-after-ms"))) is not None:
        return ms / 1000
    said = (headers.get("retry-after") or "").strip()
    found = _span(said) if said else None
    if found is None and said:
        found = _date(said)
    if found is None:
        found = _deep(body, 6)
    if found is None:
        found = _in_words(message)
    return found if found is not None else _reset(headers)


def _in_words(message: str) -> float | None:
    match = _WORDS.search(message)
    if match is None:
        return None
    unit = match[2].lower()
    scale = next(_UNITS[key] for key in (unit[:3], unit[:2], unit[:1]) if key in _UNITS)
    return _span(match[1] + ("s" if scale == 1.0 else "")) if not match[1].replace(".", "").isdigit() else float(match[1]) * scale


def _reset(headers: Mapping[str, str]) -> float | None:
    """When the limit that is used up is filled again."""
    for prefix in ("x-ratelimit", "anthropic-ratelimit"):
        for limit in _LIMITS:
            left, reset = (
                (f"{prefix}-remaining-{limit}", f"{prefix}-reset-{limit}")
                if prefix == "x-ratelimit"
                else (f"{prefix}-{limit}-remaining", f"{prefix}-{limit}-reset")
            )
            if _number(headers.get(left)) == 0 and (said := headers.get(reset)):
                found = _span(said)
                return found if found is not None else _date(said)
    return None


def _number(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return max(value, 0.0) if abs(value) < 1e9 else None


def _date(text: str) -> float | None:
    try:
        when = email.utils.parsedate_to_datetime(text).timestamp()
    except (ValueError, OverflowError):
        try:
            when = datetime.fromisoformat(text).timestamp()
        except (ValueError, OverflowError):
            return None
    return max(when - time.time(), 0.0)


def _span(text: str) -> float | None:
    """``7``, ``7.5s``, ``1m30s``, ``120ms`` in seconds."""
    if (plain := _number(text)) is not None:
        return plain
    match = _SPAN.fullmatch(text.strip())
    if not match or not any(match.groups()):
        return None
    days, hours, minutes, seconds, ms = (float(part or 0) for part in match.groups())
    return days * 86400 + hours * 3600 + minutes * 60 + seconds + ms / 1000


def _deep(value: object, depth: int) -> float | None:
    """A field of the body that says it, wherever it is: Google nests ``retryDelay`` in ``error.details``."""
    if depth == 0:
        return None
    if isinstance(value, dict):
        fields = cast("dict[str, object]", value)
        for key in ("retryDelay", "retry_after", "retry_after_seconds", "retryAfter"):
            if isinstance(said := fields.get(key), str | int | float) and (found := _span(str(said))) is not None:
                return found
        inner = list(fields.values())
    else:
        inner = cast("list[object]", value) if isinstance(value, list) else []
    return next((found for item in inner if (found := _deep(item, depth - 1)) is not None), None)
