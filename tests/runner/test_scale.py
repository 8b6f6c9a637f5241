"""Many runs: nothing of a run that nobody refers to stays."""

import asyncio
import gc
import os
import subprocess
import sys
from pathlib import Path

import pytest
from agent_harness import virtual

from rxagent import Agent, Run, Runner, as_tool, parallel, tool
from rxagent.engine.session import Session
from rxagent.messages import ToolCall
from rxagent.models import ScriptedModel
from rxagent.stores import MemoryStore

NIGHTLY = os.environ.get("HYPOTHESIS_PROFILE") == "nightly"

RSS = """
import asyncio, gc
from rxagent import Agent, Runner, tool
from rxagent.messages import ToolCall
from rxagent.events import ModelEvent, ResponseEnd, ResponseStart, TextDelta, ToolCallEnd, ToolCallStart

class Small:
    name = provider = "small"
    async def stream(self, request):
        yield ResponseStart("small")
        if request.messages[-1].role == "user":
            yield ToolCallStart("", "add", 0)
            yield ToolCallEnd(0, {"a": 1, "b": 2})
            yield ResponseEnd("tool_use")
        else:
            for word in ("it ", "is ", "three"):
                yield TextDelta(word, 0)
            yield ResponseEnd("stop")

@tool
async def add(a: int, b: int) -> int:
    return a + b

def mib():
    gc.collect()
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4 / 1024

async def main():
    runner = Runner(Agent(Small(), tools=[add]))
    for count in (FIRST, LAST - FIRST):
        for _ in range(count):
            assert (await runner.query("add")).text == "it is three"
        print(mib())

asyncio.run(main())
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads the resident size from /proc")
def test_resident_memory_does_not_grow_with_runs_that_are_over():
    first, last = (1000, 10_000) if NIGHTLY else (300, 3000)
    code = RSS.replace("FIRST", str(first)).replace("LAST", str(last))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    before, after = map(float, done.stdout.split())
    assert after - before < 10


@tool
async def wait() -> str:
    await asyncio.sleep(1)
    return "waited"


@pytest.mark.parametrize("store", [None, MemoryStore])
def test_no_agent_session_or_run_stays_after_its_end(store):
    @virtual
    async def main():
        child = Agent(
            ScriptedModel(lambda r: ToolCall("", "wait") if r.messages[-1].role == "user" else "ok"), name="c", tools=[wait]
        )
        boss = Agent(
            ScriptedModel(lambda r: ToolCall("", "c", {"input": "x"}) if r.messages[-1].role == "user" else "ok"),
            tools=[as_tool(child)],
        )
        runner = Runner(parallel(boss, child), store and store())
        kinds = (Agent, Session, Run)

        def alive():
            gc.collect()
            return [sum(isinstance(o, kind) for o in gc.get_objects()) for kind in kinds]

        before = alive()
        await asyncio.gather(*(runner.query("go").result() for _ in range(50)))
        aborted = [runner.query("go") for _ in range(20)]
        await asyncio.sleep(0.5)
        for run in aborted:
            run.abort()
        await asyncio.gather(*(run.result() for run in aborted))
        del aborted, run
        await asyncio.sleep(1)
        assert alive() == before
        assert not runner._live
        assert not runner._opened

    main()


@virtual
async def test_leaving_many_iterations_early_leaves_nothing():
    runner = Runner(Agent(ScriptedModel(lambda r: ToolCall("", "wait")), tools=[wait]))
    for _ in range(20):
        async for event in runner.query("go"):
            if event.type == "tool_start":
                break
    await asyncio.sleep(5)
    assert not runner._live
