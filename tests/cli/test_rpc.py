"""`rxagent run --mode rpc`: JSON Lines both ways."""

import json

import pytest
from cli_harness import END, at, called, chat, chunk, served, started, texts

from rxagent.events import EventReader
from rxagent.operators import check


class Rpc:
    def __init__(self, *arguments, **env):
        self.process = started("run", "--mode", "rpc", *arguments, **env)
        self.events = []
        self.responses = []

    def send(self, **command):
        self.process.stdin.write(json.dumps(command).encode() + b"\n")
        self.process.stdin.flush()

    def until(self, wanted):
        """Reads until a line is wanted; gives that line."""
        while line := self.process.stdout.readline():
            value = json.loads(line)
            (self.responses if value["type"] == "response" else self.events).append(value)
            if wanted(value):
                return value
        raise AssertionError(f"ended; {self.process.stderr.read().decode()}")

    def response(self, number):
        return self.until(lambda value: value["type"] == "response" and value["id"] == number)

    def end(self):
        out, err = self.process.communicate(timeout=20)
        for line in out.splitlines():
            value = json.loads(line)
            (self.responses if value["type"] == "response" else self.events).append(value)
        assert b"Traceback" not in err, err.decode()
        return self.process.returncode


def ended(value):
    return value["type"] == "agent_end"


def test_a_conversation():
    rpc = Rpc()
    rpc.send(id=1, type="prompt", text="add 2 and 3")
    assert rpc.response(1)["ok"]
    assert rpc.until(ended)["outcome"] == "completed"
    rpc.send(id=2, type="state")
    state = rpc.response(2)["result"]
    assert [m["role"] for m in state["messages"]] == ["user", "assistant", "tool", "assistant"]
    rpc.send(id=3, type="reset")
    assert rpc.response(3)["ok"]
    rpc.send(id=4, type="prompt", text="add 4 and 5")
    rpc.until(ended)
    assert rpc.end() == 0
    check(list(EventReader().read_all(json.dumps(event).encode() for event in rpc.events)))


def test_a_running_run_is_steered_followed_and_aborted():
    with served(chat([*texts("one"), 1.0, *END], [*texts("two"), *END], [*texts("three"), 30.0, *END])) as url:
        rpc = Rpc(*at(url))
        rpc.send(id=1, type="prompt", text="go")
        rpc.until(lambda value: value["type"] == "message_update")
        rpc.send(id=2, type="prompt", text="again")
        assert "AgentBusy" in rpc.response(2)["error"]
        rpc.send(id=3, type="steer", text="hurry")
        rpc.send(id=4, type="follow_up", text="and then?")
        assert rpc.response(4)["ok"]
        rpc.until(lambda value: value["type"] == "message_update" and value["delta"].get("text") == "three")
        rpc.send(id=5, type="abort", reason="enough")
        assert rpc.until(ended)["outcome"] == "aborted"
        assert rpc.end() == 130


ASKING = '''
from rxagent import ToolContext

async def pay(amount: int, ctx: ToolContext) -> str:
    """Pays."""
    return f"paid {amount}" if await ctx.interrupt("Really?") else "not paid"
'''


@pytest.mark.parametrize(
    ("answer", "said"), [(lambda i: {"answers": {i: True}}, "paid 5"), (lambda i: {"cancelled": [i]}, "cancel")]
)
def test_a_question_is_answered(tmp_path, answer, said):
    (tmp_path / "asking.py").write_text(ASKING)
    rpc = Rpc("--tool", str(tmp_path / "asking.py") + ":pay")
    rpc.send(id=1, type="prompt", text="pay 5")
    question = rpc.until(lambda value: value["type"] == "interrupted")["interrupts"][0]
    assert question["question"] == "Really?"
    assert rpc.until(ended)["outcome"] == "interrupted"
    rpc.send(id=2, type="answer", **answer(question["id"]))
    assert rpc.response(2)["ok"]
    assert rpc.until(ended)["outcome"] == "completed"
    assert said in json.dumps(rpc.events)
    assert rpc.end() == 0


def test_an_answer_that_nothing_waits_for_or_that_does_not_fit_is_refused_in_its_response(tmp_path):
    (tmp_path / "asking.py").write_text(ASKING.replace('"Really?"', '"Really?", {"type": "boolean"}'))
    rpc = Rpc("--tool", str(tmp_path / "asking.py") + ":pay")
    rpc.send(id=1, type="answer", answers={})
    assert "NothingToContinue" in rpc.response(1)["error"]
    rpc.send(id=2, type="prompt", text="pay 5")
    asked = rpc.until(lambda value: value["type"] == "interrupted")["interrupts"][0]["id"]
    assert rpc.until(ended)["outcome"] == "interrupted"
    for number, (answers, complaint) in enumerate([({"nobody": True}, "no interrupt 'nobody'"), ({asked: "yes"}, "boolean")], 3):
        rpc.send(id=number, type="answer", answers=answers)
        assert complaint in rpc.response(number)["error"]
    rpc.send(id=9, type="answer", answers={asked: True})
    assert rpc.until(ended)["outcome"] == "completed"
    rpc.send(id=10, type="answer", answers={asked: True})
    assert "settled before" in rpc.response(10)["error"]
    assert rpc.end() == 0


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("no json", "no JSON"),
        ("[]", "dictionary"),
        ('{"id": 7}', "type"),
        ('{"id": 7, "type": "dance"}', "dance"),
        ('{"id": 7, "type": "prompt"}', "text"),
        ('{"id": 7, "type": "prompt", "text": "x", "colour": 1}', "colour"),
        ('{"id": 7, "type": "continue"}', "NothingToContinue"),
        ('{"id": 7, "type": "retry"}', "NothingToContinue"),
    ],
)
def test_a_bad_command_is_refused_and_the_next_one_taken(line, complaint):
    done = called("run", "--mode", "rpc", stdin=f'{line}\n{{"id": 8, "type": "state"}}\n')
    refused, taken = (json.loads(each) for each in done.stdout.splitlines())
    assert refused["ok"] is False
    assert complaint in refused["error"]
    assert (taken["id"], taken["ok"]) == (8, True)
    assert done.returncode == 0


def test_a_session_goes_on(tmp_path):
    store = ["--store", str(tmp_path / "s.db"), "--session", "x"]
    for text in ("one", "two"):
        done = called("run", "--mode", "rpc", *store, stdin=json.dumps({"type": "prompt", "text": text}) + "\n")
        assert done.returncode == 0
    state = called("run", "--mode", "rpc", *store, stdin='{"type": "state"}\n').stdout
    assert [m["role"] for m in json.loads(state)["result"]["messages"]] == ["user", "assistant"] * 2


def test_arguments_that_do_not_fit_are_an_error():
    call = chunk({"tool_calls": [{"index": 0, "id": "c", "function": {"name": "add", "arguments": '{"a":1}'}}]})
    with served(chat([call, chunk({}, "tool_calls"), END[1]], [*texts("sorry"), *END])) as url:
        done = called(
            "run", "--mode", "rpc", *at(url), "--tool", "rxagent.cli.demo_tools:add", stdin='{"type":"prompt","text":"x"}\n'
        )
    assert "b: Field required" in done.stdout
    assert done.returncode == 0
