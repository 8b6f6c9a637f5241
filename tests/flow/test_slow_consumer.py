"""A slow consumer on another thread behind a real socket: nothing is lost, nothing piles up."""

import subprocess
import sys
from pathlib import Path

SCRIPTS = Path(__file__).parents[2] / "benchmarks"
DELTAS = 20_000


def run(script: str, sink: str) -> list[str]:
    """Run the benchmark's own scenario, shorter, in a process of its own."""
    command = [sys.executable, str(SCRIPTS / script), sink, str(DELTAS)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_a_slow_sink_behind_a_socket_loses_nothing_and_bounds_queue_read_ahead_and_memory() -> None:
    peaks: dict[str, int] = {}
    for sink in ("fast", "slow"):
        received, in_order, longest, ahead, peak, _ = run("slow_consumer.py", sink)
        assert int(received) == DELTAS
        assert in_order == "True"
        assert int(longest) <= 1025
        assert int(ahead) <= 256 * 1024
        peaks[sink] = int(peak)
    assert peaks["slow"] - peaks["fast"] <= 32 * 1024


def test_the_same_through_a_whole_run() -> None:
    peaks: dict[str, int] = {}
    for sink in ("fast", "slow"):
        received, in_order, ahead, peak, _ = run("slow_agent.py", sink)
        assert int(received) == DELTAS
        assert in_order == "True"
        assert int(ahead) <= 256 * 1024
        peaks[sink] = int(peak)
    assert peaks["slow"] - peaks["fast"] <= 32 * 1024
