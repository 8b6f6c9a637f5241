"""Speed against the raw baseline: same bytes, same process shape, interleaved rounds, process CPU time, the minimum of them.

    python benchmarks/speed.py [--rounds 9]

Each round starts a process for each contender, which warms up with one small run and measures three times: the first
time is that of a program that was just started, the best of the others that of one that goes on.
"""

import argparse

from harness import Worker, fake_server, table, where

JOBS = (("one run", 20_000, 1), ("1,000 concurrent runs", 200, 1_000))
CONTENDERS = {"baseline": "baseline.py", "rxagent": "contender.py"}


def measured(script: str, **job: int) -> tuple[float, float]:
    """Seconds of CPU: the first time, and the best of two further times."""
    worker = Worker(script)
    try:
        first, *others = (worker.round(**job)["cpu"] for _ in range(3))
    finally:
        worker.close()
    return first, min(others)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    rounds = parser.parse_args().rounds
    rows: list[list[object]] = []
    with fake_server() as port:
        for title, deltas, runs in JOBS:
            found: dict[str, list[tuple[float, float]]] = {name: [] for name in CONTENDERS}
            for _ in range(rounds):
                for name, script in CONTENDERS.items():
                    found[name].append(measured(script, port=port, deltas=deltas, runs=runs))
            for which, when in enumerate(("at first", "later")):
                base, ours = (min(pair[which] for pair in found[name]) / deltas / runs * 1e6 for name in CONTENDERS)
                rows.append([f"{title} of {deltas:,} deltas, {when}", base, ours, ours / base])
    print(table(["workload", "baseline, µs a delta", "rxagent, µs a delta", "ratio"], rows))
    print(f"\nMinimum of {rounds} interleaved rounds, process CPU time. {where()}.")


if __name__ == "__main__":
    main()
