"""Each example that says what it prints prints just that, in a process of its own."""

import ast
import subprocess
import sys
import textwrap

import pytest
from documents import ROOT


def promised(path):
    """What stands under "Prints::" in an example's docstring."""
    document = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    _, found, printed = document.partition("Prints::\n")
    return textwrap.dedent(printed).strip("\n") + "\n" if found else None


EXAMPLES = {path.name: printed for path in sorted((ROOT / "examples").glob("*.py")) if (printed := promised(path))}


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_prints_what_it_says(name):
    command = [sys.executable, "-W", "error", str(ROOT / "examples" / name)]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=60, cwd=ROOT, check=False)
    assert (done.stdout, done.stderr, done.returncode) == (EXAMPLES[name], "", 0)


def test_every_example_says_what_it_is():
    for path in (ROOT / "examples").glob("*.py"):
        assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))), path.name
