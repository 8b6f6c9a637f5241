"""Token counts of chat completions, in the spellings that servers use."""

from collections.abc import Mapping

from pydantic import JsonValue

from rxagent.messages import JsonObject, Usage
from rxagent.models.fields import as_count, as_object

_WRITTEN = ("cache_write_tokens", "cache_creation_tokens", "cache_creation_input_tokens")


def usage_of(raw: JsonObject) -> Usage | None:
    """Usage as totals with parts; None where the server said nothing."""
    if not raw:
        return None
    prompt = as_object(raw.get("prompt_tokens_details")) or as_object(raw.get("input_tokens_details"))
    completion = as_object(raw.get("completion_tokens_details")) or as_object(raw.get("output_tokens_details"))
    total = as_count(raw.get("total_tokens"))
    given = _first(raw, "prompt_tokens", "input_tokens", "prompt_eval_count")
    output = _first(raw, "completion_tokens", "output_tokens", "eval_count")
    reasoning = _either(_first(completion, "reasoning_tokens"), _first(raw, "reasoning_tokens"))
    if output is not None and reasoning:
        apart = total is not None and given is not None and total == given + output + reasoning
        if apart or reasoning > output:
            output += reasoning  # counted beside the output, not as a part of it
    if output is None and total is not None and given is not None and total >= given:
        output = total - given
    read = _either(
        _first(prompt, "cached_tokens", "cache_read_tokens"),
        _first(raw, "prompt_cache_hit_tokens", "cached_tokens", "cache_read_input_tokens"),
    )
    written = _either(_first(prompt, *_WRITTEN), _first(raw, *_WRITTEN))
    cached = (read or 0) + (written or 0)
    if given is not None and cached > given:
        given += cached  # counted beside the input, not as a part of it
    cost = raw.get("cost")
    cost = float(cost) if isinstance(cost, int | float) and not isinstance(cost, bool) else None
    return Usage(given, output, read, written, reasoning, cost)


def _first(raw: Mapping[str, JsonValue], *names: str) -> int | None:
    return next((count for name in names if (count := as_count(raw.get(name))) is not None), None)


def _either(a: int | None, b: int | None) -> int | None:
    return b if a is None else a
