"""Runs cut anywhere or killed at any moment go on in a new process."""

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from runner_harness import SESSION, carried_out, check_nothing_twice, reference
from sagas import Saga, transcript

from rxagent import Runner
from rxagent.events import AgentStart
from rxagent.marble.loop import run_virtual
from rxagent.operators.verify import check
from rxagent.stores import SqliteStore

TESTS = Path(__file__).parent.parent
SEED = 12  # questions three deep, twins, two levels of agents below the root
NIGHTLY = os.environ.get("HYPOTHESIS_PROFILE") == "nightly"


def process(what: str, path: Path, seed: int) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), str(TESTS.parent), os.environ.get("PYTHONPATH", "")])}
    command = [sys.executable, str(TESTS / "runner_process.py"), what, str(path), str(seed)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)


def last_line(running: subprocess.Popen[str]) -> dict:
    out, _ = running.communicate(timeout=120)
    assert running.returncode == 0, out
    return json.loads(out.splitlines()[-1])


async def loaded(path: Path) -> list:
    async with SqliteStore(path) as store:
        return await store.load(SESSION)


def test_thirty_cuts_of_a_session_go_on_in_a_new_process(tmp_path):
    log, wanted, ledger = run_virtual(reference(SEED))
    wanted = json.loads(json.dumps(wanted))
    first = next(i for i, e in enumerate(log) if isinstance(e, AgentStart))
    cuts = random.Random(1).sample(range(first + 1, len(log) - 1), 30)
    for pair in zip(cuts[::2], cuts[1::2], strict=True):
        running = []
        for cut in pair:
            path = tmp_path / f"{cut}.db"

            async def prepare(path=path, cut=cut):
                async with SqliteStore(path) as store:
                    await store.append(SESSION, 0, log[:cut])

            asyncio.run(prepare())
            running.append((cut, path, process("resume", path, SEED)))
        for cut, path, each in running:
            got = last_line(each)
            whole = asyncio.run(loaded(path))
            check(whole)
            check_nothing_twice(log[:cut], whole)
            if "error" not in got:
                assert got["transcript"] == wanted, f"cut at {cut}"
                carried = {int(n): times for n, times in got["ledger"].items()}
                assert carried == ledger - carried_out(log[:cut]), f"cut at {cut}"


@pytest.mark.parametrize("moment", range(200 if NIGHTLY else 10))
def test_a_run_killed_at_a_random_moment_loses_nothing_that_was_acknowledged_and_goes_on(tmp_path, moment):
    path = tmp_path / "runs.db"
    running = process("begin", path, SEED)
    assert running.stdout is not None
    assert running.stdout.readline() == "ready\n"
    time.sleep(random.Random(moment).uniform(0.0, 1.2))  # real time: the other process is real
    running.send_signal(signal.SIGKILL)
    running.communicate()

    async def main():
        async with SqliteStore(path) as store:
            known = await store.sessions()
            if not known:
                return
            prefix = await store.load(SESSION)
            assert len(prefix) == known[0].events
            check(prefix, prefix=True)
        if not any(isinstance(e, AgentStart) for e in prefix):
            return
        got = await asyncio.to_thread(lambda: last_line(process("resume", path, SEED)))
        whole = await loaded(path)
        check(whole)
        check_nothing_twice(prefix, whole)
        _, wanted, _ = await asyncio.to_thread(lambda: run_virtual(reference(SEED)))
        if "error" not in got:
            assert got["transcript"] == json.loads(json.dumps(wanted))
        else:
            async with SqliteStore(path) as store:
                assert transcript(await Runner(Saga(SEED).root, store).state(SESSION)) == wanted

    asyncio.run(main())
