"""The mutation check: each named lie about flow, operators or engine fails at least one marble block."""

import compileall
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from mutants import MUTANTS, Mutant

ROOT = Path(__file__).parents[2]

PLAY_UNTIL_ONE_FAILS = """
import contextlib, io, sys
from pathlib import Path
from rxagent.marble.faults import MarbleError
from rxagent.marble.markdown import read_document
from rxagent.marble.play import play
from rxagent.marble.reading import read_block
from rxagent.marble.verdict import judge
from rxagent.marble.vocabulary import WORDS
from rxagent.testing.item import run_setup
from rxagent.testing.world import world

first = sys.argv[2]
for path in sorted(Path(sys.argv[1]).glob("*.md"), key=lambda path: path.name != first):
    document = read_document(path.read_text(encoding="utf-8"), path.name)
    for fenced in document.blocks:
        names = world()
        for setup in document.setups:
            if setup.place.line < fenced.place.line:
                run_setup(setup, names)
        with contextlib.redirect_stderr(io.StringIO()):
            block = read_block(fenced.text, fenced.place, fenced.title, WORDS)
            problems = judge(block, play(block, names)).problems
        if problems:
            print(f"{path.name}: {fenced.title}")
            sys.exit(3)
"""


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package, to be mutated and mended."""
    place = tmp_path_factory.mktemp("mutated")
    shutil.copytree(ROOT / "rxagent", place / "rxagent", ignore=shutil.ignore_patterns("__pycache__"))
    compileall.compile_dir(place, quiet=1)  # once, not by each of the processes that play
    return place


def play(package: Path, first: str) -> tuple[int, str]:
    environment = {**os.environ, "PYTHONPATH": str(package), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-c", PLAY_UNTIL_ONE_FAILS, str(ROOT / "marbles"), first]
    done = subprocess.run(command, cwd=package, env=environment, capture_output=True, text=True, check=False, timeout=120)
    return done.returncode, done.stdout + done.stderr


def test_there_are_enough_mutants_and_each_has_a_name():
    assert len(MUTANTS) >= 25
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)


def test_without_a_mutation_every_block_holds(package: Path):
    code, output = play(package, "flow.md")
    assert code == 0, output


@pytest.mark.parametrize("mutant", MUTANTS, ids=[mutant.name for mutant in MUTANTS])
def test_a_block_notices(mutant: Mutant, package: Path):
    path = package / "rxagent" / mutant.file
    text = path.read_text(encoding="utf-8")
    assert text.count(mutant.old) == 1, f"the text of this mutant stands {text.count(mutant.old)} times in {mutant.file}: mend it"
    path.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")
    try:
        code, output = play(package, mutant.spec)
    finally:
        path.write_text(text, encoding="utf-8")
    assert code == 3, f"no block notices: {output[-2000:]}"
    print(output.strip())
