"""Every bridge on its real toolkit, headless: the checks of ``gui_contract`` in a process per toolkit."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from functools import cache
from pathlib import Path

import gui_contract
import pytest

HERE = Path(gui_contract.__file__).parent
SYSTEM_PYTHON = os.environ.get("RXAGENT_SYSTEM_PYTHON", "/usr/bin/python3")
NEEDS = {
    "asyncio": ("asyncio", ""),
    "qasync": ("qasync, PySide6.QtWidgets", "pip install qasync 'rxagent[qt]'"),
    "qt": (
        "PySide6.QtWidgets",
        "pip install 'rxagent[qt]', apt install libegl1 libgl1 libxkbcommon0 libdbus-1-3 libfontconfig1",
    ),
    "pyqt": ("PyQt6.QtWidgets", "pip install PyQt6"),
    "tk": ("tkinter", "apt install python3-tk"),
    "tk-poll": ("tkinter", "apt install python3-tk"),
    "textual": ("textual", "pip install 'rxagent[textual]'"),
    "pygame": ("pygame", "pip install 'rxagent[pygame]'"),
    "gtk": ("gi.repository.GLib", "apt install python3-gi gir1.2-gtk-3.0"),
    "wx": ("wx", "apt install python3-wxgtk4.0"),
}
ON_A_SCREEN = {"tk", "tk-poll", "gtk", "wx"}
SLOWEST = 240


@cache
def interpreter(toolkit):
    """A Python that has the toolkit: this one, or else the system's, looking into this one's packages."""
    module, _ = NEEDS[toolkit]
    for python in (sys.executable, SYSTEM_PYTHON):
        found = subprocess.run([python, "-c", f"import {module}, pydantic_core"], env=environment(python), capture_output=True)
        if found.returncode == 0:
            return python
    return None


def environment(python):
    paths = [str(HERE), str(HERE.parent)]
    if python != sys.executable:
        paths.append(sysconfig.get_path("purelib"))
    quiet = {
        "QT_QPA_PLATFORM": "offscreen",
        "QT_API": "pyside6",
        "SDL_VIDEODRIVER": "dummy",
        "SDL_AUDIODRIVER": "dummy",
        "GDK_BACKEND": "x11",
    }
    return os.environ | quiet | {"PYTHONPATH": os.pathsep.join(paths), "PYGAME_HIDE_SUPPORT_PROMPT": "1", "NO_AT_BRIDGE": "1"}


@cache
def outcomes(toolkit):
    """What each check said, and what the process said besides."""
    python = interpreter(toolkit)
    command = [python, str(HERE / "gui_contract.py"), toolkit]
    if toolkit in ON_A_SCREEN:
        command = ["xvfb-run", "-a", "-s", "-noreset -screen 0 1024x768x24", *command]
    try:
        done = subprocess.run(command, env=environment(python), capture_output=True, text=True, timeout=SLOWEST)
        out, err, how = done.stdout, done.stderr, f"exit code {done.returncode}"
    except subprocess.TimeoutExpired as late:
        out, err, how = (late.stdout or b"").decode(), (late.stderr or b"").decode(), f"still running after {SLOWEST} s"
    lines = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
    return {line["check"]: line["failure"] for line in lines}, f"{how}\n{err[-3000:]}", how


@pytest.fixture(params=list(NEEDS))
def toolkit(request):
    if request.param in ON_A_SCREEN and not shutil.which("xvfb-run"):
        pytest.skip("needs a virtual screen: apt install xvfb xauth")
    if interpreter(request.param) is None:
        pytest.skip(f"needs {request.param}: {NEEDS[request.param][1]}")
    return request.param


@pytest.mark.parametrize("check", [function.__name__ for function in gui_contract.CHECKS])
@pytest.mark.xdist_group("gui")
def test_on_the_real_toolkit(toolkit, check):
    failures, said, _ = outcomes(toolkit)
    assert check in failures, f"{toolkit} did not get that far: {said}"
    assert failures[check] is None, failures[check]


def test_the_process_ends_well(toolkit):
    _, said, how = outcomes(toolkit)
    assert how == "exit code 0", said
