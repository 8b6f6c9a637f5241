"""A live run written down as a block, and that block played."""

import asyncio
from collections.abc import Callable

import pytest

from rxagent import Agent, Retry, tool
from rxagent.events import AnyEvent, ModelError
from rxagent.marble.faults import Place
from rxagent.marble.loop import run_virtual
from rxagent.marble.play import play
from rxagent.marble.reading import read_block
from rxagent.marble.record import write_run
from rxagent.marble.verdict import judge
from rxagent.marble.vocabulary import WORDS
from rxagent.messages import ThinkingPart, ToolCall
from rxagent.models import ScriptedModel
from rxagent.testing.world import world


@tool
async def search(query: str) -> str:
    """Search."""
    await asyncio.sleep(0.153)
    return f"results for {query}\nand more"


@tool
async def crash(n: int) -> str:
    """Crash."""
    await asyncio.sleep(0.05)
    raise ValueError(f"no {n}")


def live(turns: list[object], meanwhile: Callable[[Agent], object] = lambda _: None) -> str:
    """The block of a run whose model takes 17 ms over each event."""

    async def main() -> str:
        loop = asyncio.get_running_loop()
        agent = Agent(ScriptedModel(turns, delay=0.017), tools=[search, crash], retry=Retry())
        seen: list[tuple[float, AnyEvent]] = []
        run = agent.prompt("it's a question")
        run.subscribe(lambda event: seen.append((loop.time(), event)))
        meanwhile(agent)
        await run
        return write_run(seen)

    return run_virtual(main())


def problems(text: str) -> list[str]:
    block = read_block(text, Place("x.md", 1), "", WORDS)
    assert block.unused() == []
    return judge(block, play(block, world())).problems


RUNS: dict[str, tuple[list[object], Callable[[Agent], object]]] = {
    "text": (["It is four."], lambda _: None),
    "thinking": ([[ThinkingPart("let me see"), "Four."]], lambda _: None),
    "one tool": ([["First:", ToolCall("a", "search", {"query": "x"})], "Done."], lambda _: None),
    "parallel tools": (
        [
            [ToolCall("a", "search", {"query": "x"}), ToolCall("b", "crash", {"n": 3}), ToolCall("c", "search", {"query": "y"})],
            "Done.",
        ],
        lambda _: None,
    ),
    "retry": ([["Par", ModelError("overloaded", "busy", retryable=True, retry_after=0.2)], "Again."], lambda _: None),
    "failure": ([["Par", ModelError("server", "broken")]], lambda _: None),
    "follow-up": (["One.", "Two."], lambda agent: asyncio.get_running_loop().call_later(0.03, agent.follow_up, "and then?")),
    "steering": (
        [ToolCall("a", "search", {"query": "x"}), "Two."],
        lambda agent: asyncio.get_running_loop().call_later(0.1, agent.steer, "be brief"),
    ),
    "abort": (
        ["A long answer that goes on and on and on."],
        lambda agent: asyncio.get_running_loop().call_later(0.1, agent.abort),
    ),
}


@pytest.mark.parametrize("name", RUNS)
def test_a_run_written_down_plays_again(name: str):
    turns, meanwhile = RUNS[name]
    text = live(turns, meanwhile)
    assert problems(text) == [], text


def test_a_block_that_was_written_shows_what_there_was():
    text = live(*RUNS["one tool"])
    assert '> run("it\'s a question", model=model, tools=[search])' in text
    assert "call search(query='x')" in text
    assert 'result "results for x\\nand more"' in text
    assert text.startswith("scale    10ms\n")
