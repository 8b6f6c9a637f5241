"""OpenAI Responses: which events a stream has, what they belong to, and how a response counts its tokens. Data only."""

import re
from collections.abc import Mapping

from rxagent.messages import JsonObject, Usage
from rxagent.models.fields import as_count, as_object

BEGINNING = ("response.created", "response.in_progress", "response.queued")
TERMINAL = ("response.completed", "response.incomplete", "response.failed", "response.cancelled", "response.done")
# event: (kind of the item it belongs to, which of the item's texts it is)
DELTAS: Mapping[str, tuple[str, str]] = {
    "response.output_text.delta": ("message", "text"),
    "response.refusal.delta": ("message", "refusal"),
    "response.reasoning_summary_text.delta": ("reasoning", "summary"),
    "response.reasoning_text.delta": ("reasoning", "content"),
}
# event: (kind of the item, which of its texts, the field that holds it)
DONES: Mapping[str, tuple[str, str, str]] = {
    "response.output_text.done": ("message", "text", "text"),
    "response.refusal.done": ("message", "refusal", "refusal"),
    "response.content_part.done": ("message", "text", "part"),
    "response.reasoning_summary_text.done": ("reasoning", "summary", "text"),
    "response.reasoning_summary_part.done": ("reasoning", "summary", "part"),
    "response.reasoning_text.done": ("reasoning", "content", "text"),
}
# event: what tells a text from the others of its item
PART: Mapping[str, str] = {
    "response.output_text.delta": "content_index",
    "response.refusal.delta": "content_index",
    "response.reasoning_summary_text.delta": "summary_index",
    "response.reasoning_text.delta": "content_index",
    "response.function_call_arguments.delta": "item_id",
}
# where a delta's text is in the bytes of its event
DELTA_BYTES = re.compile(rb'"delta"\s*:\s*"')
ARGUMENTS = ("response.function_call_arguments.delta", "response.function_call_arguments.done")


def part_number(value: JsonObject) -> int:
    """Which of its item's texts an event belongs to; the first, where it doesn't say."""
    return as_count(value.get("content_index", value.get("summary_index"))) or 0


def usage_of(value: object) -> Usage | None:
    """Token counts of a response; both totals include their parts. Gateways keep the names that chat completions have."""
    usage = as_object(value)
    if not usage:
        return None
    details = as_object(usage.get("input_tokens_details", usage.get("prompt_tokens_details")))
    made = as_object(usage.get("output_tokens_details", usage.get("completion_tokens_details")))
    return Usage(
        input=as_count(usage.get("input_tokens", usage.get("prompt_tokens"))),
        output=as_count(usage.get("output_tokens", usage.get("completion_tokens"))),
        cache_read=as_count(details.get("cached_tokens")),
        cache_write=as_count(details.get("cache_write_tokens")),
        reasoning=as_count(made.get("reasoning_tokens")),
    )
