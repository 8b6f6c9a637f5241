"""Everything that README.md and the guides say in code is run."""

import re
import shlex
import subprocess
import sys

import pytest
from documents import ROOT, blocks

from rxagent.marble.faults import Place
from rxagent.marble.play import play
from rxagent.marble.reading import read_block
from rxagent.marble.verdict import judge
from rxagent.marble.vocabulary import WORDS
from rxagent.testing.world import world

PYTHON = blocks("README.md", "python")
GUIDES = sorted(path.relative_to(ROOT) for path in (ROOT / "docs").glob("*.md") if blocks(path.relative_to(ROOT), "python"))


def run(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8", timeout=60, cwd=ROOT, check=False)


@pytest.mark.parametrize("code", [code for code, _ in PYTHON], ids=[f"line {line}" for _, line in PYTHON])
def test_a_block_runs(code):
    done = run(code)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_twelve_lines_are_twelve_and_say_what_they_should():
    code = PYTHON[0][0]
    assert len([line for line in code.splitlines() if line.strip()]) == 12
    assert run(code).stdout.endswith("add says 4. (Told by the demo model, which is scripted.)completed\n")


def test_the_marble_is_that_very_run():
    ((text, line),) = blocks("README.md", "marble")
    names = world()
    exec(PYTHON[0][0].partition("async def main")[0], names)
    block = read_block(text, Place("README.md", line), "the twelve lines", WORDS)
    verdict = judge(block, play(block, names))
    assert verdict.holds, "\n".join(verdict.problems)


def test_the_blocks_of_each_guide_run_one_after_the_other(subtests):
    for path in GUIDES:
        with subtests.test(str(path)):
            done = run("\n".join(code for code, _ in blocks(path, "python")))
            assert done.returncode == 0, done.stderr


def test_the_first_command_is_the_main_job():
    command = blocks("README.md", "sh")[0][0]
    words = shlex.split(command.partition(".venv/bin/rxagent")[2])
    done = subprocess.run([sys.executable, "-m", "rxagent", *words], capture_output=True, encoding="utf-8", timeout=60, cwd=ROOT)
    assert done.returncode == 0
    assert "add says 4" in done.stdout


def test_ci_runs_the_test_command_of_the_readme():
    command = blocks("README.md", "sh")[1][0].strip()
    assert "readme_command" in (ROOT / ".ci" / "run").read_text()
    assert command.endswith("-m pytest -q")


def test_links_lead_somewhere():
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", (ROOT / "README.md").read_text()):
        assert (ROOT / target).exists(), target
