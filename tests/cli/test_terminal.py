"""The command on a terminal: colours, progress, Ctrl-C; and Ctrl-C in a pipe."""

import os
import signal
import subprocess
import sys

import pytest
from cli_harness import COMMAND, END, OnTerminal, at, chat, chunk, environment, served, started, texts

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals and signals are POSIX")
SLOW = [*texts("first words"), 60.0, *END]


def test_a_terminal_has_colours_and_the_answer_in_plain():
    run = OnTerminal("run", "add 2 and 2")
    assert run.wait() == 0
    assert "\x1b[2m→ add(a=2, b=2)" in run.shown
    assert "\r\nadd says 4" in run.shown


def test_colours_can_be_declined():
    run = OnTerminal("run", "add 2 and 2", NO_COLOR="1")
    assert run.wait() == 0
    assert "\x1b[2m" not in run.shown


def test_remarks_never_start_in_the_middle_of_the_answer():
    call = chunk({"tool_calls": [{"index": 0, "id": "c", "function": {"name": "add", "arguments": '{"a":1,"b":2}'}}]})
    with served(chat([*texts("let me see"), call, chunk({}, "tool_calls"), END[1]], [*texts("3"), *END])) as url:
        run = OnTerminal("run", "hi", *at(url), "--tool", "rxagent.cli.demo_tools:add", NO_COLOR="1")
        assert run.wait() == 0
    assert run.shown == "let me see\r\n→ add(a=1, b=2)\r\n← add: 3\r\n3\r\n"


def test_a_models_control_characters_are_shown_not_obeyed():
    with served(chat([*texts("a\x1b[2Jb\x07"), *END])) as url:
        run = OnTerminal("run", "hi", *at(url))
        assert run.wait() == 0
    assert "a␛[2Jb␇" in run.shown


def test_a_long_wait_is_told_and_its_line_vanishes():
    with served(chat([2.2, *texts("there"), *END])) as url:
        run = OnTerminal("run", "hi", *at(url))
        assert run.wait() == 0
    assert "… waiting for compatible:test, 1." in run.shown
    assert run.shown.endswith("\r\x1b[Kthere\r\n")


def test_an_answer_that_starts_again_is_shown_once_on_a_terminal():
    words = [f"w{n} " for n in range(1_000)]
    with served(chat([*texts(*words), "reset"], [*texts(*words, "end"), *END])) as url:
        run = OnTerminal("run", "hi", *at(url), NO_COLOR="1")
        assert run.wait() == 0
    plain = "".join(line for line in run.shown.replace("\r", "").split("\n") if "↻" not in line)
    assert plain.replace("\x1b[K", "") == "".join(words) + "end"


def test_ctrl_c_aborts_cleanly_and_keeps_the_text():
    with served(chat(SLOW)) as url:
        run = OnTerminal("run", "hi", *at(url))
        run.until("first words")
        run.press("\x03")
        assert run.wait() == 130
    assert "rxagent: aborted" in run.shown
    assert "Traceback" not in run.shown


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_aborts_in_a_pipe_too(number):
    with served(chat(SLOW)) as url:
        process = started("run", "hi", *at(url))
        assert process.stdout.read(11) == b"first words"
        process.send_signal(number)
        out, err = process.communicate(timeout=20)
    assert process.returncode == 130
    assert out == b"\n"
    assert b"aborted" in err
    assert b"Traceback" not in err


def test_an_aborted_run_is_a_whole_log_in_json_mode():
    from rxagent.events import EventReader
    from rxagent.operators import check

    with served(chat(SLOW)) as url:
        process = started("run", "hi", *at(url), "--mode", "json")
        lines = [process.stdout.readline()]
        while b"first words" not in lines[-1]:
            lines.append(process.stdout.readline())
        process.send_signal(signal.SIGINT)
        rest, _ = process.communicate(timeout=20)
    events = list(EventReader().read_all([*lines, *rest.splitlines()]))
    check(events)
    assert events[-1].outcome == "aborted"


STUBBORN = '''
import time

def sleep() -> str:
    """Sleeps."""
    print("asleep", flush=True)
    time.sleep(60)
    return "awake"
'''


def test_twice_leaves_at_once_whatever_a_tool_does(tmp_path):
    (tmp_path / "stubborn.py").write_text(STUBBORN)
    process = started("run", "sleep", "--tool", str(tmp_path / "stubborn.py") + ":sleep")
    while b"asleep" not in process.stdout.readline():
        pass
    process.send_signal(signal.SIGINT)
    with pytest.raises(subprocess.TimeoutExpired):  # the tool has its time of grace
        process.wait(timeout=1.0)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=3.0)
    assert process.returncode == 130


def test_a_pipe_that_does_not_block_gets_all_of_a_long_answer():
    text = "x" * 400_000
    with served(chat([*texts(text), *END])) as url:
        reading, writing = os.pipe()
        os.set_blocking(writing, False)
        command = [*COMMAND, "run", "hi", *at(url), "-q"]
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=writing, env=environment())
        os.close(writing)
        with os.fdopen(reading) as answer:
            assert answer.read() == text + "\n"
        assert process.wait(timeout=20) == 0


def test_ctrl_c_reaches_a_run_whose_reader_is_slow():
    many = [*texts(*["x" * 4_000] * 100), 0.01]
    with served(chat([*many * 50, *END])) as url:
        process = started("run", "hi", *at(url))
        os.read(process.stdout.fileno(), 10)  # the pipe fills up, and writing to it blocks
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=20)
    assert process.returncode == 130
