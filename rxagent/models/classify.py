"""What went wrong, out of what a server says: a status, headers, and a body of any shape."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import cast

from pydantic_core import from_json, to_json

from rxagent.events.model import ErrorKind, ModelError
from rxagent.models.waiting import retry_after
from rxagent.models.wordings import told_by

_LONGEST = 2000  # characters of a server's message that are kept
_MESSAGES = ("error", "errors", "detail", "message", "msg", "error_message", "error_msg", "title", "reason")
_MARKS = ("type", "code", "status", "reason", "error", "error_code", "quotaId")

_BY_STATUS: Mapping[int, tuple[ErrorKind, bool]] = {
    401: ("auth", False),
    402: ("rate_limit", False),
    403: ("auth", False),
    407: ("auth", False),
    408: ("timeout", True),
    409: ("server", True),
    413: ("context_overflow", False),
    425: ("server", True),
    429: ("rate_limit", True),
    498: ("auth", False),
    499: ("transport", True),
    503: ("overloaded", True),
    504: ("timeout", True),
    522: ("timeout", True),
    524: ("timeout", True),
    529: ("overloaded", True),
}
# what only words can tell: the same status means other things as well
_OVERFLOW_STATUS = (400, 413, 422, 429, 500, 503)
_QUOTA_STATUS = (400, 402, 403, 429)


def error_of(
    body: object,
    status: int | None = None,
    headers: Mapping[str, str] | None = None,
    *,
    unknown: tuple[ErrorKind, bool] = ("server", True),
) -> ModelError:
    """Classifies a failure.

    Args:
        body: parsed JSON of any shape, or text (HTML too).
        status: the HTTP status, if it was one of failure.
        headers: by lower-case name.
        unknown: kind, and whether trying again helps, where neither status nor words say it.

    """
    message, words, code = _read(body, 6)
    answered = status if status is not None and status >= 400 else None
    kind, retryable = _kind(f"{message} {words}", answered if answered is not None else code, unknown)
    after = retry_after(headers or {}, body, message) if retryable or kind == "rate_limit" else None
    if kind == "rate_limit" and not retryable and after is not None and "perday" not in words.lower():
        retryable = True  # Google words a full minute's quota like a used-up one, but says when to come again
    return ModelError(kind, message or _unsaid(answered), retryable=retryable, retry_after=after, status=answered)


def error_of_bytes(raw: bytes, status: int, headers: Mapping[str, str]) -> ModelError:
    """`error_of` for a refusal as it came."""
    if status < 400:
        where = headers.get("location", "").split("?")[0]
        return ModelError(
            "invalid_request",
            f"the server redirects (HTTP {status}) to {where or 'nowhere'}: use that as base URL",
            status=status,
        )
    text = raw.decode("utf-8", "replace").strip().removeprefix("\ufeff")
    if text.startswith(("data:", "event:")):
        text = next((line.removeprefix("data:").strip() for line in text.splitlines() if line.startswith("data:")), text)
    body: object = text
    if text[:1] in ("{", "["):
        try:
            body = from_json(text)
        except ValueError:
            body = text
    error = error_of(body, status, headers)
    hint = headers.get("x-should-retry", "").lower()
    return replace(error, retryable=hint == "true") if hint in ("true", "false") else error


def _unsaid(status: int | None) -> str:
    return (
        f"the server answered with HTTP status {status} and no message"
        if status
        else "the server reports an error without a message"
    )


def _kind(words: str, status: int | None, unknown: tuple[ErrorKind, bool]) -> tuple[ErrorKind, bool]:
    said = told_by(words)
    if status is None:
        return said or unknown
    if said is not None:
        if said[0] == "context_overflow" and status in _OVERFLOW_STATUS:
            return said
        if said == ("rate_limit", False) and status in _QUOTA_STATUS:
            return said
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    if status >= 500:
        return said if said is not None and said[0] in ("overloaded", "rate_limit", "timeout") else ("server", True)
    return said if said is not None and said[0] in ("overloaded", "rate_limit", "auth") else ("invalid_request", False)


def _read(body: object, depth: int) -> tuple[str, str, int | None]:
    """Message, other words worth looking at, and a status, from a body of any shape."""
    if depth == 0 or body is None:
        return "", "", None
    if isinstance(body, list):
        items = cast("list[object]", body)
        return _read(items[0], depth - 1) if items else ("", "", None)
    if not isinstance(body, dict):
        return _text(body, depth)
    value = cast("dict[str, object]", body)
    inner = next((value[key] for key in _MESSAGES if value.get(key)), None)
    message, words, code = _read(inner, depth - 1)
    if isinstance(inner, int | float):
        message = _text(next((value[key] for key in _MESSAGES[2:] if isinstance(value.get(key), str)), ""), depth)[0]
    raw = _upstream(value.get("metadata"), depth)
    if raw and raw not in message:
        message = f"{message}: {raw}" if message else raw
    marks = [str(value[key]) for key in _MARKS if isinstance(value.get(key), str | int)]
    if isinstance(value.get("details"), list):
        marks.append(to_json(value["details"], serialize_unknown=True).decode()[:_LONGEST])
    code = code if code is not None else _status_in(value)
    if not message and inner is None:
        message = to_json(value, serialize_unknown=True).decode()[:300] if value else ""
    return message, " ".join([words, *marks]), code


def _text(body: object, depth: int) -> tuple[str, str, int | None]:
    text = _plain(str(body))
    # proxies put the upstream's JSON into a string
    if text[:1] == "{" and depth > 1:
        try:
            return _read(from_json(text), depth - 1)
        except ValueError:
            pass
    return text, "", None


def _upstream(metadata: object, depth: int) -> str:
    # OpenRouter puts the upstream's own words there
    raw = cast("dict[str, object]", metadata).get("raw") if isinstance(metadata, dict) else None
    return _read(raw, depth - 1)[0] if raw else ""


def _status_in(value: dict[str, object]) -> int | None:
    for key in ("code", "status", "status_code", "statusCode", "http_status"):
        found = value.get(key)
        if isinstance(found, str) and found.isdigit():
            found = int(found)
        if isinstance(found, int) and 400 <= found < 600:
            return found
    return None


def _plain(text: str) -> str:
    if re.match(r"\s*<(!doctype|html|\?xml|head|body|h1|center|title)", text, re.IGNORECASE):
        text = re.sub(r"<(style|script)\b.*?</\1>", " ", text, flags=re.IGNORECASE | re.DOTALL)
        title = re.search(r"<(title|h1)[^>]*>(.*?)</\1>", text, re.IGNORECASE | re.DOTALL)
        words = re.sub(r"<[^>]*>", " ", title.group(2) if title else text)
        text = "an HTML page instead of an answer: " + " ".join(words.split())[:300]
    return text.strip()[:_LONGEST]
