"""The marble suite as a whole: nothing public without a section, the same result every time, and cheap."""

import hashlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from rxagent import flow, operators
from rxagent.marble.markdown import read_document
from rxagent.marble.reading import read_block
from rxagent.marble.vocabulary import WORDS

MARBLES = Path(__file__).parents[2] / "marbles"
FILES = sorted(MARBLES.glob("*.md"))

# Public, but nothing that a stream goes through.
NOT_OPERATORS = {
    "flow": {
        "emit_blocking": "blocks a thread; a virtual loop has none",
        "Fault": "a value",
        "OnFault": "a type",
        "print_fault": "prints",
        "held_here": "tells a deadlock; tests/flow",
        "Release": "what hold gives",
        "Pending": "what publish gives",
        "Gate": "for engines; tests/flow",
        "start_budget": "for engines; tests/flow",
        "Listener": "what subscribe_async gives",
        "ObservableIterator": "what to_aiter gives",
        "Overflow": "what overflow gives",
        "OverflowPolicy": "a type",
    },
    "operators": {
        "CallDelta": "a value",
        "MarkdownText": "a value",
        "Operator": "a type",
        "Phase": "a type",
        "Progress": "a value",
        "Recording": "a value",
        "Withdrawn": "a value",
        "check": "checks a list; tests/operators",
        "check_run": "checks a list; tests/operators",
    },
}

# The life of a run as issue by issue it was asked for: a row, and the section of runs.md that shows it.
ROWS = {
    "no tool": "No tool: one turn",
    "one tool": "One tool: the answer that calls",
    "parallel tools": "Parallel calls start together",
    "unstreamed": "Unstreamed: the same events",
    "steer": "Steering during an answer",
    "interrupting steer": "Interrupting steering",
    "follow-ups one at a time": "One at a time",
    "follow-ups all": "All at once",
    "model error": "A failure that can't be repeated",
    "retry": "A failure that can be repeated",
    "abort before the first event": "Before the first event",
    "abort while streaming": "While the answer streams",
    "abort while tools run": "While tools run",
    "abort while waiting to retry": "While waiting to repeat",
    "abort in a hook": "Within a hook",
    "abort while held": "While a slow observer holds",
    "tool timeout": "A tool that takes too long",
    "first event timeout": "No first event in time",
    "idle timeout": "Silence in between",
    "turn limit": "A run has at most max_turns",
    "usage limit": "A run ends when its usage",
    "slow observer": "A slow observer slows the run",
    "question and answer": "The answer resumes the run",
}


def sections(name: str) -> dict[str, list[str]]:
    """The second-level sections of a file, each with the text of its blocks."""
    text = (MARBLES / name).read_text(encoding="utf-8")
    found: dict[str, list[str]] = {}
    for part in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        title, _, body = part.partition("\n")
        found[title.strip()] = [block.text for block in read_document(body, name).blocks]
        found[title.strip()] += [setup.text for setup in read_document(body, name).setups]
    return found


@pytest.mark.parametrize(("module", "file"), [(operators, "operators.md"), (flow, "flow.md")], ids=["operators", "flow"])
def test_every_public_operator_has_a_section_that_uses_it(module: object, file: str):
    public = set(getattr(module, "__all__"))  # noqa: B009 - a module is an object to the type checker
    excused = set(NOT_OPERATORS[file.removesuffix(".md")])
    assert excused <= public, f"no longer public: {excused - public}"
    found = sections(file)
    missing = [
        name for name in sorted(public - excused) if not any(re.search(rf"\b{name}\(", text) for text in found.get(name, []))
    ]
    assert missing == [], f"without a section in marbles/{file}, headed by its name, that uses it"


@pytest.mark.parametrize("row", ROWS)
def test_every_phase_of_a_run_has_a_block(row: str):
    titles = [block.title for block in read_document((MARBLES / "runs.md").read_text(encoding="utf-8"), "runs.md").blocks]
    assert any(title.startswith(ROWS[row]) for title in titles)


def test_every_block_expects_something_and_uses_all_of_its_legend():
    for path in FILES:
        for fenced in read_document(path.read_text(encoding="utf-8"), path.name).blocks:
            block = read_block(fenced.text, fenced.place, fenced.title, WORDS)
            assert block.expected or block.states, f"{fenced.place}: {fenced.title}"
            assert block.unused() == [], f"{fenced.place}: {fenced.title}"


PLAY_ALL = """
import hashlib, resource, sys
from pathlib import Path
from rxagent.marble.markdown import read_document
from rxagent.marble.play import play
from rxagent.marble.reading import read_block
from rxagent.marble.verdict import judge
from rxagent.marble.vocabulary import WORDS
from rxagent.testing.item import run_setup
from rxagent.testing.world import world

digest = hashlib.sha256()
for path in sorted(Path(sys.argv[1]).glob("*.md")):
    document = read_document(path.read_text(encoding="utf-8"), path.name)
    for fenced in document.blocks:
        names = world()
        for setup in document.setups:
            if setup.place.line < fenced.place.line:
                run_setup(setup, names)
        block = read_block(fenced.text, fenced.place, fenced.title, WORDS)
        played = play(block, names)
        assert judge(block, played).problems == [], fenced.title
        for line in (*played.outputs.items(), *played.subscriptions.items()):
            kinds = [(at, type(h).__name__, getattr(getattr(h, "value", h), "type", "")) for at, h in line[1]]
            digest.update(repr((fenced.title, line[0], kinds)).encode())
        digest.update(repr((played.at, played.left)).encode())
usage = resource.getrusage(resource.RUSAGE_SELF)
print(digest.hexdigest(), usage.ru_utime + usage.ru_stime)
"""


def play_all(seed: int) -> tuple[str, float]:
    environment = {**os.environ, "PYTHONHASHSEED": str(seed)}
    done = subprocess.run(
        [sys.executable, "-c", PLAY_ALL, str(MARBLES)], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    digest, seconds = done.stdout.split()
    return digest, float(seconds)


def test_the_suite_gives_the_same_with_any_hash_seed_and_is_cheap():
    times = 50 if os.environ.get("HYPOTHESIS_PROFILE") == "nightly" else 5
    seeds = [int.from_bytes(hashlib.sha256(bytes([n])).digest()[:4], "big") for n in range(times)]
    results = [play_all(seed) for seed in seeds]
    assert len({digest for digest, _ in results}) == 1
    assert min(seconds for _, seconds in results) < 20, "CPU seconds of the whole suite"
