"""How a GUI feels while a run streams into it: gaps of a 10 ms heartbeat on the GUI thread, by toolkit and by way across.

    python benchmarks/gui.py --rounds 5 --toolkits qt tk textual

Ways: ``frames`` (the bridges), ``callbacks`` (the obvious way: a signal, message or posted call per event),
``stock`` (``observe_on`` with reactivex's scheduler of that toolkit). Each measurement is a process of its own; ways
alternate within a round; medians. Each piece goes into a text widget, by itself or by
frame. What was imported is frozen
(``gc.freeze``): a full collection of it alone takes 30 ms. Tk, GTK and wx need a display: run it under
``xvfb-run -a -s -noreset``.
"""

import argparse
import asyncio
import gc
import itertools
import json
import os
import resource
import statistics
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

from harness import table, where

TESTS = Path(__file__).parent.parent / "tests"
WAYS = ["idle", "frames", "callbacks", "stock"]
LOADS = {"flood": (50_000, None), "steady": (50_000, 5_000)}
PATIENCE = 60.0


class Pace:
    """An answer of ``count`` deltas: as fast as they are taken, or ``rate`` a second in steps of 10 ms."""

    def __init__(self, count: int, rate: int | None) -> None:
        self.count, self.rate = count, rate

    async def __call__(self, _request):
        from rxagent.events.model import ResponseEnd, ResponseStart, TextEnd, TextStart, text_delta

        yield ResponseStart("paced")
        yield TextStart(0)
        begun = time.monotonic()
        for n in range(self.count):
            if self.rate and n % (self.rate // 100) == 0:
                await asyncio.sleep(max(0.0, begun + n / self.rate - time.monotonic()))
            yield text_delta(f"{n} " if n % 12 else f"{n}\n", 0)
        yield TextEnd(0)
        yield ResponseEnd("stop", None)


class Measure:
    """One window and one run."""

    def __init__(self, toolkit: str, load: str) -> None:
        sys.path.insert(0, str(TESTS))
        import gui_rigs

        from rxagent import Agent
        from rxagent.bridges import AgentHost
        from rxagent.models import ScriptedModel

        gui_rigs.LIMIT = 2 * PATIENCE
        self.rig = gui_rigs.RIGS[toolkit]()
        pace = Pace(*LOADS[load])
        self.host = AgentHost(Agent(ScriptedModel([pace])))
        self.beats: list[float] = []
        self.agent_beats: list[float] = []
        self.seqs: list[int] = []
        self.frames = self.backlog = 0
        self.progress = time.monotonic()
        self.ended: float | None = None

    def take(self, events) -> None:
        self.frames += 1
        self.seqs.extend(event.seq for event in events)
        self.backlog = max(self.backlog, self.host.agent._session.next_seq - 1 - self.seqs[-1])
        text = "".join(
            [event.delta.text for event in events if event.type == "message_update" and event.delta.type == "text_delta"]
        )
        if text:
            self.rig.show(text)
        self.progress = time.monotonic()

    def subscribe(self, way: str) -> None:
        from reactivex import operators as rxops

        if way == "frames":
            self.host.frames(self.rig.port()).subscribe(lambda frame: self.take(frame) if len(frame) else None)
        elif way == "callbacks":
            self.host.events.subscribe(self.rig.each(lambda event: self.take([event])))
        elif way == "stock":
            self.host.events.pipe(rxops.observe_on(self.rig.stock())).subscribe(lambda event: self.take([event]))

    def beat_on_the_agents_loop(self) -> None:
        self.agent_beats.append(time.monotonic())
        asyncio.get_running_loop().call_later(0.01, self.beat_on_the_agents_loop)

    def end(self, event) -> None:
        if event.type == "agent_end":
            self.ended = time.monotonic()

    def over(self) -> bool:
        now = time.monotonic()
        if self.ended is None:
            return now - self.begun > PATIENCE
        whole = len(self.seqs) == self.host.agent._session.next_seq
        return whole or now - max(self.ended, self.progress) > 2.0

    def run(self, way: str) -> dict[str, float]:
        self.rig.heartbeat(10, lambda: self.beats.append(time.monotonic()))
        for _ in range(3):  # with scroll bars, fonts and all
            self.rig.show("ready\n" * 100)
            self.rig.settle(0.1)
        self.rig.settle(0.3)
        gc.collect()
        gc.freeze()  # what was imported is not to be looked at again by each full collection
        self.rig.settle(0.2)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        self.subscribe(way)
        self.host.call(self.beat_on_the_agents_loop)
        self.begun = time.monotonic()
        self.beats[:-1] = []
        self.agent_beats[:-1] = []
        if way == "idle":
            self.rig.settle(2.0)
            self.ended = self.progress = time.monotonic()
        else:
            self.host.events.subscribe(self.end)
            self.host.prompt("go")
            self.rig.run(self.over)
        last = max(self.ended or 0.0, self.progress)
        seen = [beat for beat in self.beats if beat <= last + 0.02]
        result = {
            "gap": largest(seen) * 1000,
            "agent gap": largest(self.agent_beats) * 1000,
            "delivered": len(self.seqs),
            "in order": self.seqs == sorted(set(self.seqs)),
            "calls": self.frames,
            "backlog": self.backlog,
            "late": (self.progress - (self.ended or time.monotonic())) * 1000,
            "seconds": last - self.begun,
            "memory": (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024,
        }
        print(json.dumps(result), flush=True)
        os._exit(0)  # some of the ways leave threads that wait for ever


def largest(beats: list[float]) -> float:
    return max((b - a for a, b in itertools.pairwise(beats)), default=float("inf"))


def measure(toolkit: str, way: str, load: str) -> dict[str, float] | None:
    system = toolkit in ("gtk", "wx")
    python = os.environ.get("RXAGENT_SYSTEM_PYTHON", "/usr/bin/python3") if system else sys.executable
    paths = [str(TESTS.parent), *([sysconfig.get_path("purelib")] if system else [])]
    quiet = {"QT_QPA_PLATFORM": "offscreen", "SDL_VIDEODRIVER": "dummy", "SDL_AUDIODRIVER": "dummy", "NO_AT_BRIDGE": "1"}
    environment = os.environ | quiet | {"PYTHONPATH": os.pathsep.join(paths), "PYGAME_HIDE_SUPPORT_PROMPT": "1"}
    command = [python, __file__, "--measure", toolkit, way, load]
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=2 * PATIENCE)
    except subprocess.TimeoutExpired:
        return None
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if not lines:
        print(f"{toolkit} {way} {load}: exit code {done.returncode}\n{done.stderr[-500:]}", file=sys.stderr)
        return None
    return json.loads(lines[-1])


def row(toolkit: str, way: str, results: list[dict[str, float] | None]) -> list[object]:
    good = [result for result in results if result is not None]
    if not good:
        return [toolkit, way, *["never came back"] * 2, *["—"] * 6]

    def median(key: str, digits: int = 0) -> float | int:
        value = statistics.median(result[key] for result in good)
        return round(value, digits) if digits else round(value)

    if way == "idle":
        return [toolkit, way, median("gap"), median("agent gap"), *["—"] * 6]
    keys = ["gap", "agent gap", "delivered", "calls", "backlog", "memory", "late"]
    return [toolkit, way, *[median(key) for key in keys], f"{median('seconds', 1)}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measure", nargs=3)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--toolkits", nargs="+", default=["qt", "tk", "textual"])
    parser.add_argument("--loads", nargs="+", default=list(LOADS))
    parser.add_argument("--ways", nargs="+", default=WAYS)
    arguments = parser.parse_args()
    if arguments.measure:
        toolkit, way, load = arguments.measure
        Measure(toolkit, load).run(way)
    for load in arguments.loads:
        rows = []
        for toolkit in arguments.toolkits:
            results = {way: [] for way in arguments.ways}
            for _ in range(arguments.rounds):
                for way in arguments.ways:
                    results[way].append(measure(toolkit, way, load))
            rows += [row(toolkit, way, results[way]) for way in arguments.ways]
            print(json.dumps({toolkit: results}), file=sys.stderr)
        head = ["toolkit", "way", "largest gap, ms", "agent's gap, ms", "delivered", "calls", "most waiting"]
        head += ["peak RSS grew, MiB", "end late, ms", "s"]
        print(f"\n### {load}\n\n{table(head, rows)}", flush=True)
    print(f"\n{where()}")


if __name__ == "__main__":
    main()
