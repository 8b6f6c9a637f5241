"""Streams written down as values, and what a decoder makes of them however the bytes are cut."""

import json

import shared_cases

from rxagent.models.body import BodyReader

CUTS = (None, 0, 1, 7)


def sse(*events, named=True):
    """Event-stream bytes, one chunk per event; text stands as it is."""
    return [event.encode() if isinstance(event, str) else _event(event, named) for event in events]


def _event(event, named):
    name = f"event: {event['type']}\n" if named and isinstance(event, dict) and "type" in event else ""
    return f"{name}data: {json.dumps(event)}\n\n".encode()


def events_of(make, chunks, cut=None, failure=None):
    """The events of one answer. ``cut``: None as the chunks are, 0 all at once, else so many bytes a read."""
    if cut is not None:
        whole = b"".join(chunks)
        chunks = [whole[i : i + cut] for i in range(0, len(whole), cut)] if cut else [whole]
    reader = BodyReader(make(), 1 << 24)
    events = []
    for chunk in chunks:
        events += reader.feed(chunk)
        if reader.done:
            return events
    return [*events, *reader.broken(failure)]


def answer(make, chunks, cut=None):
    """What the message says in the end, in the words of the shared cases, and its parts."""
    return shared_cases.as_actual(events_of(make, chunks, cut))


def differences(expected, actual):
    """Every expectation that isn't met. ``error``: words its message must hold; ``kind``, ``retryable``: the error's."""
    error = actual["error"] or {}
    found = {}
    for key, want in expected.items():
        if key == "error":
            got = want if want.lower() in (error.get("message") or "").lower() else error.get("message")
        elif key in ("kind", "retryable"):
            got = error.get(key)
        elif key == "usage" and isinstance(want, dict):
            got = {name: (actual["usage"] or {}).get(name) for name in want}
        elif key == "calls":
            got = [(call["name"], call["arguments"]) for call in actual["tool_calls"]]
        elif key == "ids":
            got = [call["id"] for call in actual["tool_calls"]]
        else:
            got = actual[key]
        if got != want:
            found[key] = {"expected": want, "got": got}
    return found
