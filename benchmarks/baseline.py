"""The raw baseline of `speed`: aiohttp, a minimal SSE split, `pydantic_core.from_json`, the text accumulated. No more."""

import asyncio
import gc
import json
import time

import aiohttp
from fake_server import token
from harness import serve
from pydantic_core import from_json


async def answer(session: aiohttp.ClientSession, url: str) -> str:
    body = json.dumps({"model": "m", "stream": True, "messages": [{"role": "user", "content": "Go."}]})
    text: list[str] = []
    async with session.post(url, data=body, headers={"content-type": "application/json"}) as response:
        buffer = b""
        async for data in response.content.iter_any():
            buffer += data
            *events, buffer = buffer.split(b"\n\n")
            for event in events:
                if event == b"data: [DONE]":
                    continue
                choices = from_json(event[6:])["choices"]
                if not choices:
                    continue
                piece = choices[0]["delta"].get("content")
                if piece:
                    text.append(piece)
    return "".join(text)


async def measured(port: int, deltas: int, runs: int) -> float:
    url = f"http://127.0.0.1:{port}/{deltas}/v1/chat/completions"
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        await answer(session, url)
        gc.collect()
        start = time.process_time()
        texts = await asyncio.gather(*(answer(session, url) for _ in range(runs)))
        cpu = time.process_time() - start
    expected = "".join(token(n) for n in range(deltas))
    assert all(text == expected for text in texts)
    return cpu


if __name__ == "__main__":
    serve(lambda **job: {"cpu": asyncio.run(measured(**job))})
