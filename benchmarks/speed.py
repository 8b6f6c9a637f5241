"""Speed against the raw baseline: same bytes, same process shape, interleaved rounds, process CPU time, the minimum of them.

python benchmarks/speed.py [--rounds 9]
"""

import argparse

from harness import Worker, fake_server, table, where

JOBS = (("one run", 20_000, 1), ("1,000 concurrent runs", 200, 1_000))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    rounds = parser.parse_args().rounds
    workers = {"baseline": Worker("baseline.py"), "rxagent": Worker("contender.py")}
    rows: list[list[object]] = []
    try:
        with fake_server() as port:
            for title, deltas, runs in JOBS:
                best = dict.fromkeys(workers, float("inf"))
                for _ in range(rounds):
                    for name, worker in workers.items():
                        best[name] = min(best[name], worker.round(port=port, deltas=deltas, runs=runs)["cpu"])
                base, ours = (best[name] / deltas / runs * 1e6 for name in workers)
                rows.append([f"{title} of {deltas:,} deltas", base, ours, ours / base])
    finally:
        for worker in workers.values():
            worker.close()
    print(table(["workload", "baseline, µs a delta", "rxagent, µs a delta", "ratio"], rows))
    print(f"\nMinimum of {rounds} interleaved rounds, process CPU time. {where()}.")


if __name__ == "__main__":
    main()
