"""Recorded runs: kept in stores, listed, played, drawn; questions answered in a later process."""

import json
import sqlite3

import pytest
from cli_harness import END, at, called, chat, chunk, rxagent, served

from rxagent.events import EventReader
from rxagent.operators import check

ASKING = '''
from rxagent import ToolContext

async def pay(amount: int, ctx: ToolContext) -> str:
    """Pays."""
    if await ctx.interrupt(f"Pay {amount}?", {"type": "boolean"}):
        return f"paid {amount}"
    return "not paid"
'''


@pytest.fixture
def here(tmp_path):
    (tmp_path / "asking.py").write_text(ASKING)
    return tmp_path


@pytest.fixture(scope="module")
def lines(tmp_path_factory):
    file = tmp_path_factory.mktemp("run") / "run.jsonl"
    file.write_text(rxagent("run", "add 2 and 3", "--mode", "json").stdout)
    return file


@pytest.mark.parametrize("name", ["s.db", "s.jsonl"])
def test_a_session_goes_on_in_another_process_and_is_listed(here, name):
    first = called("run", "add 2 and 3", "--store", name, "--session", "talk", cwd=here)
    assert "session talk" in first.stderr
    assert called("run", "add 4 and 5", "--store", name, "--session", "talk", cwd=here).returncode == 0
    listed = called("runs", "--store", name, cwd=here).stdout.splitlines()
    assert len(listed) == 1
    assert listed[0].startswith("talk ")
    assert "completed" in listed[0]
    assert listed[0].endswith("add 2 and 3")
    log = list(EventReader().read_all(called("replay", "talk", "--store", name, "--mode", "json", cwd=here).stdout.splitlines()))
    check(log)
    assert [e.type for e in log].count("agent_end") == 2


def test_a_question_is_answered_in_a_later_process(here):
    model = ["--tool", "asking.py:pay", "--store", "s.db", "--session", "x"]
    asked = called("run", "pay 5", *model, cwd=here)
    assert asked.returncode == 4
    assert "Pay 5?" in asked.stderr
    question = next(line for line in asked.stderr.splitlines() if line.startswith("? ") and "Pay" in line)
    answer = question.split()[1].rstrip(":")
    answered = called("run", *model, "--answer", f"{answer}=true", cwd=here)
    assert answered.returncode == 0
    assert "paid 5" in answered.stdout
    again = called("run", *model, "--answer", f"{answer}=true", cwd=here)
    assert again.returncode == 2
    assert "Traceback" not in again.stderr


def test_a_played_run_looks_as_it_did(lines):
    live = called("run", "add 2 and 3")
    played = called("replay", str(lines))
    assert played.stdout == live.stdout
    assert [line for line in live.stderr.splitlines() if "demo model" not in line] == played.stderr.splitlines()
    assert called("replay", "-", stdin=lines.read_text()).stdout == live.stdout
    assert called("replay", str(lines), "--mode", "json").stdout == lines.read_text()


def test_the_exit_code_of_a_played_run_is_its_own(tmp_path):
    with served(chat([500, "no"])) as url:
        done = called("run", "hi", *at(url), "--mode", "json", "--retries", "0")
    (tmp_path / "r.jsonl").write_text(done.stdout)
    assert done.returncode == called("replay", str(tmp_path / "r.jsonl")).returncode == 1


def test_the_state_at_an_event_is_that_of_the_moment(lines):
    first = json.loads(called("replay", str(lines), "--at", "0").stdout)
    assert (first["messages"], first["is_streaming"]) == ([], False)
    last = lines.read_text().count("\n") - 1
    state = json.loads(called("replay", str(lines), "--at", str(last)).stdout)
    assert [m["role"] for m in state["messages"]] == ["user", "assistant", "tool", "assistant"]
    beyond = called("replay", str(lines), "--at", str(last + 1))
    assert (beyond.returncode, beyond.stdout) == (2, "")
    assert f"0 to {last}" in beyond.stderr


def test_a_run_is_drawn(lines, tmp_path):
    assert called("trace", str(lines)).stdout.startswith("<svg")
    page = tmp_path / "run.html"
    assert called("trace", str(lines), "-o", str(page)).returncode == 0
    assert "<html" in page.read_text().lower()
    assert "can't be written" in called("trace", str(lines), "-o", str(tmp_path / "no" / "x.svg")).stderr


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["replay", "nowhere.jsonl"], "can't be read"),
        (["replay", "empty.jsonl"], "holds no events"),
        (["replay", "bad.jsonl"], "bad.jsonl:1"),
        (["replay", "x", "--store", "nowhere.db"], "no store"),
        (["replay", "x", "--store", "garbage.db"], "garbage.db"),
        (["replay", "x", "--speed", "0"], "above 0"),
        (["runs", "--store", "nowhere.db"], "no store"),
        (["trace", "nowhere.jsonl"], "can't be read"),
        (["run", "--answer", "a=b"], "--store and --session"),
        (["run", "hi", "--store", "garbage.db"], "garbage.db"),
        (["marbles", "nowhere.md"], "can't be read"),
        (["marbles", "bad.md"], "bad.md:"),
    ],
)
def test_bad_input_is_one_clear_message(tmp_path, arguments, complaint):
    (tmp_path / "empty.jsonl").write_text("\n")
    (tmp_path / "bad.jsonl").write_text("{}\n")
    (tmp_path / "garbage.db").write_bytes(b"not a database, surely" * 100)
    (tmp_path / "bad.md").write_text("```marble\nsource -a-\n> source +\nout b\n```\n")
    done = called(*arguments, cwd=tmp_path)
    assert done.returncode in (1, 2)
    assert complaint in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_an_ambiguous_beginning_is_refused(here):
    for session in ("ab1", "ab2"):
        called("run", "hi", "--store", "s.db", "--session", session, "-q", cwd=here)
    assert "2 sessions" in called("replay", "ab", "--store", "s.db", cwd=here).stderr
    assert called("replay", "ab1", "--store", "s.db", cwd=here).returncode == 0


def test_a_store_is_a_plain_database(here):
    called("run", "hi", "--store", "s.db", "-q", cwd=here)
    with sqlite3.connect(here / "s.db") as database:
        assert database.execute("pragma integrity_check").fetchone() == ("ok",)


def test_blocks_are_drawn(tmp_path):
    (tmp_path / "m.md").write_text("# Late\n\n```marble\nsource -a-|\n> source\nout -a-|\nwhere a = symbol\n```\n")
    assert called("marbles", "m.md", cwd=tmp_path).stdout == "Late\n"
    assert called("marbles", "m.md", "--svg", "out", cwd=tmp_path).stdout == "out/m-01-late.svg\n"
    assert (tmp_path / "out" / "m-01-late.svg").read_text().startswith("<svg")
    assert called("marbles", "m.md", "--svg", cwd=tmp_path).stdout == "m-svg/m-01-late.svg\n"


def test_models_are_listed_without_their_keys():
    done = called("models", OPENAI_API_KEY="sk-very-secret")
    assert "OPENAI_API_KEY is set" in done.stdout
    assert "needs ANTHROPIC_API_KEY" in done.stdout
    assert "secret" not in done.stdout


def test_a_call_is_played_with_its_arguments(tmp_path):
    call = chunk({"tool_calls": [{"index": 0, "id": "c", "function": {"name": "add", "arguments": '{"a":1,"b":2}'}}]})
    with served(chat([call, chunk({}, "tool_calls"), END[1]], [chunk({"content": "3"}), *END])) as url:
        done = called("run", "hi", *at(url), "--tool", "rxagent.cli.demo_tools:add", "--mode", "json")
    (tmp_path / "r.jsonl").write_text(done.stdout)
    assert "→ add(a=1, b=2)" in called("replay", str(tmp_path / "r.jsonl"), "--speed", "100").stderr
