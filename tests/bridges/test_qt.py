"""Qt's own pitfalls: a PySide6 that loses references, bridges made on a wrong thread, bridges left behind."""

import gc
import os
import subprocess
import sys

import pytest

pytest.importorskip("PySide6.QtCore", reason="needs PySide6: pip install 'rxagent[qt]'")


def run(script):
    environment = os.environ | {"QT_QPA_PLATFORM": "offscreen"}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, f"exit code {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


def test_this_release_of_pyside_keeps_its_references():
    """PySide6 6.12 on Python 3.11 drops one of True at each emit, and the interpreter aborts after some hundred."""
    out = run("""
import sys
from PySide6.QtCore import QObject, Signal, __version__

class Source(QObject):
    fired = Signal(object)

source = Source()
source.fired.connect(lambda value: None)
source.fired.emit(True)
before = sys.getrefcount(True), sys.getrefcount(None)
for _ in range(1000):
    source.fired.emit(True)
after = sys.getrefcount(True), sys.getrefcount(None)
print(__version__, after[0] - before[0], after[1] - before[1])
""")
    version, true, none = out.split()
    assert abs(int(true)) < 500, f"PySide6 {version} loses references to True"
    assert abs(int(none)) < 500, f"PySide6 {version} loses references to None"


def test_a_bridge_made_on_another_thread_says_so():
    out = run("""
import threading
from PySide6.QtWidgets import QApplication, QWidget
from rxagent.bridges import on_qt
from rxagent.errors import UsageError
app = QApplication([])
window = QWidget()

def make():
    try:
        on_qt(window)
    except UsageError as error:
        print(error)

thread = threading.Thread(target=make)
thread.start()
thread.join()
""")
    assert "GUI thread" in out


def test_bridges_that_are_done_leave_nothing_in_the_window():
    out = run("""
import gc
from PySide6.QtWidgets import QApplication, QWidget
from PySide6.QtCore import QEvent
import reactivex as rx
from rxagent.bridges import on_qt
app = QApplication([])
window = QWidget()
seen = []
for n in range(20):
    rx.of(n).pipe(on_qt(window)).subscribe(seen.extend)
    for _ in range(3):
        app.processEvents()
gc.collect()
app.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)
print(seen == list(range(20)), len(window.children()))
""")
    assert out.split() == ["True", "0"]


def test_an_application_that_quits_ends_its_bridges():
    out = run("""
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication, QWidget
from rxagent import Agent
from rxagent.bridges import AgentHost, QtPort
from rxagent.models import ScriptedModel
app = QApplication([])
window = QWidget()
window.show()
host = AgentHost(Agent(ScriptedModel([[f"{n} " for n in range(5000)]])))
host.frames(QtPort(window), capacity=16).subscribe(lambda frame: window.close())
host.prompt("go")
app.exec()
print(host.wait(20).outcome)
host.close()
""")
    assert out.split() == ["completed"]
    gc.collect()


@pytest.mark.parametrize("binding", ["PySide6", "PyQt6"])
def test_closing_a_window_ends_what_is_shown_in_it_and_refusing_to_does_not(binding):
    pytest.importorskip(f"{binding}.QtCore", reason=f"needs {binding}: pip install {binding}")
    out = run(f"""
from {binding}.QtWidgets import QApplication, QMainWindow
from rxagent import Agent
from rxagent.bridges import AgentHost, QtPort
from rxagent.models import ScriptedModel
import time

class Window(QMainWindow):
    stays = True
    asked = 0

    def closeEvent(self, event):
        self.asked += 1
        if self.stays:
            event.ignore()
            self.hide()  # into the tray, so to speak

app = QApplication([])
window = Window()
window.show()
seen = []
pieces = ["x"] * 4000
host = AgentHost(Agent(ScriptedModel([pieces, pieces])))
host.frames(QtPort(window), capacity=16).subscribe(seen.append)

def pump(done):
    until = time.monotonic() + 20
    while not done() and time.monotonic() < until:
        app.processEvents()

host.prompt("go")
pump(lambda: len(seen) > 2)
print(window.close(), window.asked)
pump(lambda: seen and any(event.type == "agent_end" for event in seen[-1]))
print(host.wait(5).outcome, sum(len(frame) for frame in seen) > 4000)
window.show()
host.prompt("again")
count = len(seen)
pump(lambda: len(seen) > count + 2)
window.stays = False
print(window.close(), window.asked)
count = len(seen)
print(host.wait(10).outcome)
for _ in range(20):
    app.processEvents()
print(len(seen) - count)
host.close()
""")
    assert out.splitlines() == ["False 1", "completed True", "True 2", "completed", "0"]


def test_a_bridge_of_the_application_outlives_its_windows():
    out = run("""
from PySide6.QtWidgets import QApplication, QWidget
import reactivex as rx
from rxagent.bridges import on_qt
app = QApplication([])
window = QWidget()
window.show()
seen = []
source = rx.Subject()
source.pipe(on_qt(app)).subscribe(seen.extend)
window.close()
source.on_next(1)
for _ in range(50):
    app.processEvents()
print(seen)
""")
    assert out.splitlines() == ["[1]"]
