"""Words that servers of chat completions use for the same things."""

from collections.abc import Mapping

from rxagent.messages import JsonObject, StopReason
from rxagent.models.fields import as_list, as_object, as_text

STOPS: Mapping[str, StopReason] = {
    "length": "length",
    "max_tokens": "length",
    "max_output_tokens": "length",
    "max_length": "length",
    "model_length": "length",
    "token_limit": "length",
    "content_filter": "content_filter",
    "content-filter": "content_filter",
    "safety": "content_filter",
    "refusal": "content_filter",
    "recitation": "content_filter",
    "prohibited_content": "content_filter",
    "blocklist": "content_filter",
    "sensitive": "content_filter",
    "tool_calls": "tool_use",
    "tool_call": "tool_use",
    "tool_use": "tool_use",
    "function_call": "tool_use",
    "error": "error",
    "network_error": "error",
    "insufficient_system_resource": "error",
    "malformed_function_call": "error",
    "abort": "error",
    "aborted": "error",
    "cancelled": "error",
}

_REASONING = (
    "reasoning_content", "reasoning", "reasoning_text", "thinking", "thinking_content", "reasoning_summary",
    "thought", "thoughts",
)  # fmt: skip


def reasoning_in(delta: JsonObject) -> tuple[str, str]:
    """A delta's reasoning, and the field it came in; servers that fill several put the same into each."""
    for field in _REASONING:
        value = delta.get(field)
        if isinstance(value, str) and value:
            return value, field
        if isinstance(value, dict) and (text := as_text(value.get("content")) or as_text(value.get("text"))):
            return text, field
    pieces = [as_object(item) for item in as_list(delta.get("reasoning_details"))]
    return "".join(as_text(p.get("text")) or as_text(p.get("summary")) for p in pieces), "reasoning_details"


def complains(value: JsonObject) -> bool:
    """An object without choices is an error in one of its many shapes."""
    return (
        value.get("object") == "error"
        or value.get("type") == "error"
        or any(
            isinstance(value.get(key), str | list | dict | int) and value.get(key)
            for key in ("message", "detail", "errors", "msg", "error_message", "error_msg", "error_code")
        )
    )
