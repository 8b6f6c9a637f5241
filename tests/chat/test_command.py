"""`rxagent chat` where it can't run: what it says, and its exit code."""

import sys

import pytest
from cli_harness import ROOT, OnTerminal, rxagent


def test_without_the_extra_it_prints_the_line_that_installs_it(tmp_path):
    package = tmp_path / "textual"
    package.mkdir()
    (package / "__init__.py").write_text("raise ModuleNotFoundError(\"No module named 'textual'\", name='textual')\n")
    done = rxagent("chat", PYTHONPATH=f"{tmp_path}:{ROOT}")
    assert done.returncode == 2
    assert "pip install 'rxagent[chat]'" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_package_itself_needs_no_extra():
    import subprocess

    code = "import sys, rxagent, rxagent.cli; sys.exit('textual' in sys.modules or 'rich' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0


def test_in_a_pipe_it_points_to_run():
    pytest.importorskip("textual", reason="needs Textual: pip install 'rxagent[chat]'")
    done = rxagent("chat", stdin="hello")
    assert done.returncode == 2
    assert "rxagent run" in done.stderr


def test_a_store_that_cannot_be_made_is_named(tmp_path):
    pytest.importorskip("textual", reason="needs Textual: pip install 'rxagent[chat]'")
    (tmp_path / "file").write_text("")
    chat = OnTerminal("chat", XDG_DATA_HOME=str(tmp_path / "file"))
    assert chat.wait() == 2
    assert "--no-store" in chat.shown


def test_a_session_that_is_not_there_is_an_error_in_the_app(tmp_path):
    pytest.importorskip("textual", reason="needs Textual: pip install 'rxagent[chat]'")
    chat = OnTerminal("chat", "--no-store", "--session", "nowhere")
    chat.until("UnknownSession")
    chat.press("\x11")
    assert chat.wait() == 0
