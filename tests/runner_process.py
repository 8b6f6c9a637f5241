"""A process of its own that runs a saga, or goes on with one: ``python runner_process.py begin|resume STORE SEED``.

Prints one JSON line: the final transcript, and how often each call was carried out here. Used by tests that
cut or kill runs.
"""

import asyncio
import json
import sys

from runner_harness import SESSION, complete
from sagas import Saga, transcript

from rxagent import Runner
from rxagent.errors import NothingToContinue, UnknownSession
from rxagent.stores import SqliteStore


async def main(what: str, path: str, seed: int) -> None:
    saga = Saga(seed, pace=0.1)
    async with SqliteStore(path) as store:
        runner = Runner(saga.root, store, "rerun")
        print("ready", flush=True)
        try:
            await complete(runner, runner.query("begin", SESSION) if what == "begin" else runner.resume(SESSION, {}))
        except (NothingToContinue, UnknownSession) as error:
            print(json.dumps({"error": type(error).__name__, "transcript": []}))
            return
        state = await runner.state(SESSION)
        print(json.dumps({"transcript": transcript(state), "ledger": saga.ledger}))


asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
