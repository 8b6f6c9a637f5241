"""Without a toolkit the error says what to install; importing the bridges imports none of them."""

import subprocess
import sys

import pytest

BLOCK = """
import sys, importlib.machinery

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in BLOCKED:
            raise ModuleNotFoundError(name)

BLOCKED = {names!r}
if BLOCKED:
    import importlib.util
    real = importlib.util.find_spec
    importlib.util.find_spec = lambda name, package=None: None if name.partition(".")[0] in BLOCKED else real(name, package)
    sys.meta_path.insert(0, Missing())
"""
TRY = """
from rxagent.bridges import *
from rxagent.errors import MissingExtra, UsageError
try:
    {call}
except {error} as error:
    print(error)
"""
TOOLKITS = ["PySide6", "PyQt6", "textual", "gi", "wx", "pygame", "tkinter"]


def run(script, names=()):
    code = BLOCK.replace("{names!r}", repr(list(names))) + script
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        ("on_qt(object())", "rxagent[qt]"),
        ("on_textual(object())", "rxagent[textual]"),
        ("on_gtk(object())", "apt install python3-gi gir1.2-gtk-3.0"),
        ("on_wx(object())", "apt install python3-wxgtk4.0"),
    ],
)
def test_the_error_names_what_to_install(call, says):
    done = run(TRY.format(call=call, error="MissingExtra"), TOOLKITS)
    assert says in done.stdout, done.stderr


@pytest.mark.parametrize("call", ["on_qt(object())", "on_tk(object())", "on_textual(object())"])
def test_what_is_no_window_is_refused(call):
    pytest.importorskip("PySide6", reason="needs PySide6: pip install 'rxagent[qt]'")
    pytest.importorskip("textual", reason="needs Textual: pip install 'rxagent[textual]'")
    done = run(TRY.format(call=call, error="UsageError"))
    assert "takes" in done.stdout, done.stderr


def test_importing_the_bridges_imports_no_toolkit():
    done = run(f"import rxagent, rxagent.bridges\nprint([name for name in {TOOLKITS} if name in sys.modules])")
    assert done.stdout.strip() == "[]", done.stderr
