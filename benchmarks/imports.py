"""What ``import rxagent`` costs beside its three dependencies, and what it must not load.

python benchmarks/imports.py [--rounds 9]
"""

import argparse
import subprocess
import sys

from harness import table, where

STATEMENTS = ("import reactivex, pydantic, aiohttp", "import rxagent", "import rxagent.cli")
FOREIGN = (
    "PySide6", "PyQt6", "tkinter", "textual", "gi", "wx", "pygame", "mcp", "openai", "anthropic", "google.genai",
    "rxagent.models.openai_chat", "rxagent.models.openai_responses", "rxagent.models.anthropic", "rxagent.models.gemini",
    "rxagent.bridges", "rxagent.web", "sqlite3",
)  # fmt: skip


def cpu(statement: str) -> float:
    """Milliseconds of a process that does nothing else, less those of one that does nothing."""
    code = f"import time; start = time.process_time(); {statement}; print(time.process_time() - start)"
    return float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout) * 1e3


def loaded(statement: str) -> list[str]:
    """Which of the foreign modules are there afterwards."""
    code = f"import sys; {statement}; print([name for name in {FOREIGN!r} if name in sys.modules])"
    return eval(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    rounds = parser.parse_args().rounds
    best = dict.fromkeys(STATEMENTS, float("inf"))
    for _ in range(rounds):
        for statement in STATEMENTS:
            best[statement] = min(best[statement], cpu(statement))
    base = best[STATEMENTS[0]]
    rows = [[f"`{s}`", best[s], best[s] / base, ", ".join(loaded(s)) or "nothing"] for s in STATEMENTS]
    print(table(["statement", "ms CPU", "ratio", "toolkits and providers loaded"], rows))
    print(f"\nMinimum of {rounds} interleaved rounds. {where()}.")


if __name__ == "__main__":
    main()
