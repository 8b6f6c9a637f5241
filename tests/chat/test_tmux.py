"""The command on a real terminal, tmux, driven by keys alone and read from its screen."""

import os
import shutil
import signal
import subprocess
import sys
import time
import uuid

import pytest

pytest.importorskip("textual", reason="needs Textual: pip install 'rxagent[chat]'")
if shutil.which("tmux") is None:
    pytest.skip("needs tmux: apt install tmux", allow_module_level=True)

from cli_harness import environment

# tmux 3.3 sometimes misses that its child has ended, so the screen is told the exit code by a shell
RUN = '"$0" "$@"; echo "ended with $?"; exec sleep 600'


class Terminal:
    """A tmux server of its own with one window that runs the app."""

    def __init__(self, folder, *arguments, columns=80, rows=24):
        self._socket = f"rxagent-{uuid.uuid4().hex[:8]}"
        self._env = environment(TERM="xterm-256color", XDG_DATA_HOME=str(folder), LC_ALL="C.UTF-8")
        command = ["sh", "-c", RUN, sys.executable, "-m", "rxagent", "chat", *arguments]
        self._tmux("-f", os.devnull, "new-session", "-d", "-x", str(columns), "-y", str(rows), *command)

    def _tmux(self, *arguments):
        done = subprocess.run(
            ["tmux", "-u", "-L", self._socket, *arguments], capture_output=True, encoding="utf-8", env=self._env, check=False
        )
        return done.stdout

    def press(self, *keys):
        self._tmux("send-keys", *keys)

    def type(self, text, *keys):
        self._tmux("send-keys", "-l", text)
        self.press(*(keys or ("Enter",)))

    def resize(self, columns, rows):
        self._tmux("resize-window", "-x", str(columns), "-y", str(rows))

    def terminate(self):
        """SIGTERM to the app, the shell's child."""
        shell = self._tmux("list-panes", "-F", "#{pane_pid}").strip()
        child = subprocess.run(["ps", "-o", "pid=", "--ppid", shell], capture_output=True, encoding="ascii", check=True)
        os.kill(int(child.stdout), signal.SIGTERM)

    @property
    def screen(self):
        return self._tmux("capture-pane", "-p")

    def until(self, *texts, gone=(), timeout=40.0):
        """Waits until all texts are on the screen, and those that are to be gone are."""
        end = time.monotonic() + timeout
        while True:
            screen = self.screen
            if all(text in screen for text in texts) and not any(text in screen for text in gone):
                return screen
            assert time.monotonic() < end, f"{texts} did not appear, or {gone} stayed:\n{screen}"
            time.sleep(0.1)

    def close(self):
        self._tmux("kill-server")


@pytest.fixture
def terminal(tmp_path):
    opened = []

    def start(*arguments, **size):
        opened.append(Terminal(tmp_path, *arguments, **size))
        return opened[-1]

    yield start
    for each in opened:
        each.close()


def test_a_whole_conversation_by_keys_alone(terminal):
    t = terminal()
    t.until("agents as reactive streams", "Ask anything", "● ready")

    t.type("write a long sample")
    t.until("For a real model give another name", "● ready")
    assert "A sample of Markdown" not in t.screen

    t.press("PageUp")  # scroll
    t.press("PageUp")
    t.until("agents as reactive streams", "▌ write a long sample", "↓ ctrl+end")
    t.press("C-End")
    t.until("For a real model give another name", gone=["↓ ctrl+end"])

    t.type("count to 15")  # steer and follow up
    t.until("count runs", "to=15")
    t.type("and add 2 and 40")
    t.type("then say bye", "Tab")
    t.until("↳ next", "⋯ later")
    t.until("said “then say bye”", "● ready", gone=["↳ next", "⋯ later"])
    t.until("✓ add", "└ 42")

    t.type('publish "one"')  # approve
    t.until("Run publish?", 'text: "one"', "needs you")
    t.press("y")
    t.until("✓ publish", "published, so to speak: one", "● ready")

    t.type('publish "two"')  # deny
    t.until("Run publish?", 'text: "two"')
    t.press("n")
    t.until("✗ publish", "denied by the user", "● ready")

    t.type("count to 90")  # abort
    t.until("count runs", "3 of 90")
    t.press("Escape")
    t.until("stopped", "ctrl+r", gone=["count runs"])

    t.type("fail please")  # an error, and again
    t.until("✗ server: the demo model fails", "ctrl+r tries again")
    t.press("C-r")
    t.until("said “fail please”", "● ready")

    t.press("?")
    t.until("Writing", "Running")
    t.press("Escape")
    t.until("Ask anything", gone=["Writing"])

    t.resize(60, 18)  # resize
    t.until("Ask anything", "● ready", "said “fail please”")
    assert all(len(line) <= 60 for line in t.screen.splitlines())
    t.resize(120, 40)
    t.until("count was aborted", "said “fail please”")

    t.press("C-g")
    t.until("● ready")
    t.press("C-n")  # another conversation, and back
    t.until("agents as reactive streams")
    t.press("C-p")
    t.until("Conversations", "write a long sample")
    t.press("Enter")
    t.until("said “fail please”")

    t.press("C-q")
    t.until("ended with 0")


def test_the_conversation_is_there_again_after_a_restart(terminal):
    first = terminal("add 1 and 2")
    first.until("✓ add", "└ 3", "● ready")
    first.press("C-q")
    first.until("ended with 0")
    second = terminal("--last")
    second.until("✓ add", "└ 3", "● ready", "add says 3")


def test_a_process_that_dies_in_the_middle_of_a_run_can_be_taken_up(terminal, tmp_path):
    first = terminal("count to 60")
    first.until("5 of 60")
    first.close()
    second = terminal("--last")
    second.until("the program ended in the middle of this", "ctrl+r")
    second.press("C-r")
    second.until("nobody knows", "1 rerun", "2 fail")
    second.press("2")
    second.until("✗ count", "● ready")


def test_sigterm_stops_the_run_and_leaves_the_terminal_as_it_was(terminal):
    app = terminal("count to 60")
    app.until("3 of 60")
    app.terminate()
    assert "rxagent" not in app.until("ended with 130", gone=("of 60",))
    again = terminal("--last")
    again.until("stopped", "ctrl+r")
