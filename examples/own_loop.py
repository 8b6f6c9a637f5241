"""A port for a toolkit that rxagent has none for: three methods. Here the "toolkit" is a queue and a clock.

python own_loop.py "your prompt" --model openai:gpt-5-mini   (without a model: the built-in demo)
"""

import argparse
import heapq
import itertools
import queue
import threading
import time
from collections.abc import Callable

from rxagent import Agent
from rxagent.bridges import AgentHost, Frame
from rxagent.errors import LoopGone
from rxagent.events import AgentEnd, AnyEvent, MessageUpdate, ToolEnd, ToolStart


class MainLoop:
    """An event loop like any toolkit's: it calls what comes, on its thread, until it is told to stop."""

    def __init__(self) -> None:
        self.calls: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self.timers: list[tuple[float, int, Callable[[], None]]] = []
        self.order = itertools.count()
        self.running = True

    def run(self) -> None:
        while self.running:
            wait = self.timers[0][0] - time.monotonic() if self.timers else None
            try:
                self.calls.get(timeout=wait if wait is None else max(wait, 0.0))()
            except queue.Empty:
                heapq.heappop(self.timers)[2]()


class MainLoopPort:
    """All that a bridge needs to know of it."""

    def __init__(self, loop: MainLoop) -> None:
        self.loop = loop
        self.thread = threading.current_thread()

    def post(self, fn: Callable[[], None]) -> None:
        if not self.loop.running:
            raise LoopGone("the main loop has ended")
        self.loop.calls.put(fn)

    def later(self, seconds: float, fn: Callable[[], None]) -> None:
        heapq.heappush(self.loop.timers, (time.monotonic() + seconds, next(self.loop.order), fn))

    def is_current(self) -> bool:
        return threading.current_thread() is self.thread


def show(frame: Frame[AnyEvent], loop: MainLoop) -> None:
    for event in frame:
        match event:
            case MessageUpdate() if event.delta.type == "text_delta":
                print(event.delta.text, end="", flush=True)
            case ToolStart():
                print(f"\n[{event.tool_name} {event.args}]")
            case ToolEnd():
                print(f"[{event.result.text}]")
            case AgentEnd():
                print(f"\n({event.outcome})")
                loop.running = False


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("prompt", nargs="?", default="Say hello.")
    parser.add_argument("--model", default="demo")
    arguments = parser.parse_args()
    loop = MainLoop()
    with AgentHost(Agent(arguments.model)) as host:
        host.frames(MainLoopPort(loop)).subscribe(lambda frame: show(frame, loop))
        host.prompt(arguments.prompt)
        loop.run()


if __name__ == "__main__":
    main()
