"""The examples, run headless with a scripted or the demo model, and looked at."""

import html
import io
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import gui_chat
import pytest

EXAMPLES = gui_chat.EXAMPLES
ROOT = EXAMPLES.parent


def run(*command):
    environment = os.environ | {"QT_QPA_PLATFORM": "offscreen", "PYTHONPATH": str(ROOT)}
    done = subprocess.run([*map(str, command)], env=environment, capture_output=True, text=True, timeout=120, cwd=ROOT)
    assert done.returncode == 0, f"exit code {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture
def pictures(tmp_path):
    """Where screenshots go; RXAGENT_SCREENSHOTS keeps them."""
    kept = os.environ.get("RXAGENT_SCREENSHOTS")
    folder = Path(kept) if kept else tmp_path
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def check_pictures(folder, toolkit):
    image = pytest.importorskip("PIL.Image", reason="needs Pillow: pip install Pillow")
    looks = set()
    for name in ("idle", "tools", "streaming", "error", "done"):
        picture = image.open(folder / f"{name}.png")
        assert picture.width >= 760
        assert len(picture.convert("RGB").getcolors(1 << 24)) > 20, f"{name} of {toolkit} is empty"
        looks.add(picture.tobytes())
    assert len(looks) == 5


def picture(shown, path, *words):
    """What a terminal shows, as an image with these words on it."""
    console = pytest.importorskip("rich.console", reason="needs Rich: pip install 'rxagent[chat]'")
    text = pytest.importorskip("rich.text", reason="needs Rich: pip install 'rxagent[chat]'")
    terminal = console.Console(record=True, file=io.StringIO(), width=90)
    terminal.print(text.Text.from_ansi(shown) if isinstance(shown, str) else shown)
    svg = terminal.export_svg(title=path.stem)
    path.write_text(svg, encoding="utf-8")
    plain = html.unescape(svg).replace("\xa0", " ")
    assert all(word in plain for word in words)


@pytest.mark.xdist_group("gui")
def test_the_qt_window_through_a_whole_conversation(pictures):
    pytest.importorskip("PySide6.QtCore", reason="needs PySide6: pip install 'rxagent[qt]'")
    folder = pictures / "qt"
    folder.mkdir(exist_ok=True)
    run(sys.executable, gui_chat.__file__, "qt", folder)
    check_pictures(folder, "qt")


@pytest.mark.xdist_group("gui")
def test_the_tk_window_through_a_whole_conversation(pictures):
    pytest.importorskip("tkinter", reason="needs Tk: apt install python3-tk")
    pytest.importorskip("PIL.ImageGrab", reason="needs Pillow: pip install Pillow")
    if not shutil.which("xvfb-run"):
        pytest.skip("needs a virtual screen: apt install xvfb xauth")
    folder = pictures / "tk"
    folder.mkdir(exist_ok=True)
    screen = "-noreset -screen 0 800x700x24"
    run("xvfb-run", "-a", "-s", screen, sys.executable, gui_chat.__file__, "tk", folder)
    check_pictures(folder, "tk")


def test_the_port_of_ones_own_loop(pictures):
    out = run(sys.executable, EXAMPLES / "own_loop.py", "Say hello.")
    picture(out, pictures / "own_loop.svg", "demo model", "(completed)")
    assert "demo model" in out
    assert out.rstrip().endswith("(completed)")


def test_the_script(pictures):
    out = run(sys.executable, EXAMPLES / "script.py")
    picture(out, pictures / "script.svg", "→ add {'a': 20.0, 'b': 22.0}", "(completed,")
    assert "→ add {'a': 20.0, 'b': 22.0}" in out
    assert "← 42   0.3 s" in out
    assert out.splitlines()[-1].startswith("(completed, ")


def test_the_notebook_in_a_real_kernel(pictures):
    nbclient = pytest.importorskip("nbclient", reason="needs Jupyter's kernel: pip install nbclient ipykernel")
    nbformat = pytest.importorskip("nbformat", reason="needs Jupyter's kernel: pip install nbclient ipykernel")
    pytest.importorskip("ipykernel", reason="needs Jupyter's kernel: pip install nbclient ipykernel")
    script = f"""
import json, nbclient, nbformat
book = nbformat.read({str(EXAMPLES / "notebook.ipynb")!r}, 4)
nbclient.NotebookClient(book, timeout=90, kernel_name="python3").execute()
print(json.dumps(book.cells[1].outputs))
"""
    assert nbclient
    assert nbformat
    (output,) = json.loads(run(sys.executable, "-c", script).splitlines()[-1])
    markdown = pytest.importorskip("rich.markdown", reason="needs Rich: pip install 'rxagent[chat]'")
    picture(markdown.Markdown(output["data"]["text/markdown"]), pictures / "notebook.svg", "ollama:llama3.2")
    assert output["data"]["text/markdown"].rstrip().endswith("`ollama:llama3.2`.")
