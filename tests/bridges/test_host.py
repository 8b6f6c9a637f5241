"""`AgentHost`: the agent's calls from any thread, and what is left when it closes."""

import asyncio
import subprocess
import sys
import threading

import pytest

from rxagent import Agent, ToolContext, tool
from rxagent.bridges import AgentHost, AsyncioPort, on_asyncio
from rxagent.bridges import host as host_module
from rxagent.errors import AgentBusy, InvalidMessage, NothingToContinue, UsageError, WouldDeadlock
from rxagent.events import AgentEnd, AgentStart, MessageEnd
from rxagent.messages import ToolCall
from rxagent.models import ScriptedModel
from rxagent.operators import text_deltas

WAIT = 20


def test_a_prompt_from_a_thread_without_a_loop():
    with AgentHost(Agent(ScriptedModel(["hello there", "again"]))) as host:
        run = host.prompt("hi")
        result = host.wait(WAIT)
        assert (result.outcome, result.text) == ("completed", "hello there")
        assert run.outcome == "completed"
        host.prompt("once more")
        assert host.wait(WAIT).text == "again"
        assert [message.role for message in host.state.messages] == ["user", "assistant", "user", "assistant"]


def test_what_is_wrong_is_raised_where_it_was_asked_for():
    with AgentHost(Agent(ScriptedModel([]))) as host:
        with pytest.raises(InvalidMessage):
            host.prompt(7)
        with pytest.raises(InvalidMessage):
            host.steer(object())
        with pytest.raises(NothingToContinue):
            host.continue_()
        with pytest.raises(NothingToContinue):
            host.retry()


def test_subscribers_hear_of_everything_from_then_on_and_of_the_end():
    seen, states, ends = [], [], []
    with AgentHost(Agent(ScriptedModel(["hello"]))) as host:
        host.events.subscribe(seen.append, ends.append, lambda: ends.append("events"))
        host.states.subscribe(states.append, ends.append, lambda: ends.append("states"))
        host.prompt("hi")
        host.wait(WAIT)
    assert [event.seq for event in seen] == list(range(len(seen)))
    assert isinstance(seen[-1], AgentEnd)
    assert states[0].messages == ()
    assert states[-1] is host.state
    assert ends == ["events", "states"]


def test_operators_go_between():
    text = []
    with AgentHost(Agent(ScriptedModel(["hello there"]))) as host:
        host.events.pipe(text_deltas()).subscribe(text.append)
        host.prompt("hi")
        host.wait(WAIT)
    assert "".join(text) == "hello there"


class Blocking:
    """A tool that stands where it is until let go; as a thread's test of "while it runs"."""

    def __init__(self):
        self.running, self.go = threading.Event(), threading.Event()

        @tool
        async def work(ctx: ToolContext) -> str:
            """Works."""
            self.running.set()
            while not self.go.is_set() and not ctx.signal.cancelled:
                await asyncio.sleep(0.005)
            return "done"

        self.tool = work
        self.model = ScriptedModel([ToolCall("c1", "work", {}), "first", "second", "third"])
        self.agent = Agent(self.model, tools=[work])

    def wait(self):
        assert self.running.wait(WAIT)


def test_steering_follow_ups_and_a_second_prompt_while_it_works():
    work = Blocking()
    with AgentHost(work.agent) as host:
        host.prompt("start")
        work.wait()
        with pytest.raises(AgentBusy):
            host.prompt("too early")
        host.steer("turn left")
        host.follow_up("and then home")
        work.go.set()
        assert host.wait(WAIT).text == "second"
        texts = [message.text for message in host.state.messages if message.role == "user"]
        assert texts == ["start", "turn left", "and then home"]


def test_queued_messages_can_be_taken_back():
    work = Blocking()
    with AgentHost(work.agent) as host:
        host.prompt("start")
        work.wait()
        host.steer("a")
        host.follow_up("b")
        assert [message.text for message in host.clear_queues()] == ["a", "b"]
        work.go.set()
        host.wait(WAIT)
        assert len(work.model.requests) == 2


def test_abort_then_retry():
    work = Blocking()
    with AgentHost(work.agent) as host:
        host.prompt("start")
        work.wait()
        host.abort("enough")
        assert host.wait(WAIT).outcome == "aborted"
        assert not host.is_running
        host.retry()
        assert host.wait(WAIT).text == "first"


def test_abort_right_after_a_prompt_reaches_it():
    with AgentHost(Agent(ScriptedModel(["x " * 500], delay=0.01))) as host:
        host.prompt("start")
        host.abort()
        assert host.wait(WAIT).outcome == "aborted"
        host.abort()


def test_reset_and_any_other_call():
    with AgentHost(Agent(ScriptedModel(["hello"]))) as host:
        host.prompt("hi")
        host.wait(WAIT)
        host.reset()
        assert host.state.messages == ()
        assert host.call(threading.get_ident) != threading.get_ident()
        with pytest.raises(ZeroDivisionError):
            host.call(lambda: 1 // 0)


def test_wait_that_can_not_end_says_so():
    with AgentHost(Agent(ScriptedModel(["hello"]))) as host:
        with pytest.raises(WouldDeadlock):
            host.call(lambda: host.wait(WAIT))
        assert host.wait(WAIT) is None


def test_wait_gives_up_after_its_timeout():
    work = Blocking()
    with AgentHost(work.agent) as host:
        host.prompt("start")
        work.wait()
        with pytest.raises(TimeoutError):
            host.wait(0.01)
        work.go.set()
        assert host.wait(WAIT).text == "first"


def test_listeners_may_call_back_from_the_hosts_own_thread():
    work = Blocking()
    with AgentHost(work.agent) as host:

        def listen(event):
            if isinstance(event, AgentStart):
                host.steer("from a listener")
            elif isinstance(event, MessageEnd) and event.message.role == "assistant" and event.message.text == "first":
                host.abort("heard enough")

        host.events.subscribe(listen)
        work.go.set()
        host.prompt("start")
        assert host.wait(WAIT).outcome == "aborted"


def test_closing_mid_run_aborts_completes_and_ends_the_thread():
    work, seen, ends = Blocking(), [], []
    host = AgentHost(work.agent)
    host.events.subscribe(seen.append, ends.append, lambda: ends.append("end"))
    run = host.prompt("start")
    work.wait()
    host.close()
    assert run.outcome == "aborted"
    assert isinstance(seen[-1], AgentEnd)
    assert ends == ["end"]
    assert not [thread for thread in threading.enumerate() if "rxagent host" in thread.name]
    host.close()
    host.abort()
    assert host.wait(WAIT) is None


def test_a_closed_host_says_so():
    host = AgentHost(Agent(ScriptedModel(["hello"])))
    host.close()
    for call in (lambda: host.prompt("x"), lambda: host.steer("x"), host.clear_queues):
        with pytest.raises(UsageError, match="closed"):
            call()
    ends = []
    host.events.subscribe(on_completed=lambda: ends.append("end"))
    assert ends == ["end"]


def test_closing_from_its_own_thread_does_not_wait_for_itself():
    host = AgentHost(Agent(ScriptedModel(["hello"])))
    ended = threading.Event()
    host.events.subscribe(on_completed=ended.set)
    host.call(host.close)
    assert ended.wait(WAIT)


def test_a_tool_that_can_not_be_stopped_does_not_keep_the_host_from_closing():
    entered, go = threading.Event(), threading.Event()

    @tool
    def stubborn() -> str:
        """Never looks up."""
        entered.set()
        go.wait(WAIT)
        return "late"

    host = AgentHost(Agent(ScriptedModel([ToolCall("c", "stubborn", {}), "x"]), tools=[stubborn]))
    host.errors.subscribe(lambda fault: None)
    host.prompt("start")
    assert entered.wait(WAIT)
    host.close(timeout=0.05)
    assert not [thread for thread in threading.enumerate() if "rxagent host" in thread.name]
    go.set()


def test_unsubscribing_before_the_subscription_has_reached_the_thread():
    seen = []
    with AgentHost(Agent(ScriptedModel(["hello"]))) as host:
        host.events.subscribe(seen.append).dispose()
        host.prompt("hi")
        host.wait(WAIT)
    assert seen == []


def test_frames_carry_the_state_after_their_last_event():
    async def main():
        frames, ended = [], asyncio.Event()
        host = AgentHost(Agent(ScriptedModel(["hello there, " * 300])))
        host.frames(AsyncioPort()).subscribe(frames.append, print, ended.set)
        host.prompt("hi")
        await asyncio.to_thread(host.wait, WAIT)
        host.close()
        await asyncio.wait_for(ended.wait(), WAIT)
        return frames

    frames = asyncio.run(main())
    events = [event for frame in frames for event in frame]
    assert [event.seq for event in events] == list(range(len(events)))
    for frame in frames[:-1]:
        last = frame[-1]
        if last.type == "message_update":
            assert frame.state.streaming_message is last.message
    assert frames[-1].final
    assert [frame for frame in frames if len(frame)][-1].state.is_streaming is False


def test_the_last_frame_of_a_host_that_closes_has_the_state_too():
    async def main():
        frames, ended = [], asyncio.Event()
        host = AgentHost(Agent(ScriptedModel(["hello"]), system_prompt="be kind"))
        host.frames(AsyncioPort()).subscribe(frames.append, print, ended.set)
        await asyncio.to_thread(host.close)
        await asyncio.wait_for(ended.wait(), WAIT)
        return frames

    (frame,) = asyncio.run(main())
    assert frame.final
    assert frame.state.system_prompt == "be kind"


def test_an_observer_that_raises_is_reported_with_its_own_place():
    faults = []

    def broken(event):
        raise KeyError(event.type)

    with AgentHost(Agent(ScriptedModel(["hello"]))) as host:
        host.errors.subscribe(faults.append)
        host.events.subscribe(broken)
        host.states.subscribe(broken)
        host.prompt("hi")
        assert host.wait(WAIT).outcome == "completed"
    assert len(faults) == 2
    assert all("test_host.py" in fault.subscribed_at and fault.dropped for fault in faults)


@pytest.mark.parametrize("error", [asyncio.CancelledError(), SystemExit(3), TimeoutError("own"), KeyError("x")])
def test_whatever_a_call_raises_comes_out_of_it_and_the_host_goes_on(error):
    def fail():
        raise error

    with AgentHost(Agent(ScriptedModel(["hello"]))) as host:
        with pytest.raises(type(error)) as caught:
            host.call(fail)
        assert caught.value is error
        host.prompt("hi")
        assert host.wait(WAIT).text == "hello"


def test_an_observer_that_raises_at_the_end_keeps_it_from_nobody(capsys):
    ends = []

    def broken():
        raise KeyError("at the end")

    host = AgentHost(Agent(ScriptedModel(["hello"])))
    host.events.subscribe(on_completed=broken)
    host.events.subscribe(on_completed=lambda: ends.append("events"))
    host.states.subscribe(on_completed=lambda: ends.append("states"))
    host.close()
    assert ends == ["events", "states"]
    report = capsys.readouterr().err
    assert "at the end" in report
    assert "test_host.py" in report


def test_a_gui_callback_on_states_that_raises_is_told_to_who_listens_for_errors(capsys):
    faults = []

    def broken(frame):
        if frame.state is not None and frame.state.messages:
            raise KeyError("draw")

    async def main():
        with AgentHost(Agent(ScriptedModel(["hello"]))) as host:
            host.errors.subscribe(faults.append)
            host.states.pipe(on_asyncio()).subscribe(broken)
            host.prompt("hi")
            while not faults:
                await asyncio.sleep(0.01)

    asyncio.run(asyncio.wait_for(main(), WAIT))
    assert {type(fault.error) for fault in faults} == {KeyError}
    assert "draw" not in capsys.readouterr().err


def test_a_loop_that_is_blocked_is_told_of(monkeypatch):
    monkeypatch.setattr(host_module, "PATIENCE", 0.05)
    go = threading.Event()
    with AgentHost(Agent(ScriptedModel(["hello"]))) as host:
        host._post(lambda: go.wait(WAIT))
        with pytest.raises(TimeoutError, match="blocked"):
            host.prompt("hi")
        go.set()
        assert host.wait(WAIT) is None, "and it isn't done later"


def test_a_call_that_takes_long_itself_is_waited_for(monkeypatch):
    monkeypatch.setattr(host_module, "PATIENCE", 0.05)

    def late():
        raise TimeoutError("my own")

    with AgentHost(Agent(ScriptedModel(["hello"]))) as host:
        assert host.call(lambda: threading.Event().wait(0.15)) is False
        with pytest.raises(TimeoutError, match="my own"):
            host.call(late)


def test_a_script_that_ends_without_closing_ends():
    script = """
from rxagent import Agent
from rxagent.bridges import AgentHost
from rxagent.models import ScriptedModel
host = AgentHost(Agent(ScriptedModel(["x " * 5000], delay=0.01)))
host.events.subscribe(lambda event: print(event.type, flush=True) if event.type == "agent_end" else None)
host.prompt("hi")
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "agent_end", "")
