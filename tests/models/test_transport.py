"""What happens on the wire: connections, aborts, back-pressure, compression, secrets, recordings."""

import asyncio
import contextlib
import gzip
import json
import logging
import pathlib
import subprocess
import sys
import zlib

import pytest
import shared_cases as shared
from aiohttp import web

from rxagent.events import model as m
from rxagent.messages import UserMessage
from rxagent.models import Endpoint, HttpOptions, ModelRequest, Price, Target, http_model, resolve

pytestmark = pytest.mark.filterwarnings("ignore::aiohttp.web_exceptions.NotAppKeyWarning")
SECRET = "sk-very-secret-0123456789abcdef"
REQUEST = ModelRequest(messages=(UserMessage("hi"),))


def sse(*deltas, finish="stop"):
    events = [{"choices": [{"index": 0, "delta": {"content": text}}]} for text in deltas]
    events.append({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
    return b"".join(b"data: " + json.dumps(e).encode() + b"\n\n" for e in events) + b"data: [DONE]\n\n"


class Server:
    """Answers every POST with ``body``, or by a function; keeps what it saw."""

    def __init__(self, body=b"", *, status=200, headers=None, handler=None):
        self.seen = []
        self.ports = []
        self.body, self.status, self.headers, self.handler = body, status, headers or {}, handler

    async def answer(self, request):
        self.ports.append(request.transport.get_extra_info("peername")[1])
        self.seen.append((request, await request.read()))
        if self.handler is not None:
            return await self.handler(request)
        return web.Response(body=self.body, status=self.status, headers={"Content-Type": "text/event-stream", **self.headers})

    @contextlib.asynccontextmanager
    async def running(self):
        app = web.Application()
        app.router.add_route("*", "/{tail:.*}", self.answer)
        async with shared.serving(app) as url:
            yield url


def ask(server, request=REQUEST, **options):
    async def main():
        async with server.running() as url:
            return await shared.events_of(model_at(url, **options), request)

    return asyncio.run(main())


def model_at(url, key=SECRET, **options):
    return resolve("openai:test", base_url=url, api_key=key, options=HttpOptions(**options))


def text_of(events):
    return "".join(e.text for e in events if isinstance(e, m.TextDelta))


def test_a_request_carries_key_headers_and_body():
    server = Server(sse("a"))
    events = ask(
        server,
        ModelRequest(messages=(UserMessage("hi"),), headers={"X-One": "1"}, options={"seed": 7}),
        headers={"X-Two": "2"},
        body={"top_p": 0.5},
        query={"api-version": "1"},
    )
    assert text_of(events) == "a"
    request, raw = server.seen[0]
    body = json.loads(raw)
    assert (request.method, request.path, request.query_string) == ("POST", "/v1/chat/completions", "api-version=1")
    assert request.headers["Authorization"] == f"Bearer {SECRET}"
    assert request.headers["Accept-Encoding"] == "identity"
    assert (request.headers["X-One"], request.headers["X-Two"]) == ("1", "2")
    assert (body["model"], body["seed"], body["top_p"], body["stream"]) == ("test", 7, 0.5, True)


def test_half_a_character_is_no_reason_to_send_nothing():
    server = Server(sse("a"))
    assert text_of(ask(server, ModelRequest(messages=(UserMessage("hi"),), system_prompt="odd \ud83d name"))) == "a"
    assert json.loads(server.seen[0][1])["messages"][0]["content"] == "odd \ufffd name"


@pytest.mark.parametrize("key", [lambda: SECRET, "async"])
def test_a_key_may_be_asked_for_each_time(key):
    async def later():
        return SECRET

    server = Server(sse("a"))
    ask_with = later if key == "async" else key

    async def main():
        async with server.running() as url:
            await shared.events_of(model_at(url, ask_with), REQUEST)
            await shared.events_of(model_at(url, ask_with), ModelRequest(api_key="other-key-entirely"))

    asyncio.run(main())
    assert [r.headers["Authorization"] for r, _ in server.seen] == [f"Bearer {SECRET}", "Bearer other-key-entirely"]


def test_hooks_see_and_change():
    seen = []
    server = Server(sse("a"), headers={"X-Request-Id": "r1"})
    ask(
        server,
        on_payload=lambda body: {**body, "user": "u"},
        on_response=lambda status, headers: seen.append((status, headers["x-request-id"])),
    )
    assert json.loads(server.seen[0][1])["user"] == "u"
    assert seen == [(200, "r1")]


def test_a_hook_that_raises_is_a_failed_request_not_an_exception():
    def hook(body):
        raise ValueError("no user")

    events = ask(Server(sse("a")), on_payload=hook)
    assert events[-1].kind == "invalid_request"
    assert "no user" in events[-1].message


def test_an_unstreamed_answer_gives_the_same_message():
    whole = {"id": "c", "model": "t", "choices": [{"index": 0, "message": {"content": "Hello"}, "finish_reason": "stop"}]}
    server = Server(json.dumps(whole).encode(), headers={"Content-Type": "application/json"})
    events = ask(server, ModelRequest(messages=(UserMessage("hi"),), streaming=False))
    assert text_of(events) == "Hello"
    assert events[-1] == m.ResponseEnd("stop")
    assert json.loads(server.seen[0][1])["stream"] is False


@pytest.mark.parametrize("streaming", [True, False])
@pytest.mark.parametrize("kind", ["text/event-stream", "application/json", "text/html", ""])
def test_what_an_answer_is_its_first_bytes_tell(streaming, kind):
    whole = b'{"choices": [{"message": {"content": "a"}, "finish_reason": "stop"}]}'
    for body in (sse("a"), whole, b"\xef\xbb\xbf" + sse("a"), b"\n\n " + whole):
        assert text_of(ask(Server(body, headers={"Content-Type": kind}), ModelRequest(streaming=streaming))) == "a"


@pytest.mark.parametrize("labelled", [True, False])
@pytest.mark.parametrize("pack", [gzip.compress, zlib.compress])
def test_a_compressed_answer_is_read_whether_it_was_labelled_or_not(labelled, pack):
    async def handler(request):
        response = web.StreamResponse(headers={"Content-Encoding": "gzip"} if labelled else {})
        await response.prepare(request)
        packed = pack(sse("Hello", " there"))
        for at in range(len(packed)):
            await response.write(packed[at : at + 1])
        return response

    assert text_of(ask(Server(handler=handler))) == "Hello there"


def test_a_compressed_refusal_is_read():
    events = ask(Server(gzip.compress(b'{"error": "too many requests"}'), status=429))
    assert (events[-1].kind, events[-1].message) == ("rate_limit", "too many requests")


@pytest.mark.parametrize("rest", [b"", b"\0\0\0\0"])
def test_gzip_whose_members_end_at_each_flush(rest):
    assert text_of(ask(Server(b"".join(map(gzip.compress, [sse("a")[:40], sse("a")[40:]])) + rest))) == "a"


def test_a_label_of_gzip_on_plain_text_is_a_lie():
    assert text_of(ask(Server(sse("a"), headers={"Content-Encoding": "gzip"}))) == "a"


def test_broken_gzip_fails_and_keeps_the_text():
    pack = zlib.compressobj(wbits=31)
    packed = pack.compress(sse("Hello")[:40] + b"\n\n" + sse("Hello")) + pack.flush(zlib.Z_SYNC_FLUSH) + b"\xff\xff\xff"
    events = ask(Server(packed))
    assert isinstance(events[-1], m.ModelError)


def test_a_small_gzip_body_that_unpacks_to_gigabytes_is_refused():
    bomb = gzip.compress(b"data: " + b"x" * (40 << 20))
    assert len(bomb) < 100_000
    events = ask(Server(bomb))
    assert events[-1].kind == "protocol"
    assert "MiB" in events[-1].message


def test_an_event_of_64_megabytes_is_refused_before_it_is_read():
    written = 0

    async def handler(request):
        nonlocal written
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        await response.write(sse("before").split(b"\n\n")[0] + b"\n\n")
        await response.write(b'data: {"choices":[{"index":0,"delta":{"content":"')
        with contextlib.suppress(ConnectionError):
            for _ in range(64):
                await response.write(b"x" * (1 << 20))
                written += 1
        return response

    events = ask(Server(handler=handler))
    assert text_of(events) == "before"
    assert (events[-1].kind, events[-1].retryable) == ("protocol", False)
    assert "32 MiB" in events[-1].message
    assert written < 64


def test_an_unstreamed_answer_has_the_same_cap():
    events = ask(Server(b'{"choices": "' + b"x" * 3_000_000 + b'"}'), max_event=1 << 20)
    assert "1 MiB" in events[-1].message


FIRST = {
    "openai": {"id": "c", "choices": [{"index": 0, "delta": {"content": "a"}}]},
    "openai-responses": {"type": "response.output_text.delta", "output_index": 0, "item_id": "m", "delta": "a"},
    "anthropic": {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "a"}},
    "gemini": {"candidates": [{"content": {"parts": [{"text": "a"}]}}]},
}


@pytest.mark.parametrize("provider", FIRST)
def test_abort_reaches_the_server_on_every_wire(provider):
    states = []

    async def handler(request):
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for _ in range(10):
            states.append(request.transport is None or request.transport.is_closing())
            if states[-1]:
                break
            await response.write(b"data: " + json.dumps(FIRST[provider]).encode() + b"\n\n")
            await asyncio.sleep(0.2)
        return response

    async def main():
        async with Server(handler=handler).running() as url:
            stream = resolve(f"{provider}:m", base_url=url, api_key=SECRET).stream(REQUEST)
            async for event in stream:
                if isinstance(event, m.TextDelta):
                    break
            await stream.aclose()
            await asyncio.sleep(0.3)

    asyncio.run(main())
    assert states == [False, True]


def test_cancelling_the_reader_closes_the_connection():
    closed = asyncio.Event()

    async def handler(request):
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b": hi\n\n")
        while request.transport is not None and not request.transport.is_closing():
            await asyncio.sleep(0.01)
        closed.set()
        return response

    async def main():
        async with Server(handler=handler).running() as url:
            task = asyncio.create_task(shared.events_of(model_at(url), REQUEST, idle=30))
            await asyncio.sleep(0.1)
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
            await asyncio.wait_for(closed.wait(), 2)

    asyncio.run(main())


def test_a_slow_consumer_stops_the_reading():
    piece = b"data: " + json.dumps({"choices": [{"delta": {"content": "x" * 200}}]}).encode() + b"\n\n"
    read = 0

    async def handler(request):
        response = web.StreamResponse()
        await response.prepare(request)
        for _ in range(60_000):
            await response.write(piece)
        return response

    async def main():
        nonlocal read
        async with Server(handler=handler).running() as url:
            stream = model_at(url).stream(REQUEST)
            counted = 0
            async for event in stream:
                if isinstance(event, m.TextDelta):
                    counted += 1
                    if counted == 20:
                        break
            await asyncio.sleep(0.5)
            # what the transport has taken from the socket and the consumer hasn't seen
            frame = stream.ag_frame.f_locals
            read = frame["response"].content.total_bytes
            await stream.aclose()

    asyncio.run(main())
    assert 0 < read <= 256 * 1024


def test_connections_are_used_again():
    server = Server(sse("a"))

    async def main():
        async with server.running() as url:
            model = model_at(url)
            for _ in range(3):
                assert text_of(await shared.events_of(model, REQUEST)) == "a"
            await model.aclose()
            assert text_of(await shared.events_of(model, REQUEST)) == "a"

    asyncio.run(main())
    assert len(set(server.ports[:3])) == 1
    assert server.ports[3] not in server.ports[:3]


def test_a_server_that_keeps_the_connection_open_does_not_delay_the_end():
    async def handler(request):
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(sse("a").split(b"data: [DONE]")[0])
        await asyncio.sleep(20)
        return response

    async def main():
        async with Server(handler=handler).running() as url:
            return await shared.events_of(model_at(url), REQUEST, idle=5)

    events = asyncio.run(main())
    assert events[-1] == m.ResponseEnd("stop")


@pytest.mark.parametrize("status", [200, 500])
def test_a_whole_body_needs_no_end(status):
    async def handler(request):
        response = web.StreamResponse(status=status)
        await response.prepare(request)
        await response.write(b'{"choices":[{"message":{"content":"a"},"finish_reason":"stop"}]}' if status == 200 else b"oh no")
        await asyncio.sleep(20)
        return response

    async def main():
        async with Server(handler=handler).running() as url:
            return await shared.events_of(model_at(url), REQUEST, idle=5)

    events = asyncio.run(main())
    assert text_of(events) == "a" if status == 200 else events[-1].message == "oh no"


def test_an_early_finish_reason_does_not_cut_a_slow_stream():
    async def handler(request):
        response = web.StreamResponse()
        await response.prepare(request)
        event = {"choices": [{"index": 0, "delta": {"content": "a"}, "finish_reason": "stop"}]}
        for text in ("a", "b", "c"):
            event["choices"][0]["delta"]["content"] = text
            await response.write(b"data: " + json.dumps(event).encode() + b"\n\n")
            await asyncio.sleep(0.4)
        await response.write(b"data: [DONE]\n\n")
        return response

    assert text_of(ask(Server(handler=handler))) == "abc"


@pytest.mark.parametrize("status", [301, 307])
def test_a_redirect_is_told_not_followed(status):
    events = ask(Server(status=status, headers={"Location": "https://example.org/v2"}))
    assert events[-1].kind == "invalid_request"
    assert "https://example.org/v2" in events[-1].message


def test_nobody_listens():
    async def main():
        return await shared.events_of(model_at("http://127.0.0.1:9"), REQUEST)

    (event,) = asyncio.run(main())
    assert (event.kind, event.retryable) == ("transport", True)
    assert "http://127.0.0.1:9" in event.message


def test_no_such_host():
    async def main():
        return await shared.events_of(model_at("http://no-such-host.invalid"), REQUEST, idle=20)

    (event,) = asyncio.run(main())
    assert event.kind in ("transport", "timeout")


def test_a_server_that_speaks_no_http():
    async def main():
        async def handle(reader, writer):
            writer.write(b"SSH-2.0-OpenSSH_9.6\r\n")
            await writer.drain()
            writer.close()

        server = await asyncio.start_server(handle, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        try:
            return await shared.events_of(model_at(f"http://127.0.0.1:{port}"), REQUEST)
        finally:
            server.close()

    assert asyncio.run(main())[-1].kind == "transport"


def test_prices_give_a_cost_and_no_price_gives_none():
    usage = {"choices": [], "usage": {"prompt_tokens": 1000, "completion_tokens": 100}}
    body = sse("a").replace(b"data: [DONE]", b"data: " + json.dumps(usage).encode() + b"\n\ndata: [DONE]")
    assert ask(Server(body), prices={"test": Price(1.0, 10.0)})[-1].usage.cost == pytest.approx(0.002)
    assert ask(Server(body))[-1].usage.cost is None
    assert ask(Server(sse("a")), prices={"test": Price(1.0, 10.0)})[-1].usage is None


def test_a_cost_the_server_tells_is_kept():
    usage = {"choices": [], "usage": {"prompt_tokens": 1000, "completion_tokens": 100, "cost": 0.5}}
    body = sse("a").replace(b"data: [DONE]", b"data: " + json.dumps(usage).encode() + b"\n\ndata: [DONE]")
    assert ask(Server(body), prices={"test": Price(1.0, 10.0)})[-1].usage.cost == 0.5


def test_a_proxy_is_used():
    server = Server(sse("a"))

    async def main():
        async with server.running() as url:
            model = resolve("openai:test", base_url="http://models.example/v1", api_key=SECRET, options=HttpOptions(proxy=url))
            return await shared.events_of(model, REQUEST)

    assert text_of(asyncio.run(main())) == "a"
    assert server.seen[0][0].headers["Host"] == "models.example"


@pytest.mark.parametrize("status", [200, 401, 500])
def test_no_key_is_shown_anywhere(status, tmp_path, caplog):
    caplog.set_level(logging.DEBUG)
    error = {"error": {"message": f"Incorrect key {SECRET}", "type": "x"}}
    body = json.dumps(error).encode() if status != 200 else b"data: " + json.dumps(error).encode() + b"\n\n"
    server = Server(body, status=status, headers={"X-Echo": SECRET})

    async def main():
        async with server.running() as url:
            model = model_at(url, record=str(tmp_path))
            events = await shared.events_of(model, ModelRequest(api_key=SECRET, headers={"x-k": SECRET}))
            request = ModelRequest(api_key=SECRET, headers={"x-k": SECRET})
            return repr(events) + repr(model) + repr(vars(model)["_options"]) + repr(request)

    shown = asyncio.run(main())
    recorded = "".join(path.read_text() for path in tmp_path.iterdir())
    assert "Incorrect key" in shown
    assert "Incorrect key" in recorded
    for text in (shown, recorded, caplog.text):
        assert SECRET not in text


def test_a_key_split_between_two_chunks_is_not_recorded(tmp_path):
    async def handler(request):
        response = web.StreamResponse()
        await response.prepare(request)
        body = sse(f"your key is {SECRET}")
        at = body.index(SECRET.encode()) + 10
        await response.write(body[:at])
        await asyncio.sleep(0.05)
        await response.write(body[at:])
        return response

    ask(Server(handler=handler), record=str(tmp_path))
    (path,) = tmp_path.iterdir()
    assert SECRET not in path.read_text()
    assert "your key is ***" in path.read_text()


def test_a_recording_is_a_case_that_plays_again(tmp_path):
    shared.require_cases()
    serve = shared.module("serve")

    async def handler(request):
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        body = sse("Grüße", " 北京")
        for at in range(0, len(body), 11):
            await response.write(body[at : at + 11])
            await asyncio.sleep(0.001)
        return response

    async def main():
        async with Server(handler=handler).running() as url:
            first = await shared.events_of(model_at(url, record=str(tmp_path)), REQUEST)
        (path,) = tmp_path.iterdir()
        async with shared.serving(serve.make_app(tmp_path)) as url:
            second = await shared.events_of(model_at(f"{url}/case/{path.stem}/v1"), REQUEST)
        return path, first, second

    path, first, second = asyncio.run(main())
    assert text_of(first) == "Grüße 北京"
    assert second == first
    case = json.loads(path.read_text())
    assert case["api"] == "openai-chat"
    assert len(case["http"]["body_chunks"]) > 3
    assert case["request"]["messages"][-1]["content"] == "hi"


SCRIPT = """
import asyncio, sys
from rxagent.models import ModelRequest, resolve
model = resolve("openai:test", base_url=sys.argv[1], api_key="k")
async def main():
    async for event in model.stream(ModelRequest()):
        pass
    print(event)
asyncio.run(main())
asyncio.run(main())
"""


CYCLES = """
import asyncio, gc, sys
from rxagent.models import ModelRequest, resolve
async def main():
    for _ in range(20):
        model = resolve("openai:test", base_url=sys.argv[1], api_key="k")
        model.itself = model
        async for event in model.stream(ModelRequest()):
            pass
        del model
        gc.collect()
    assert len(asyncio.all_tasks()) == 1
    await asyncio.sleep(0)
    print(event)
asyncio.run(main())
"""


@pytest.mark.parametrize("script", [SCRIPT, CYCLES])
def test_a_script_that_closes_nothing_is_silent(script, tmp_path):
    (tmp_path / "script.py").write_text(script)

    async def main():
        async with Server(sse("a")).running() as url:
            command = [sys.executable, "-W", "always", str(tmp_path / "script.py"), url]
            root = pathlib.Path(__file__).parents[2]
            return await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, cwd=root, timeout=60)

    done = asyncio.run(main())
    assert done.stderr == ""
    assert "ResponseEnd" in done.stdout


def test_an_unknown_wire_is_named():
    with pytest.raises(Exception, match="no wire is called 'x'"):
        http_model(Target(name="a", model="a", endpoint=Endpoint(provider="p", wire="x", base_url="http://a")))
