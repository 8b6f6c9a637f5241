"""A server of chat completions from pre-rendered bytes, on loopback, in a process of its own. Prints its port.

    http://127.0.0.1:PORT/<deltas>/v1/chat/completions     an answer of so many text deltas of four characters
    http://127.0.0.1:PORT/args-<characters>/v1/…           a call whose arguments come in 20-character pieces, then a text

Standard library only, so that the client is what is measured.
"""

import asyncio
import json
import re
from functools import lru_cache

HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n"
    b"cache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n"
)
CUT = 16384
_LENGTH = re.compile(rb"\r\ncontent-length:\s*(\d+)", re.IGNORECASE)


def token(n: int) -> str:
    return f"{n % 1000:03d} "


def chunk(delta: dict[str, object], finish: str | None = None) -> bytes:
    """One event, with the fields that real servers send."""
    value = {
        "id": "chatcmpl-CDhB7fKq0nQ1x2y3z4A5b6C7d8E9f",
        "object": "chat.completion.chunk",
        "created": 1764500000,
        "model": "gpt-4o-mini-2024-07-18",
        "service_tier": "default",
        "system_fingerprint": "fp_560af6e559",
        "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}],
        "usage": None,
    }
    return b"data: " + json.dumps(value, separators=(",", ":")).encode() + b"\n\n"


def text_events(deltas: int) -> list[bytes]:
    head = chunk({"role": "assistant", "content": "", "refusal": None})
    return [head, *(chunk({"content": token(n)}) for n in range(deltas)), chunk({}, "stop"), b"data: [DONE]\n\n"]


def call_events(characters: int) -> list[bytes]:
    arguments = json.dumps({"text": "x" * (characters - len('{"text": ""}'))})
    start = {"index": 0, "id": "call_1", "type": "function", "function": {"name": "write", "arguments": ""}}
    pieces = [arguments[at : at + 20] for at in range(0, len(arguments), 20)]
    deltas = [chunk({"tool_calls": [{"index": 0, "function": {"arguments": piece}}]}) for piece in pieces]
    return [chunk({"tool_calls": [start]}), *deltas, chunk({}, "tool_calls"), b"data: [DONE]\n\n"]


@lru_cache(maxsize=64)
def rendered(what: str, results: int) -> bytes:
    """The whole response to a request that holds so many tool results."""
    kind, _, size = what.rpartition("-")
    events = call_events(int(size)) if kind == "args" and not results else text_events(20 if kind == "args" else int(size))
    body = b"".join(events)
    cut = [body[at : at + CUT] for at in range(0, len(body), CUT)]
    return HEAD + b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in cut) + b"0\r\n\r\n"


class Server(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._buffer = b""

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while (end := self._buffer.find(b"\r\n\r\n")) >= 0:
            length = _LENGTH.search(self._buffer, 0, end + 2)
            need = end + 4 + (int(length[1]) if length else 0)
            if len(self._buffer) < need:
                return
            what = self._buffer.split(b" ", 2)[1].decode().split("/")[1]
            results = self._buffer.count(b'"tool_call_id"', end, need)
            self._buffer = self._buffer[need:]
            self._transport.write(rendered(what, results))


async def main() -> None:
    server = await asyncio.get_running_loop().create_server(Server, "127.0.0.1", 0, backlog=4096)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
