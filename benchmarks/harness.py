"""What the benchmarks share: workers in processes of their own, interleaved rounds, Markdown tables."""

import contextlib
import json
import platform
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import version
from pathlib import Path

HERE = Path(__file__).parent


@contextlib.contextmanager
def fake_server() -> Iterator[int]:
    """Starts `fake_server` and gives its port."""
    server = subprocess.Popen([sys.executable, str(HERE / "fake_server.py")], stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        yield int(server.stdout.readline())
    finally:
        server.kill()
        server.wait()


class Worker:
    """A process that does one round for each line of JSON and answers with a line of JSON."""

    def __init__(self, script: str, *arguments: str) -> None:
        command = [sys.executable, str(HERE / script), *arguments]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def round(self, **job: object) -> dict[str, float]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(job) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"worker {self._process.args} ended with {self._process.wait()}")
        return json.loads(line)

    def close(self) -> None:
        self._process.kill()
        self._process.wait()


def serve(work: Callable[..., dict[str, float]]) -> None:
    """The worker's half."""
    for line in sys.stdin:
        print(json.dumps(work(**json.loads(line))), flush=True)


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    def cell(value: object) -> str:
        return f"{value:.2f}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)

    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join(f"| {' | '.join(cell(value) for value in line)} |" for line in lines)


def where() -> str:
    """Interpreter and versions, for under a table."""
    names = ("reactivex", "pydantic", "aiohttp")
    return f"CPython {platform.python_version()}, {', '.join(f'{name} {version(name)}' for name in names)}, {platform.machine()}"
