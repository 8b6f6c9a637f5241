"""Whole agent runs against `llmock`, which speaks all four protocols and breaks on demand."""

import asyncio
import warnings

import pytest

from rxagent import Agent, Limits, Retry, tool
from rxagent import events as ev
from rxagent.models import resolve

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    testing = pytest.importorskip("llmock.testing")
    from llmock.scenarios import Fail, Reply, StreamFault, ToolCall, ToolFault

SURFACES = {
    "openai": ("openai:gpt-4o", "openai"),
    "openai-responses": ("openai-responses:gpt-4o", "openai"),
    "anthropic": ("anthropic:claude-sonnet-4-5", "anthropic"),
    "gemini": ("gemini:gemini-2.5-flash", "gemini"),
}
pytestmark = pytest.mark.filterwarnings("ignore")  # the server's own, from its framework


@pytest.fixture(scope="module")
def server():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with testing.LLMockServer() as running:
            yield running


@pytest.fixture(params=SURFACES)
def play(request, server):
    """Runs an agent with one tool against a script of behaviours; gives its result, its events and the tool's calls."""
    name, provider = SURFACES[request.param]
    server.state.reset()

    def run(*script, **limits):
        calls = []

        @tool
        def add(a: int, b: int) -> int:
            """Adds two numbers."""
            calls.append((a, b))
            return a + b

        for behavior in script:
            server.state.scenarios.add(behavior)
        model = resolve(name, base_url=server.base_url(provider), api_key="test")

        async def go():
            agent = Agent(model, tools=[add], retry=Retry(attempts=3, base_delay=0.01), limits=Limits(**limits))
            seen = []
            agent.subscribe(lambda event: seen.append(event))
            result = await agent.prompt("add 2 and 3")
            await model.aclose()
            return result, seen

        result, seen = asyncio.run(go())
        return result, seen, calls

    return run


CALL = Reply(text="Let me add.", tool_calls=(ToolCall("add", {"a": 2, "b": 3}),))
DONE = Reply(text="It is five.")


def test_a_call_is_run_and_its_result_answered(play):
    result, seen, calls = play(CALL, DONE)
    assert (result.outcome, result.text, calls) == ("completed", "It is five.", [(2, 3)])
    assert [m.role for m in result.messages] == ["user", "assistant", "tool", "assistant"]
    assert sum(isinstance(e, ev.MessageUpdate) for e in seen) > 3
    assert result.usage.input > 0
    assert result.usage.output > 0


def test_two_calls_in_one_answer(play):
    both = Reply(tool_calls=(ToolCall("add", {"a": 1, "b": 1}), ToolCall("add", {"a": 2, "b": 2})))
    result, _, calls = play(both, DONE)
    assert (result.outcome, sorted(calls)) == ("completed", [(1, 1), (2, 2)])


def test_a_rate_limit_is_waited_for(play):
    result, seen, calls = play(Fail(429, retry_after=0.01), CALL, DONE)
    assert (result.outcome, calls) == ("completed", [(2, 3)])
    assert [e.error.kind for e in seen if isinstance(e, ev.ModelRetry)] == ["rate_limit"]


@pytest.mark.parametrize(("status", "kind"), [(500, "server"), (503, "overloaded")])
def test_a_failing_server_is_asked_again(play, status, kind):
    result, seen, _ = play(Fail(status), CALL, DONE)
    assert result.outcome == "completed"
    assert [e.error.kind for e in seen if isinstance(e, ev.ModelRetry)] == [kind]


@pytest.mark.parametrize(("status", "kind"), [(401, "auth"), (400, "invalid_request")])
def test_a_refused_request_is_not_repeated(play, status, kind):
    result, seen, calls = play(Fail(status))
    assert (result.outcome, calls) == ("failed", [])
    assert not [e for e in seen if isinstance(e, ev.ModelRetry)]


@pytest.mark.parametrize("fault", ["disconnect", "truncate", "malformed"])
def test_a_broken_stream_is_withdrawn_and_asked_for_again(play, fault):
    result, seen, calls = play(CALL, StreamFault(fault, after_chunks=0), DONE, Reply(text="Four."))
    retries = [e for e in seen if isinstance(e, ev.ModelRetry)]
    assert result.outcome == "completed"
    assert len(retries) == 1
    assert retries[0].error.kind in ("transport", "protocol")
    assert len(calls) <= 1
    assert all(m.stop_reason not in ("error", "aborted") for m in result.messages if m.role == "assistant")


@pytest.mark.parametrize("fault", ["disconnect", "truncate"])
def test_no_call_of_a_broken_stream_is_run(play, fault):
    result, _, calls = play(*[CALL] * 3, *[StreamFault(fault, after_chunks=0)] * 3)
    assert (result.outcome, calls) == ("failed", [])


def test_a_stalled_stream_is_given_up(play):
    stall = StreamFault("stall", after_chunks=0, stall_seconds=1.0)
    result, seen, _ = play(Reply(text="Some words."), stall, DONE, idle_timeout=0.2, first_event_timeout=0.2)
    assert result.outcome == "completed"
    assert [e.error.kind for e in seen if isinstance(e, ev.ModelRetry)] == ["timeout"]


def test_a_tool_that_was_never_offered_is_answered_with_an_error(play):
    result, _, calls = play(ToolFault("unknown_tool"), DONE)
    assert result.outcome == "completed"
    assert calls == []
    assert [m.is_error for m in result.messages if m.role == "tool"] == [True]


def test_arguments_that_are_no_json_are_answered_with_an_error(play):
    result, _, calls = play(ToolFault("malformed_arguments"), DONE)
    assert result.outcome == "completed"
    results = [m.is_error for m in result.messages if m.role == "tool"]
    assert results == [True] or (calls == [] and results == [])


def test_the_servers_own_model_ends_the_loop_when_it_has_its_result(play):
    result, _, calls = play()
    assert result.outcome == "completed"
    assert len(calls) == 1
    assert result.text
