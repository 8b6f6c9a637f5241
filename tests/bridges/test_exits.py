"""A program that ends in the middle of a stream ends quietly, on every toolkit whose loop it leaves behind."""

import os
import shutil
import subprocess
import sys

import pytest

BEGIN = """
from rxagent import Agent
from rxagent.bridges import AgentHost, AsyncioPort, QtPort, TkPort
from rxagent.models import ScriptedModel

def stream_into(port):
    host = AgentHost(Agent(ScriptedModel([[f"{n} " for n in range(30000)]])))
    host.frames(port, capacity=16).subscribe(lambda frame: None)
    host.prompt("go")
    return host
"""
ASYNCIO = """
import asyncio, time
host = stream_into(AsyncioPort(asyncio.new_event_loop()))
time.sleep(0.1)
"""
QT = """
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication, QWidget
app = QApplication([])
window = QWidget()
host = stream_into(QtPort(window))
QTimer.singleShot(50, app.exit)
app.exec()
"""
TK = """
import tkinter as tk
root = tk.Tk()
host = stream_into(TkPort(root))
root.after(50, root.quit)
root.mainloop()
"""


def check(script, *before):
    environment = os.environ | {"QT_QPA_PLATFORM": "offscreen"}
    command = [*before, sys.executable, "-c", BEGIN + script]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_asyncio():
    check(ASYNCIO)


def test_qt():
    pytest.importorskip("PySide6.QtWidgets", reason="needs PySide6: pip install 'rxagent[qt]'")
    check(QT)


def test_tk():
    pytest.importorskip("tkinter", reason="needs Tk: apt install python3-tk")
    if not shutil.which("xvfb-run"):
        pytest.skip("needs a virtual screen: apt install xvfb xauth")
    check(TK, "xvfb-run", "-a", "-s", "-noreset")
