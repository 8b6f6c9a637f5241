"""docs/gui.md: its blocks run, and what it names is there."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from rxagent import bridges

PAGE = (Path(__file__).parent.parent.parent / "docs" / "gui.md").read_text()
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("block", BLOCKS)
def test_its_blocks_run(block):
    done = subprocess.run([sys.executable, "-c", block], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "completed\n"), done.stderr


def test_every_public_name_is_told_of():
    assert [name for name in bridges.__all__ if not re.search(rf"\b{name}\b", PAGE)] == ["Port", "ClosingPort"]


def test_files_that_it_names_are_there():
    named = re.findall(r"`((?:examples|tests|benchmarks)/[\w./]+)`", PAGE)
    assert named
    assert [name for name in named if not (Path(__file__).parent.parent.parent / name).exists()] == []
