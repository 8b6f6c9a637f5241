"""What each wire costs: a delta decoded, a delta through a whole run, and arguments of growing size.

python benchmarks/wires.py [--rounds 9]
"""

import argparse
import asyncio
import gc
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from functools import cache

from harness import table, where

from rxagent import Agent
from rxagent.models import resolve
from rxagent.models.anthropic_stream import AnthropicDecoder
from rxagent.models.body import BodyReader
from rxagent.models.gemini_stream import GeminiDecoder
from rxagent.models.openai_chat_stream import ChatDecoder
from rxagent.models.openai_responses_stream import ResponsesDecoder
from rxagent.models.wire import Decoder

READ = 16384
WIRES: dict[str, tuple[str, str, Callable[[], Decoder]]] = {
    "openai-chat": ("openai", "/v1", ChatDecoder),
    "openai-responses": ("openai-responses", "/v1", ResponsesDecoder),
    "anthropic": ("anthropic", "", AnthropicDecoder),
    "gemini": ("gemini", "/v1beta", GeminiDecoder),
}


def event(value: dict[str, object], *, named: bool) -> bytes:
    name = f"event: {value['type']}\n" if named else ""
    return f"{name}data: {json.dumps(value, separators=(',', ':'))}\n\n".encode()


def chat(pieces: Iterable[str], *, call: bool) -> Iterable[bytes]:
    def chunk(delta: dict[str, object], finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        fields = {"id": "chatcmpl-CDhB7fKq0nQ1x2y3z4A5", "object": "chat.completion.chunk", "created": 1764500000, "model": "m"}
        return event({**fields, "choices": [choice], "usage": None}, named=False)

    function = {"name": "write", "arguments": ""}
    yield chunk(
        {"tool_calls": [{"index": 0, "id": "call_1", "type": "function", "function": function}]} if call else {"content": ""}
    )
    for piece in pieces:
        yield chunk({"tool_calls": [{"index": 0, "function": {"arguments": piece}}]} if call else {"content": piece})
    yield chunk({}, "tool_calls" if call else "stop")
    yield b"data: [DONE]\n\n"


def responses(pieces: Iterable[str], *, call: bool) -> Iterable[bytes]:
    number = 0

    def numbered(kind: str, **fields: object) -> bytes:
        nonlocal number
        number += 1
        return event({"type": f"response.{kind}", "sequence_number": number, **fields}, named=True)

    item = {"id": "it_0123456789abcdef", "type": "message", "role": "assistant", "status": "in_progress", "content": []}
    if call:
        item = {"id": "it_0123456789abcdef", "type": "function_call", "call_id": "call_1", "name": "write", "arguments": ""}
    place = {"item_id": item["id"], "output_index": 0}
    yield numbered("created", response={"id": "resp_1", "status": "in_progress", "model": "m", "output": []})
    yield numbered("output_item.added", output_index=0, item=item)
    for piece in pieces:
        if call:
            yield numbered("function_call_arguments.delta", **place, delta=piece)
        else:
            yield numbered("output_text.delta", **place, content_index=0, delta=piece, logprobs=[])
    yield numbered("completed", response={"id": "resp_1", "status": "completed", "model": "m", "output": [], "usage": None})


def anthropic(pieces: Iterable[str], *, call: bool) -> Iterable[bytes]:
    yield event({"type": "message_start", "message": {"id": "msg_1", "model": "m", "content": [], "usage": {}}}, named=True)
    block = {"type": "tool_use", "id": "toolu_1", "name": "write", "input": {}} if call else {"type": "text", "text": ""}
    yield event({"type": "content_block_start", "index": 0, "content_block": block}, named=True)
    for piece in pieces:
        delta = {"type": "input_json_delta", "partial_json": piece} if call else {"type": "text_delta", "text": piece}
        yield event({"type": "content_block_delta", "index": 0, "delta": delta}, named=True)
    yield event({"type": "content_block_stop", "index": 0}, named=True)
    yield event({"type": "message_delta", "delta": {"stop_reason": "tool_use" if call else "end_turn"}, "usage": {}}, named=True)
    yield event({"type": "message_stop"}, named=True)


def gemini(pieces: Iterable[str], *, call: bool) -> Iterable[bytes]:
    usage = {"promptTokenCount": 20, "candidatesTokenCount": 1, "totalTokenCount": 21}
    tail = {"usageMetadata": usage, "modelVersion": "m", "responseId": "r1"}
    parts = (
        ([{"functionCall": {"name": "write", "args": json.loads("".join(pieces))}}] for _ in (0,))
        if call
        else ([{"text": p}] for p in pieces)
    )
    for part in parts:
        yield event({"candidates": [{"content": {"parts": part, "role": "model"}, "index": 0}], **tail}, named=False)
    yield event(
        {"candidates": [{"content": {"parts": [], "role": "model"}, "index": 0, "finishReason": "STOP"}], **tail}, named=False
    )


STREAMS = {"openai-chat": chat, "openai-responses": responses, "anthropic": anthropic, "gemini": gemini}


@cache
def text_stream(wire: str, deltas: int) -> bytes:
    return b"".join(STREAMS[wire]((f"{n % 1000:03d} " for n in range(deltas)), call=False))


@cache
def call_stream(wire: str, size: int) -> bytes:
    line = 'def f(x):\n    return "a\\tb" + str(x)  # comment\n'
    arguments = json.dumps({"path": "a.py", "text": (line * (size // len(line) + 1))})[: size - 2] + '"}'
    arguments = arguments.replace('\\"}', '"}') if arguments.endswith('\\"}') else arguments
    return b"".join(STREAMS[wire]((arguments[at : at + 20] for at in range(0, len(arguments), 20)), call=True))


def decoded(wire: str, raw: bytes) -> float:
    chunks = [raw[at : at + READ] for at in range(0, len(raw), READ)]
    reader = BodyReader(WIRES[wire][2](), 1 << 25)
    gc.collect()
    start = time.process_time()
    for chunk in chunks:
        for _ in reader.feed(chunk):
            pass
    return time.process_time() - start


async def run(wire: str, port: int, deltas: int) -> float:
    provider, path, _ = WIRES[wire]
    model = resolve(f"{provider}:m", base_url=f"http://127.0.0.1:{port}/{wire}/{deltas}{path}", api_key="")
    cpu = 0.0
    for _ in range(2):  # the first one warms up
        agent = Agent(model)
        gc.collect()
        start = time.process_time()
        result = await agent.prompt("Go.")
        cpu = time.process_time() - start
        assert len(result.text) == deltas * 4, result
    return cpu


async def serve() -> None:
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        _, wire, deltas, *_ = (await reader.readuntil(b"\r\n\r\n")).split(b" ", 2)[1].decode().split("/")
        writer.write(head + text_stream(wire, int(deltas)))
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


def least(rounds: int, jobs: dict[str, Callable[[], float]]) -> dict[str, float]:
    best = dict.fromkeys(jobs, float("inf"))
    for _ in range(rounds):
        for name, job in jobs.items():
            best[name] = min(best[name], job())
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        asyncio.run(serve())
        return
    deltas = 20_000
    cost = least(options.rounds, {wire: lambda wire=wire: decoded(wire, text_stream(wire, deltas)) for wire in WIRES})
    server = subprocess.Popen([sys.executable, __file__, "--serve"], stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        port = int(server.stdout.readline())
        whole = least(options.rounds, {wire: lambda wire=wire: asyncio.run(run(wire, port, deltas)) for wire in WIRES})
    finally:
        server.kill()
        server.wait()
    rows = [
        [
            wire,
            cost[wire] / deltas * 1e6,
            cost[wire] / cost["openai-chat"],
            whole[wire] / deltas * 1e6,
            whole[wire] / whole["openai-chat"],
        ]
        for wire in WIRES
    ]
    print(table(["wire", "decoding, µs a delta", "to chat", "a whole run, µs a delta", "to chat"], rows))
    sizes = (250_000, 500_000, 1_000_000)
    rows = []
    for wire in WIRES:
        took = least(
            options.rounds, {str(size): lambda wire=wire, size=size: decoded(wire, call_stream(wire, size)) for size in sizes}
        )
        rows.append([wire, *(took[str(size)] / size * 1e6 for size in sizes)])
    print("\nArguments in 20-character pieces (Gemini: whole), µs a character:\n")
    print(table(["wire", *(f"{size:,}" for size in sizes)], rows))
    print(f"\nMinimum of {options.rounds} interleaved rounds, process CPU time. {where()}.")


if __name__ == "__main__":
    main()
