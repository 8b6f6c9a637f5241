"""One run of a slow (or fast) consumer on another thread behind a real socket; prints what it saw.

python benchmarks/slow_consumer.py fast|slow DELTAS

Output: values received, whether in order, longest queue, most bytes read ahead of the sink, peak RSS (KiB), seconds.
"""

import asyncio
import resource
import sys
import threading
import time
from multiprocessing import Pipe, Process
from multiprocessing.connection import Connection
from socket import create_connection, create_server

from reactivex.scheduler import ThreadPoolScheduler

from rxagent.flow import Hub, emit, offload
from rxagent.flow.handover import Handover

LINE = b"%09d " + b"x" * 54 + b"\n"  # 65 bytes, about what a delta takes on the wire
FAST = 2e-6  # seconds a value
CAPACITY = 1024


def serve(port_to: Connection, deltas: int) -> None:
    """Send as fast as the socket takes it."""
    server = create_server(("127.0.0.1", 0))
    port_to.send(server.getsockname()[1])
    client, _ = server.accept()
    for start in range(0, deltas, 1000):
        client.sendall(b"".join(LINE % number for number in range(start, min(start + 1000, deltas))))
    client.close()
    server.close()


class Sink:
    """Takes ``seconds`` of its thread's time over each value."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.count = 0
        self.in_order = True
        self.done = threading.Event()

    def see(self, line: bytes) -> None:
        until = time.perf_counter() + self.seconds
        self.in_order = self.in_order and int(line[:9]) == self.count
        self.count += 1
        while time.perf_counter() < until:
            pass


async def run(port: int, sink: Sink) -> tuple[int, int]:
    longest = ahead = read = 0
    hub = Hub[bytes]()
    push = Handover[bytes].push
    queue: list[Handover[bytes]] = []

    def watched(self: Handover[bytes], value: bytes) -> None:
        push(self, value)
        queue[:] = [self]

    Handover.push = watched  # type: ignore[method-assign]  # the one operator of this process
    pool = ThreadPoolScheduler(1)
    hub.pipe(offload(pool, CAPACITY)).subscribe(sink.see, on_completed=sink.done.set)
    client = create_connection(("127.0.0.1", port))
    client.setblocking(False)
    rest = b""
    while data := await asyncio.get_running_loop().sock_recv(client, 1 << 16):
        read += len(data)
        ahead = max(ahead, read - sink.count * len(LINE % 0))
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            await emit(hub.on_next, line)
            longest = max(longest, queue[0].size)
    client.close()
    hub.on_completed()
    while not sink.done.is_set():
        await asyncio.sleep(0.001)
    pool.executor.shutdown()
    return longest, ahead


def main() -> None:
    kind, deltas = sys.argv[1], int(sys.argv[2])
    port_from, port_to = Pipe()
    server = Process(target=serve, args=(port_to, deltas), daemon=True)
    server.start()
    sink = Sink(FAST * (10 if kind == "slow" else 1))
    start = time.perf_counter()
    longest, ahead = asyncio.run(run(port_from.recv(), sink))
    server.join()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(sink.count, sink.in_order, longest, ahead, peak, f"{time.perf_counter() - start:.1f}")


if __name__ == "__main__":
    main()
