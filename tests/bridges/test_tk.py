"""Tk's own pitfalls."""

import shutil
import subprocess
import sys

import pytest

pytest.importorskip("tkinter", reason="needs Tk: apt install python3-tk")
if not shutil.which("xvfb-run"):
    pytest.skip("needs a virtual screen: apt install xvfb xauth", allow_module_level=True)


def run(script):
    command = ["xvfb-run", "-a", "-s", "-noreset", sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, f"exit code {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.mark.xdist_group("gui")
def test_a_posted_function_that_raises_is_reported_as_tk_does_it_and_the_main_loop_goes_on():
    out = run("""
import tkinter as tk
from rxagent.bridges import TkPort
root = tk.Tk()
errors, seen = [], []
root.report_callback_exception = lambda kind, error, trace: errors.append(kind.__name__)
port = TkPort(root)
port.post(lambda: 1 / 0)
port.post(lambda: seen.append("after it"))
port.post(lambda: seen.append("and after that") or root.quit())
root.after(20_000, root.quit)
root.mainloop()
print(errors, seen)
root.destroy()
""")
    assert out.split("\n")[0] == "['ZeroDivisionError'] ['after it', 'and after that']"
