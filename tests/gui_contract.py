"""The guarantees of a bridge, as checks over a rig: ``python gui_contract.py TOOLKIT`` runs them all and prints JSON.

Each toolkit has a process of its own: several of them can't share one, and one that crashes is a failure by name.
"""

import gc
import json
import sys
import threading
import time
import traceback

import reactivex as rx
from gui_rigs import RIGS
from reactivex import operators as rxops

from rxagent import Agent, ToolContext, tool
from rxagent.bridges import AgentHost, on_loop
from rxagent.bridges.crossing import SHORTEST
from rxagent.errors import LoopGone
from rxagent.events import AgentEnd
from rxagent.flow import Hub, hold, publish
from rxagent.messages import ToolCall
from rxagent.models import ScriptedModel

PERIOD = 0.02


def words(count):
    """An answer of ``count`` deltas."""
    return [f"{n} " for n in range(count)]


class Watched:
    """A host whose frames come into the rig; everything that is seen is kept."""

    def __init__(self, rig, *turns, tools=(), delay=0.0, **settings):
        self.rig = rig
        self.host = AgentHost(Agent(ScriptedModel(turns, delay=delay), tools=tools))
        self.frames, self.ends, self.faults, self.threads, self.times = [], [], [], set(), []
        self.on_frame = lambda frame: None
        self.host.errors.subscribe(self.faults.append)
        frames = self.host.frames(rig.port(), **({"period": PERIOD} | settings))
        self.subscription = frames.subscribe(self.see, self.ends.append, lambda: self.ends.append("completed"))

    def see(self, frame):
        assert not self.ends, "a frame after the end"
        self.threads.add(threading.get_ident())
        self.times.append(time.monotonic())
        self.frames.append(frame)
        self.on_frame(frame)

    @property
    def seqs(self):
        return [event.seq for frame in self.frames for event in frame]

    @property
    def over(self):
        return any(isinstance(event, AgentEnd) for frame in self.frames[-3:] for event in frame)

    def run(self, prompt="go"):
        self.host.prompt(prompt)
        self.rig.run(lambda: self.over)

    def idle(self):
        """Whether the run has ended, asked on this thread."""
        return not self.host.is_running


def every_event_once_in_order_on_the_gui_thread(rig):
    watched = Watched(rig, words(50_000))
    watched.run()
    elapsed = watched.times[-1] - watched.times[0]
    most = elapsed / PERIOD + len(watched.seqs) / SHORTEST + 2
    assert len(watched.frames) <= most, (len(watched.frames), elapsed)
    watched.host.close()
    rig.run(lambda: watched.ends)
    assert watched.seqs == list(range(len(watched.seqs)))
    assert len(watched.seqs) > 50_000
    assert watched.threads == {threading.get_ident()}
    assert watched.frames[-1].final
    assert watched.ends == ["completed"]
    assert watched.faults == []


def frames_are_coalesced_to_the_period(rig):
    watched = Watched(rig, words(400), delay=0.001, period=0.1)
    watched.run()
    elapsed = watched.times[-1] - watched.times[0]
    assert len(watched.frames) <= elapsed / 0.1 + 2, (len(watched.frames), elapsed)
    assert len(watched.seqs) > 400
    watched.host.close()


def the_last_frame_comes_before_an_error(rig):
    source, seen = Hub(), []
    source.pipe(on_loop(rig.port(), period=0.5)).subscribe(seen.append, lambda error: seen.append(error))

    def produce():
        for value in range(10):
            publish(source.on_next, value)
        source.on_error(ValueError("the end"))

    threading.Thread(target=produce).start()
    rig.run(lambda: seen and isinstance(seen[-1], ValueError))
    assert [value for frame in seen[:-1] for value in frame] == list(range(10))
    assert seen[-2].final
    assert seen[-2].error is seen[-1]


def disposing_stops_at_once_and_the_run_goes_on(rig):
    watched = Watched(rig, words(5000), capacity=32)
    watched.on_frame = lambda frame: watched.subscription.dispose()
    watched.host.prompt("go")
    rig.run(watched.idle)
    rig.settle()
    assert len(watched.frames) == 1
    assert watched.ends == []
    assert watched.host.wait(10).outcome == "completed"
    watched.host.close()


def disposing_from_another_thread_lets_a_held_run_go_on(rig):
    watched = Watched(rig, words(5000), capacity=32)
    watched.host.prompt("go")
    wait_until_held(watched)
    thread = threading.Thread(target=watched.subscription.dispose)
    thread.start()
    thread.join(10)
    assert watched.host.wait(10).outcome == "completed"
    rig.settle()
    assert watched.frames == []
    watched.host.close()


def wait_until_held(watched, seconds=10):
    """The GUI does nothing; returns when the run makes no more progress."""
    until = time.monotonic() + seconds
    before = -1
    while time.monotonic() < until:
        time.sleep(0.05)
        now = watched.host.call(lambda: watched.host.agent._session.next_seq)
        if now == before and now > 0:
            return now
        before = now
    raise AssertionError("the run was never held")


def a_window_closed_mid_run_lets_the_run_go_on(rig):
    if not rig.lets_go:
        return
    watched = Watched(rig, words(5000), capacity=32)
    watched.host.prompt("go")
    rig.run(lambda: len(watched.frames) > 1)
    wait_until_held(watched)
    count = len(watched.frames)
    rig.close()
    rig.was_closed = True
    gc.collect()
    assert watched.host.wait(10).outcome == "completed"
    assert len(watched.frames) == count
    assert watched.ends == []
    assert watched.faults == [], watched.faults
    watched.host.close()


def posting_into_a_closed_window_says_so(rig):
    port = rig.port()
    rig.close()
    rig.was_closed = True
    for post in (lambda: port.post(print), lambda: in_thread(lambda: port.post(print))):
        try:
            post()
        except LoopGone:
            continue
        raise AssertionError("post() did not raise LoopGone")


def in_thread(work):
    caught = []

    def run():
        try:
            work()
        except BaseException as error:
            caught.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(10)
    if caught:
        raise caught[0]


def a_callback_that_raises_is_reported_and_the_stream_goes_on(rig):
    watched = Watched(rig, words(2000), capacity=64)

    def broken(frame):
        raise KeyError("broken")

    watched.on_frame = broken
    watched.run()
    assert watched.seqs == list(range(len(watched.seqs)))
    rig.run(lambda: len(watched.faults) == len(watched.frames))
    assert {type(fault.error) for fault in watched.faults} == {KeyError}
    assert all("gui_contract.py" in fault.subscribed_at and not fault.dropped for fault in watched.faults)
    assert watched.host.wait(10).outcome == "completed"
    watched.host.close()


def the_run_is_held_while_the_gui_is_blocked_and_its_loop_beats_on(rig):
    watched = Watched(rig, words(5000), capacity=64)
    beats = []

    def beat():
        beats.append(time.monotonic())
        watched.host.agent_loop.call_later(0.005, beat)

    import asyncio

    def begin():
        watched.host.agent_loop = asyncio.get_running_loop()
        beat()

    watched.host.call(begin)
    watched.host.prompt("go")
    wait_until_held(watched)
    before = len(beats)
    seq = watched.host.call(lambda: watched.host.agent._session.next_seq)
    time.sleep(0.5)
    assert watched.host.call(lambda: watched.host.agent._session.next_seq) == seq
    assert seq <= 64 + 2
    assert len(beats) - before >= 10, "the agent's loop stood still"
    rig.run(lambda: watched.over)
    assert watched.seqs == list(range(len(watched.seqs)))
    assert max(len(frame) for frame in watched.frames) <= 64 + 1
    watched.host.close()


def a_frame_that_is_held_is_the_only_one(rig):
    watched = Watched(rig, words(3000), capacity=64)
    held = []
    watched.on_frame = lambda frame: held.append(hold())
    watched.host.prompt("go")
    rig.run(lambda: held)
    rig.settle(5 * PERIOD)
    assert len(watched.frames) == 1
    watched.on_frame = lambda frame: None
    in_thread(held[0].release)
    rig.run(lambda: watched.over)
    assert watched.seqs == list(range(len(watched.seqs)))
    watched.host.close()


def the_gui_prompts_steers_and_aborts_without_asyncio(rig):
    started = threading.Event()

    @tool
    async def work(ctx: ToolContext) -> str:
        """Works until it is told to stop."""
        started.set()
        await ctx.signal.wait()
        return "stopped"

    watched = Watched(rig, ToolCall("c1", "work", {}), words(10), tools=[work])
    done = []

    def act(frame):
        kinds = {event.type for event in frame}
        if "tool_start" in kinds:
            watched.host.steer("left")
            watched.host.follow_up("later")
            watched.host.abort("enough")
        if "agent_end" in kinds and not done:
            done.append(watched.host.state.steering)
            watched.host.clear_queues()
            watched.host.prompt("again")

    watched.on_frame = act
    watched.host.prompt("go")
    rig.run(lambda: done and watched.idle() and watched.over and watched.frames[-1].state.messages[-1].text == "".join(words(10)))
    assert [message.text for message in done[0]] == ["left"]
    assert [message.text for message in watched.host.state.messages if message.role == "user"] == ["go", "again"]
    assert watched.faults == []
    watched.host.close()


def a_nested_event_loop_gets_no_frame_before_the_outer_one_is_done(rig):
    if rig.nested is None:
        return
    watched = Watched(rig, words(2000), capacity=64)
    inside, overlaps = [], []

    def modal(frame):
        overlaps.extend(inside)
        inside.append(frame)
        if len(watched.frames) <= 2:
            rig.nested(0.1)
        inside.pop()

    watched.on_frame = modal
    watched.run()
    assert overlaps == []
    assert watched.seqs == list(range(len(watched.seqs)))
    watched.host.close()


def several_bridges_share_a_window(rig):
    watched = Watched(rig, words(3000))
    port, second, third = rig.port(), [], []
    watched.host.events.pipe(on_loop(port, period=0.05)).subscribe(second.extend)
    watched.host.events.pipe(on_loop(port), rxops.take(1)).subscribe(third.append)
    watched.run()
    rig.run(lambda: len(second) == len(watched.seqs))
    assert [event.seq for event in second] == watched.seqs
    assert len(third) == 1
    watched.host.close()


def a_host_that_closes_completes_what_is_shown(rig):
    watched = Watched(rig, words(100_000), capacity=32)
    watched.host.prompt("go")
    rig.run(lambda: watched.frames)
    watched.host.close()  # held by this very thread: aborting lets it go
    rig.run(lambda: watched.ends)
    assert watched.over
    assert watched.frames[-1].final
    assert watched.seqs == list(range(len(watched.seqs)))


def a_thread_that_switches_all_the_time_changes_nothing(rig):
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        watched = Watched(rig, words(1500), capacity=16)
        watched.run()
    finally:
        sys.setswitchinterval(before)
    assert watched.seqs == list(range(len(watched.seqs)))
    watched.host.close()


def what_waits_in_a_bridge_that_nobody_refers_to_is_not_lost_to_the_garbage_collector(rig):
    seen, ends = [], []
    for n in range(5):
        rx.of(n, n).pipe(on_loop(rig.port(), period=PERIOD)).subscribe(seen.extend, on_completed=lambda: ends.append(True))
        gc.collect()
    rig.run(lambda: len(ends) == 5)
    assert sorted(seen) == sorted([*range(5), *range(5)])


CHECKS = [
    every_event_once_in_order_on_the_gui_thread,
    frames_are_coalesced_to_the_period,
    the_last_frame_comes_before_an_error,
    disposing_stops_at_once_and_the_run_goes_on,
    disposing_from_another_thread_lets_a_held_run_go_on,
    a_window_closed_mid_run_lets_the_run_go_on,
    posting_into_a_closed_window_says_so,
    a_callback_that_raises_is_reported_and_the_stream_goes_on,
    the_run_is_held_while_the_gui_is_blocked_and_its_loop_beats_on,
    a_frame_that_is_held_is_the_only_one,
    the_gui_prompts_steers_and_aborts_without_asyncio,
    a_nested_event_loop_gets_no_frame_before_the_outer_one_is_done,
    several_bridges_share_a_window,
    a_host_that_closes_completes_what_is_shown,
    a_thread_that_switches_all_the_time_changes_nothing,
    what_waits_in_a_bridge_that_nobody_refers_to_is_not_lost_to_the_garbage_collector,
]


def check(make, function):
    """The traceback of a check that failed, or None."""
    rig = make()
    try:
        function(rig)
    except BaseException:
        return traceback.format_exc()
    finally:
        if not getattr(rig, "was_closed", False):
            rig.close()
    return None


def main(toolkit, *names):
    """Runs the checks (all of them) and writes each one's outcome as a line of JSON."""
    for function in CHECKS:
        if not names or function.__name__ in names:
            started = time.monotonic()
            failure = check(RIGS[toolkit], function)
            line = {"check": function.__name__, "failure": failure, "seconds": round(time.monotonic() - started, 2)}
            print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
