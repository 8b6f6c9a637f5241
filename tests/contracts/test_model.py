"""The contract of `Model`, run over every implementation: the four wires, the scripted model, the demo."""

import asyncio
import contextlib
import json

import pytest
import shared_cases as shared
from aiohttp import web

from rxagent.events import model as m
from rxagent.messages import TextPart, ToolCall, ToolDeclaration, UserMessage
from rxagent.models import Model, ModelRequest, ScriptedModel, resolve
from rxagent.models.demo import DemoModel

ADD = ToolDeclaration("add", "Adds two numbers.", {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]})
REQUEST = ModelRequest(messages=(UserMessage("add 1"),), tools=(ADD,))
GAP = 0.2  # seconds between the chunks of a slow server


def frame(value):
    name = f"event: {value['type']}\n" if "type" in value else ""
    return f"{name}data: {json.dumps(value)}\n\n".encode()


class Wire:
    """One protocol: how its server says a piece of text, a call of ``add(1)`` and the end."""

    def __init__(self, name, start, text, rest, whole):
        self.name = name
        self.start, self.text, self.rest, self.whole = start, text, rest, whole

    def stream(self, *pieces):
        return [*map(frame, self.start), *(frame(self.text(piece)) for piece in pieces), *map(frame, self.rest)]


def _chat(delta, finish=None):
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


CHAT_CALL = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}
AN_CALL = {"type": "tool_use", "id": "c1", "name": "add", "input": {"a": 1}}
RS_CALL = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "add", "arguments": '{"a": 1}'}
GM_CALL = {"functionCall": {"id": "c1", "name": "add", "args": {"a": 1}}}
WIRES = (
    Wire(
        "openai",
        (),
        lambda text: _chat({"content": text}),
        (_chat({"tool_calls": [{"index": 0, **CHAT_CALL}]}), _chat({}, "tool_calls")),
        {"choices": [{"message": {"content": "Hello", "tool_calls": [CHAT_CALL]}, "finish_reason": "tool_calls"}]},
    ),
    Wire(
        "anthropic",
        ({"type": "message_start", "message": {"id": "m1"}},),
        lambda text: {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}},
        (
            {"type": "content_block_start", "index": 1, "content_block": AN_CALL},
            {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
            {"type": "message_stop"},
        ),
        {"type": "message", "content": [{"type": "text", "text": "Hello"}, AN_CALL], "stop_reason": "tool_use"},
    ),
    Wire(
        "openai-responses",
        (),
        lambda text: {"type": "response.output_text.delta", "item_id": "m1", "output_index": 0, "delta": text},
        (
            {"type": "response.output_item.done", "output_index": 1, "item": RS_CALL},
            {"type": "response.completed", "response": {"status": "completed"}},
        ),
        {
            "object": "response",
            "status": "completed",
            "output": [{"type": "message", "id": "m1", "content": [{"type": "output_text", "text": "Hello"}]}, RS_CALL],
        },
    ),
    Wire(
        "gemini",
        (),
        lambda text: {"candidates": [{"content": {"parts": [{"text": text}]}}]},
        ({"candidates": [{"content": {"parts": [GM_CALL]}, "finishReason": "STOP"}]},),
        {"candidates": [{"content": {"parts": [{"text": "Hello"}, GM_CALL]}, "finishReason": "STOP"}]},
    ),
)
wires = pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)


@contextlib.asynccontextmanager
async def at(wire, handler):
    """The wire's model at a server that answers with a handler of (request, its body)."""

    async def answer(request):
        return await handler(request, await request.json())

    app = web.Application()
    app.router.add_post("/{tail:.*}", answer)
    async with shared.serving(app) as url:
        model = resolve(f"{wire.name}:m", base_url=url, api_key="k")
        yield model
        await model.aclose()


async def served(wire, request, body):
    streaming = body.get("stream", "streamGenerateContent" in request.path)
    raw = b"".join(wire.stream("Hel", "lo")) if streaming else json.dumps(wire.whole).encode()
    return web.Response(body=raw, content_type="text/event-stream" if streaming else "application/json")


def _scripted():
    return ScriptedModel(lambda _: [TextPart("Hello"), ToolCall("c1", "add", {"a": 1})])


@contextlib.asynccontextmanager
async def _itself(make):
    yield make()


IMPLEMENTATIONS = {
    **{wire.name: lambda wire=wire: at(wire, lambda request, body: served(wire, request, body)) for wire in WIRES},
    "scripted": lambda: _itself(_scripted),
    "demo": lambda: _itself(lambda: DemoModel(delay=0)),
}
models = pytest.mark.parametrize("opened", IMPLEMENTATIONS.values(), ids=IMPLEMENTATIONS)


def with_model(opened, act):
    async def main():
        async with opened() as model:
            return await act(model)

    return asyncio.run(main())


@models
def test_it_has_a_name_and_a_provider(opened):
    async def act(model):
        assert isinstance(model, Model)
        assert model.name
        assert isinstance(model.provider, str)

    with_model(opened, act)


@models
@pytest.mark.parametrize("streaming", [True, False], ids=["streamed", "in one piece"])
def test_an_answer_ends_once_and_its_call_is_whole(opened, streaming):
    request = ModelRequest(messages=REQUEST.messages, tools=(ADD,), streaming=streaming)
    actual = shared.as_actual(with_model(opened, lambda model: shared.events_of(model, request)))
    assert actual["stop_reason"] == "tool_use"
    assert [(call["name"], call["arguments"]) for call in actual["tool_calls"]] == [("add", {"a": 1})]


@wires
def test_streamed_and_in_one_piece_make_the_same_message(wire):
    def said(streaming):
        request = ModelRequest(messages=REQUEST.messages, tools=(ADD,), streaming=streaming)
        return shared.as_actual(with_model(IMPLEMENTATIONS[wire.name], lambda model: shared.events_of(model, request)))

    assert said(True) == said(False)


@models
def test_two_answers_at_once_do_not_mix(opened):
    async def act(model):
        return await asyncio.gather(*[shared.events_of(model, REQUEST) for _ in range(3)])

    answers = [shared.as_actual(events) for events in with_model(opened, act)]
    assert answers[0] == answers[1] == answers[2]


@models
def test_an_answer_may_be_left_at_any_event(opened):
    async def act(model):
        whole = await shared.events_of(model, REQUEST)
        for stop in range(len(whole)):
            stream = aiter(model.stream(REQUEST))
            for _ in range(stop):
                await anext(stream)
            await stream.aclose()
        return whole, await shared.events_of(model, REQUEST)

    whole, again = with_model(opened, act)
    assert shared.as_actual(whole) == shared.as_actual(again)


@wires
def test_nobody_there_is_an_event_not_an_exception(wire):
    model = resolve(f"{wire.name}:m", base_url="http://127.0.0.1:9/v1", api_key="k")
    (error,) = asyncio.run(shared.events_of(model, REQUEST, idle=10))
    assert (error.kind, error.retryable) == ("transport", True)


@wires
def test_leaving_closes_the_connection_before_the_servers_next_chunk(wire):
    noticed = 0

    async def slow(request, _body):
        nonlocal noticed
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for chunk in wire.stream(*"abcdefgh"):
            if request.transport is None or request.transport.is_closing():
                noticed += 1
                break
            await response.write(chunk)
            await asyncio.sleep(GAP)
        return response

    async def main():
        async with at(wire, slow) as model:
            stream = model.stream(REQUEST)
            async for event in stream:
                if isinstance(event, m.TextDelta):
                    break
            await stream.aclose()
            await asyncio.sleep(2 * GAP)

    asyncio.run(main())
    assert noticed == 1


@wires
def test_a_consumer_that_waits_makes_the_server_wait(wire):
    sent = 0
    piece = frame(wire.text("x" * 1000))

    async def endless(request, _body):
        nonlocal sent
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for start in wire.start:
            await response.write(frame(start))
        with contextlib.suppress(ConnectionError):
            while sent < 64 << 20:
                await response.write(piece)
                sent += len(piece)
        return response

    async def main():
        async with at(wire, endless) as model:
            stream = model.stream(REQUEST)
            async for event in stream:
                if isinstance(event, m.TextDelta):
                    break
            stalled = -1
            async with asyncio.timeout(20):
                while stalled != sent:
                    stalled = sent
                    await asyncio.sleep(0.1)
            await stream.aclose()

    asyncio.run(main())
    assert sent < 32 << 20  # the rest is in the sockets' buffers, not in the client
