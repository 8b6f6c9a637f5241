"""`rxagent run` against servers: what they say is on stdout, what goes wrong is one message and an exit code."""

import json
import warnings

import pytest
import shared_cases as shared
from cli_harness import END, at, chat, chunk, rxagent, served, started, texts

pytestmark = pytest.mark.filterwarnings("ignore")
CALL = chunk({"tool_calls": [{"index": 0, "id": "c1", "function": {"name": "add", "arguments": '{"a": 2'}}]})
MORE = chunk({"tool_calls": [{"index": 0, "function": {"arguments": ', "b": 3}'}}]})


@pytest.fixture(scope="module")
def cases():
    shared.require_cases()
    with served(shared.module("serve").make_app(max_stall=5.0)) as url:
        yield lambda case: ["--model", "test", "--base-url", f"{url}/case/{case}/v1", "--retries", "0"]


CASES = [
    ("oc-baseline-text", 0, None),
    ("oc-sse-crlf-split", 0, None),
    ("oc-sse-utf8-split", 0, None),
    ("oc-reasoning-content", 0, None),
    ("oc-http-429-seconds", 1, "rate_limit"),
    ("oc-http-overflow-1", 1, "context_overflow"),
    ("oc-mid-error-object", 1, None),
    ("oc-reset-mid", 1, "transport"),
    ("oc-trunc-tool", 1, "protocol"),
]


@pytest.mark.parametrize(("case", "code", "kind"), CASES)
def test_what_real_servers_sent(cases, case, code, kind):
    done = rxagent("run", "hi", *cases(case))
    expected = shared.all_cases()[case]["expect"].get("text") or ""
    assert done.returncode == code
    assert done.stdout.rstrip("\n") == expected.rstrip("\n")
    if code:
        assert done.stderr.count("rxagent:") == 1
        assert f"rxagent: {kind or ''}" in done.stderr
        assert "Traceback" not in done.stderr
    assert "→" not in done.stderr  # no call of a broken stream is run


@pytest.mark.parametrize(
    ("answer", "kind", "kept"),
    [
        ([429, "slow down"], "rate_limit", ""),
        ([401, "who are you"], "auth", ""),
        ([*texts("half ", "an answer"), "reset"], "transport", "half an answer\n"),
        ([*texts("half ", "an answer"), "cut"], "transport|protocol", "half an answer\n"),
        ([*texts("half ", "an answer")], "protocol", "half an answer\n"),
        ([*texts("let me "), CALL, "reset"], "transport", "let me \n"),
    ],
)
def test_a_fault_is_one_message_and_keeps_the_text(answer, kind, kept):
    with served(chat(answer)) as url:
        done = rxagent("run", "hi", *at(url), "--retries", "0")
    assert done.returncode == 1
    assert done.stdout == kept
    assert any(f"rxagent: {each}: " in done.stderr for each in kind.split("|"))
    assert done.stderr.count("rxagent:") == 1


def test_a_streamed_call_is_run_and_answered():
    with served(chat([CALL, MORE, chunk({}, "tool_calls"), END[1]], [*texts("It is ", "5."), *END])) as url:
        done = rxagent("run", "hi", *at(url), "--tool", "rxagent.cli.demo_tools:add")
    assert (done.returncode, done.stdout) == (0, "It is 5.\n")
    assert "→ add(a=2, b=3)" in done.stderr
    assert "← add: 5" in done.stderr


THOUSAND = [f"w{n} " for n in range(1_000)]


@pytest.mark.parametrize("mode", [[], ["--no-stream"]])
def test_an_answer_that_starts_again_with_the_same_words_is_shown_once(mode):
    good = [*texts(*THOUSAND, "the end"), *END]
    whole = json.dumps({"choices": [{"message": {"content": "".join(THOUSAND) + "the end"}, "finish_reason": "stop"}]}).encode()
    answers = [[500, "oops"], [whole]] if mode else [[*texts(*THOUSAND), "reset"], good]
    with served(chat(*answers)) as url:
        done = rxagent("run", "hi", *at(url), *mode)
    assert done.returncode == 0
    assert done.stdout == "".join(THOUSAND) + "the end\n"
    assert "↻" in done.stderr


def test_where_the_second_answer_differs_the_first_is_marked_as_void():
    with served(chat([*texts(*THOUSAND), "reset"], [*texts("w0 w1 ", "and now for ", "something else"), *END])) as url:
        done = rxagent("run", "hi", *at(url))
    void, marked, answer = done.stdout.partition("[withdrawn; the answer starts again]\n")
    assert void == "".join(THOUSAND) + "\n"
    assert marked
    assert answer == "w0 w1 and now for something else\n"


def test_an_attempt_that_fails_before_the_words_of_the_first_leaves_them():
    with served(chat([*texts("one ", "two"), "reset"], [503, "gone"])) as url:
        done = rxagent("run", "hi", *at(url), "--retries", "1")
    assert (done.returncode, done.stdout) == (1, "one two\n")


def test_text_is_shown_as_it_comes():
    with served(chat([*texts("first"), 30.0, *END])) as url:
        process = started("run", "hi", *at(url))
        try:
            assert process.stdout.read(5) == b"first"
        finally:
            process.kill()
            process.communicate()


def test_a_reader_that_leaves_ends_the_run_quietly():
    with served(chat([*[step for n in range(200) for step in (chunk({"content": f"{n}\n"}), 0.05)], *END])) as url:
        process = started("run", "hi", *at(url))
        process.stdout.readline()
        process.stdout.close()
        process.stdin.close()
        err = process.stderr.read().decode()
        process.stderr.close()
        assert process.wait(timeout=10) == 130
    assert "Traceback" not in err
    assert "BrokenPipe" not in err


@pytest.fixture(scope="module")
def llmock():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        testing = pytest.importorskip("llmock.testing")
        with testing.LLMockServer() as server:
            yield server


def test_a_mock_of_openai_with_a_streamed_tool_call(llmock):
    from llmock.scenarios import Reply, ToolCall

    llmock.state.reset()
    llmock.state.scenarios.add(Reply(text="Let me add.", tool_calls=(ToolCall("add", {"a": 2, "b": 3}),)))
    llmock.state.scenarios.add(Reply(text="It is five."))
    url = llmock.base_url("openai")
    done = rxagent(
        "run", "hi", "--model", "openai:gpt-4o", "--base-url", url, "--api-key", "k", "--tool", "rxagent.cli.demo_tools:add"
    )
    assert (done.returncode, done.stdout) == (0, "Let me add.\nIt is five.\n")
    assert "← add: 5" in done.stderr


@pytest.mark.parametrize("fault", ["disconnect", "truncate"])
def test_a_mock_of_openai_that_breaks_off(llmock, fault):
    from llmock.scenarios import StreamFault

    llmock.state.reset()
    llmock.state.scenarios.add(StreamFault(fault, after_chunks=3))
    url = llmock.base_url("openai")
    done = rxagent("run", "hi", "--model", "openai:gpt-4o", "--base-url", url, "--api-key", "k", "--retries", "0")
    assert done.returncode == 1
    assert done.stdout.strip()
    assert "rxagent: transport: " in done.stderr or "rxagent: protocol: " in done.stderr
