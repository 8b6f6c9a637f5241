"""Plays the shared cases: a replay server in this process, and what a model made of an answer in the comparer's words."""

import asyncio
import contextlib
import functools
import importlib.util
import os
import pathlib

import pytest
from aiohttp import web

from rxagent.events import model as m
from rxagent.events.draft import Draft
from rxagent.messages import TextPart, ThinkingPart, ToolCall

CUTS = ("", "@all", "@1", "@7")


@functools.cache
def directory():
    given = os.environ.get("RXAGENT_CASES")
    path = pathlib.Path(given) if given else pathlib.Path(__file__).parents[2] / "shared" / "cases" / "llm"
    return path if path.is_dir() else None


def module(name):
    path = directory()
    if path is None:
        return None
    spec = importlib.util.spec_from_file_location(f"cases_{name}", path / f"{name}.py")
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def all_cases():
    path = directory()
    return module("serve").load(path / "corpus") if path else {}


def require_cases():
    if directory() is None:
        if os.environ.get("RXAGENT_REQUIRE_ALL"):
            pytest.fail("the shared cases are absent (RXAGENT_CASES)")
        pytest.skip("the shared cases are absent (RXAGENT_CASES)")


@contextlib.asynccontextmanager
async def serving(app):
    runner = web.AppRunner(app, shutdown_timeout=0.05)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


async def events_of(model, request, *, idle=1.0):
    """All events of one answer; silence is a timeout, as the engine has it."""
    events = []
    iterator = aiter(model.stream(request))
    try:
        while True:
            async with asyncio.timeout(idle):
                events.append(await anext(iterator))
    except StopAsyncIteration:
        pass
    except TimeoutError:
        events.append(m.ModelError("timeout", "silence", retryable=True))
    finally:
        await iterator.aclose()
    return events


def as_actual(events):
    """What `check.match` compares."""
    assert events, "a stream says something"
    terminal = events[-1]
    assert isinstance(terminal, m.ResponseEnd | m.ModelError), events[-3:]
    assert not any(isinstance(e, m.ResponseEnd | m.ModelError) for e in events[:-1])
    draft = Draft("m1", 1.0, "")
    for event in events:
        draft.add(event)
    failed = isinstance(terminal, m.ModelError)
    message = draft.finish(
        "error" if failed else terminal.stop_reason,
        usage=None if failed else terminal.usage,
        replay=None if failed else terminal.replay,
    )
    kinds = {TextPart: "text", ThinkingPart: "thinking", ToolCall: "toolcall"}
    usage = message.usage
    calls = message.tool_calls
    replays = [part.replay for part in message.content if part.replay] + ([message.replay] if message.replay else [])
    return {
        "text": message.text,
        "thinking": message.thinking,
        "blocks": [kinds[type(part)] for part in message.content],
        "tool_calls": [{"id": c.id, "name": c.name, "arguments": c.arguments} for c in calls if c.invalid is None],
        "invalid_tool_calls": [{"id": c.id, "name": c.name, "raw": c.invalid} for c in calls if c.invalid is not None],
        "stop_reason": message.stop_reason,
        "usage": None if usage is None else {
            "prompt_total": usage.input, "input": usage.input, "output": usage.output, "cache_read": usage.cache_read,
            "cache_write": usage.cache_write, "reasoning": usage.reasoning,
        },
        "error": None if not failed else {
            "message": terminal.message, "kind": terminal.kind,
            "retryable": terminal.retryable, "retry_after": terminal.retry_after,
        },
        "replay": {
            "thinking_signatures": [r["signature"] for r in replays if "signature" in r],
            "reasoning_details": [d for r in replays for d in r.get("reasoning_details", [])],
        },
    }  # fmt: skip
