"""`rxagent run` as people and programs use it: in a pipe, with tools, with bad input."""

import json
import pathlib
import shlex
import subprocess

import pytest
from cli_harness import COMMAND, END, at, called, chat, chunk, environment, rxagent, served, started, texts

from rxagent.events import AgentEnd, EventReader, ToolEnd
from rxagent.operators import check


def test_the_demo_model_answers_with_a_tool_call_and_says_what_it_is():
    done = rxagent("run", "add 2 and 3")
    assert done.returncode == 0
    assert done.stdout.splitlines()[-1].startswith("add says 5")
    assert done.stdout.endswith("\n")
    assert "demo model" in done.stderr
    assert "→ add(a=2, b=3)" in done.stderr
    assert "← add: 5" in done.stderr


def test_nothing_in_a_pipe_moves_a_cursor():
    done = rxagent("run", "write a long answer")
    assert "\x1b" not in done.stdout + done.stderr
    assert "\r" not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("arguments", "stdin"),
    [
        (["add", "2", "and", "2"], None),
        (["-"], "add 2 and 2"),
        ([], "add 2 and 2\n"),
        (["add 2 and", "-"], "2"),
    ],
)
def test_prompts_come_as_words_and_from_stdin(arguments, stdin):
    assert "add says 4" in rxagent("run", *arguments, stdin=stdin).stdout


def test_json_mode_writes_a_whole_log():
    done = called("run", "add 2 and 2", "--mode", "json")
    events = list(EventReader().read_all(done.stdout.splitlines()))
    check(events)
    assert [e.result.text for e in events if isinstance(e, ToolEnd)] == ["4"]
    assert isinstance(events[-1], AgentEnd)
    assert all("message" not in json.loads(line) for line in done.stdout.splitlines() if '"message_update"' in line)


def test_an_unstreamed_answer_is_the_same():
    streamed, whole = (called("run", "add 2 and 2", *more).stdout for more in ([], ["--no-stream"]))
    assert streamed == whole


def test_quiet_leaves_only_the_answer():
    done = called("run", "add 2 and 2", "-q")
    assert done.stderr == ""
    assert "add says 4" in done.stdout


TOOLS = '''
from rxagent import tool

@tool
def shout(text: str) -> str:
    """Says it louder."""
    return text.upper()

def bad(text) -> str:
    return text

def fails(text: str) -> str:
    raise RuntimeError("no")

ALL = [shout]
number = 3
'''


@pytest.fixture
def tools(tmp_path):
    (tmp_path / "my_tools.py").write_text(TOOLS)
    (tmp_path / "broken.py").write_text("1/0")
    (tmp_path / "needs.py").write_text("import surely_not_installed")
    return tmp_path


@pytest.mark.parametrize("name", ["my_tools:shout", "my_tools.py:shout", "my_tools:ALL"])
def test_tools_come_from_modules_and_files(tools, name):
    done = called("run", 'shout "hello"', "--tool", name, cwd=tools)
    assert "shout says HELLO" in done.stdout
    assert '→ shout(text="hello")' in done.stderr


def test_a_failing_tool_does_not_end_the_run(tools):
    done = called("run", 'fails "x"', "--tool", "my_tools:fails", cwd=tools)
    assert done.returncode == 0
    assert "✗ fails" in done.stderr
    assert "no" in done.stderr


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("shout", "MODULE:FUNCTION"),
        ("nowhere:shout", "no module 'nowhere'"),
        ("nowhere.py:shout", "no file 'nowhere.py'"),
        ("my_tools:whisper", "it has shout, bad, fails"),
        ("my_tools:number", "neither a function nor a tool"),
        ("my_tools:bad", "no type annotation"),
        ("broken:x", "ZeroDivisionError"),
        ("needs:x", "surely_not_installed"),
    ],
)
def test_a_tool_that_can_not_be_had_is_named(tools, name, complaint):
    done = called("run", "hi", "--tool", name, cwd=tools)
    assert done.returncode == 2
    assert complaint in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_two_tools_of_one_name_are_refused(tools):
    done = called("run", "hi", "--tool", "my_tools:shout", "--tool", "my_tools.py:shout", cwd=tools)
    assert done.returncode == 2
    assert "two tools are named 'shout'" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "complaint"),
    [
        (["run", "hi", "--model", "nonsense"], 2, "no provider serves 'nonsense'"),
        (["run", "hi", "--model", "openai:gpt-5"], 2, "OPENAI_API_KEY"),
        (["run", "hi", "--base-url", "http://127.0.0.1:1"], 2, "--model"),
        (["run", "hi", "--model", "x", "--base-url", "ftp://nowhere"], 2, "http"),
        (["run", "hi", "--model", "x", "--base-url", "http://127.0.0.1:1", "--retries", "0"], 1, "no connection to"),
        (["run", " "], 2, "no prompt"),
        (["run", "-", "-"], 2, "once"),
        (["run", "hi", "--max-turns", "0"], 2, "1 or more"),
        (["run", "hi", "--mode", "xml"], 2, "xml"),
        (["walk"], 2, "walk"),
        ([], 2, "COMMAND"),
    ],
)
def test_bad_input_is_one_clear_message(arguments, code, complaint):
    done = called(*arguments)
    assert done.returncode == code
    assert complaint in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_stdin_that_is_no_text_is_refused():
    process = started("run", "-")
    _, err = process.communicate(b"\xff\xfe\x00", timeout=30)
    assert process.returncode == 2
    assert "UTF-8" in err.decode()


def test_a_limit_has_its_own_exit_code():
    calls = [chunk({"tool_calls": [{"index": 0, "id": "c", "function": {"name": "add", "arguments": '{"a":1,"b":2}'}}]})]
    with served(chat([*calls, chunk({}, "tool_calls"), END[1]])) as url:
        done = called("run", "hi", *at(url), "--max-turns", "2", "--tool", "rxagent.cli.demo_tools:add")
    assert done.returncode == 3
    assert "max_turns" in done.stderr


def test_a_configuration_file_says_what_arguments_would(tmp_path):
    file = tmp_path / "c.toml"
    with served(chat([*texts("from ", "the server"), *END])) as url:
        file.write_text(f'model = "test"\nbase-url = "{url}/v1"\nsystem = "be brief"\nprompt = "hi"\nquiet = true\n')
        assert called("run", "--config", str(file)).stdout == "from the server\n"
        assert called("run", RXAGENT_CONFIG=str(file)).stdout == "from the server\n"
        assert "You said “hi”" in called("run", "--config", str(file), "--model", "demo").stdout


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("model = ", "no TOML"),
        ("modle = 'x'", "modle"),
        ("retries = -1", "retries"),
        ("tool = 3", "tool"),
    ],
)
def test_a_bad_configuration_file_is_named(tmp_path, content, complaint):
    file = tmp_path / "c.toml"
    file.write_text(content)
    done = called("run", "hi", "--config", str(file))
    assert done.returncode == 2
    assert "c.toml" in done.stderr
    assert complaint in done.stderr


def test_a_configuration_file_that_is_not_there_is_an_error_if_it_was_asked_for(tmp_path):
    assert "no configuration file" in called("run", "hi", "--config", str(tmp_path / "x.toml")).stderr
    assert called("run", "hi", XDG_CONFIG_HOME=str(tmp_path)).returncode == 0


def test_the_users_configuration_is_found(tmp_path):
    (tmp_path / "rxagent").mkdir()
    (tmp_path / "rxagent" / "config.toml").write_text("quiet = true\n")
    assert called("run", "hi", XDG_CONFIG_HOME=str(tmp_path)).stderr == ""


def test_help_and_version_do_not_need_a_run():
    assert "exit codes" in called("--help").stdout
    assert called("--version").stdout.startswith("rxagent 0")


@pytest.mark.parametrize("missing", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize("command", ["run hi", "run hi --mode json", "run --mode rpc </dev/null", "models"])
def test_a_process_without_a_standard_stream_works_all_the_same(command, missing):
    shell = f"{shlex.join(COMMAND)} {command} {missing}"
    done = subprocess.run(shell, shell=True, capture_output=True, env=environment(), timeout=30, check=False)
    assert (done.returncode, b"Traceback" in done.stderr) == (0, False), done.stderr


@pytest.mark.skipif(not pathlib.Path("/dev/full").exists(), reason="Linux has a file that is always full")
@pytest.mark.parametrize(("command", "code"), [("run hi", 130), ("run hi --mode json", 130), ("models", 1)])
def test_a_full_disk_is_told_in_one_line(command, code):
    done = subprocess.run(
        f"{shlex.join(COMMAND)} {command} >/dev/full", shell=True, capture_output=True, env=environment(), timeout=30, check=False
    )
    assert done.returncode == code
    assert b"No space left on device" in done.stderr
    assert b"Traceback" not in done.stderr
