"""The whole of rxagent behind a real server, with a fast or slow consumer on another thread; prints what it saw.

python benchmarks/slow_agent.py fast|slow DELTAS

Output: deltas received, whether in order, most bytes read from the socket and not emitted yet, peak RSS (KiB), seconds.
"""

import asyncio
import resource
import sys
import threading
import time

from aiohttp.client_proto import ResponseHandler
from fake_server import rendered, token
from harness import fake_server
from reactivex.scheduler import ThreadPoolScheduler

from rxagent import Agent
from rxagent.events import AgentEnd, AnyEvent, MessageUpdate
from rxagent.events.model import TextDelta
from rxagent.flow import offload
from rxagent.models import resolve

FAST = 6e-6  # seconds an event


class Meter:
    """Counts what comes in at the socket, what is emitted, and what the consumer has had."""

    def __init__(self, seconds: float, size: float) -> None:
        self.seconds = seconds
        self.size = size
        self.read = self.ahead = self.emitted = self.count = 0
        self.in_order = True
        self.done = threading.Event()

    def came_in(self, data: bytes) -> None:
        self.read += len(data)
        self.ahead = max(self.ahead, int(self.read - self.emitted * self.size))

    def went_out(self, event: AnyEvent) -> None:
        self.emitted += isinstance(event, MessageUpdate)

    def consumed(self, event: AnyEvent) -> None:
        until = time.perf_counter() + self.seconds
        if isinstance(event, MessageUpdate) and isinstance(event.delta, TextDelta):
            self.in_order = self.in_order and event.delta.text == token(self.count)
            self.count += 1
        while time.perf_counter() < until:
            pass
        if isinstance(event, AgentEnd):
            self.done.set()


async def run(port: int, deltas: int, meter: Meter) -> None:
    received = ResponseHandler.data_received

    def counted(self: ResponseHandler, data: bytes) -> None:
        meter.came_in(data)
        received(self, data)

    ResponseHandler.data_received = counted  # type: ignore[method-assign]  # the one connection of this process
    pool = ThreadPoolScheduler(1)
    agent = Agent(resolve("openai:m", base_url=f"http://127.0.0.1:{port}/{deltas}/v1", api_key=""))
    agent.events.subscribe(meter.went_out)
    agent.events.pipe(offload(pool)).subscribe(meter.consumed)
    result = await agent.prompt("Go.")
    assert result.outcome == "completed"
    while not meter.done.is_set():
        await asyncio.sleep(0.001)
    pool.executor.shutdown()


def main() -> None:
    kind, deltas = sys.argv[1], int(sys.argv[2])
    size = (len(rendered("-2000", 0)) - len(rendered("-1000", 0))) / 1000
    meter = Meter(FAST * (10 if kind == "slow" else 1), size)
    start = time.perf_counter()
    with fake_server() as port:
        asyncio.run(run(port, deltas, meter))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(meter.count, meter.in_order, meter.ahead, peak, f"{time.perf_counter() - start:.1f}")


if __name__ == "__main__":
    main()
