"""The toolkit-neutral core, the test being the GUI: order, pace, bounds, ends, faults."""

import asyncio
import threading
from time import monotonic as real_clock
from time import sleep as real_sleep
from types import SimpleNamespace

import pytest
import reactivex as rx
from gui_ports import FakePort, PlainPort
from hypothesis import given
from hypothesis import strategies as st
from reactivex.subject import Subject

from rxagent.bridges import AsyncioPort, Frame, on_loop
from rxagent.bridges import crossing as core
from rxagent.errors import UsageError
from rxagent.flow import Hub, emit, hold, publish

PERIOD = 0.25


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    """Delivering takes no time, unless the test lets it pass."""
    now = [0.0]
    monkeypatch.setattr(core, "time", SimpleNamespace(monotonic=lambda: now[0]))
    return now


class Gui:
    def __init__(self, port=None, **settings):
        self.port = port or FakePort()
        self.faults = []
        self.source = Hub(self.faults.append)
        self.frames, self.ends = [], []
        self.on_frame = lambda frame: None
        bridge = on_loop(self.port, **({"period": PERIOD} | settings))
        self.subscription = self.source.pipe(bridge).subscribe(self.see, self.ends.append, lambda: self.ends.append(None))

    def see(self, frame):
        assert self.port.is_current()
        assert not self.ends
        self.frames.append(frame)
        self.on_frame(frame)

    def send(self, *values):
        return [publish(self.source.on_next, value) for value in values]

    def emit(self, values):
        """Sends until one is held; returns what is left."""
        left = list(values)
        while left:
            pending = self.send(left.pop(0))[0]
            if pending is not None and pending.held:
                return left, pending
        return left, None

    @property
    def values(self):
        return [value for frame in self.frames for value in frame]


def test_the_first_value_comes_at_once_and_the_rest_a_period_later():
    gui = Gui()
    gui.send("a")
    gui.port.run()
    assert gui.values == ["a"]
    gui.send("b", "c")
    gui.port.advance(PERIOD * 0.9)
    assert gui.values == ["a"]
    gui.port.advance(PERIOD * 0.2)
    assert [list(frame) for frame in gui.frames] == [["a"], ["b", "c"]]


def test_a_burst_wakes_the_gui_once():
    gui = Gui()
    gui.send(*range(1000))
    assert gui.port.posts == 1
    gui.port.run()
    assert [len(frame) for frame in gui.frames] == [1000]
    gui.send(*range(1000))
    assert gui.port.posts == 1, "the tick that is set anyway takes these"


def test_no_timer_is_left_when_nothing_comes_any_more():
    gui = Gui()
    gui.send(1)
    gui.port.advance(10 * PERIOD)
    assert not gui.port.timers
    assert not gui.port.posted
    gui.send(2)
    gui.port.advance(0)
    assert gui.values == [1, 2], "and the next value wakes it again"


def test_the_end_comes_after_a_last_frame_that_says_so():
    gui = Gui()
    gui.send("a")
    gui.port.run()
    gui.send("b")
    gui.source.on_completed()
    gui.port.advance(PERIOD)
    assert [(frame.events, frame.final) for frame in gui.frames] == [(("a",), False), (("b",), True)]
    assert gui.ends == [None]
    assert not gui.port.timers


def test_an_error_comes_after_what_came_before_it():
    gui = Gui()
    error = ValueError("no")
    gui.send("a")
    gui.source.on_error(error)
    gui.port.advance(PERIOD)
    assert gui.values == ["a"]
    assert gui.frames[-1].final
    assert gui.frames[-1].error is error
    assert gui.ends == [error]


def test_a_stream_that_ends_with_nothing_more_to_say_has_a_last_frame_without_values():
    gui = Gui()
    gui.source.on_completed()
    gui.port.run()
    assert [(frame.events, frame.final, frame.first_seq) for frame in gui.frames] == [((), True, None)]
    assert gui.ends == [None]


def test_a_source_that_ended_before_is_no_different():
    port, seen = FakePort(), []
    rx.of(1, 2, 3).pipe(on_loop(port)).subscribe(seen.append, seen.append, lambda: seen.append("end"))
    port.advance(1)
    assert [seen[0].events, seen[0].final, seen[1]] == [(1, 2, 3), True, "end"]


def test_frames_are_numbered_by_seq_or_else_by_position():
    class Numbered:
        def __init__(self, seq):
            self.seq = seq

    gui = Gui()
    gui.send("a", "b")
    gui.port.advance(PERIOD)
    gui.send("c")
    gui.port.advance(PERIOD)
    gui.send(Numbered(40), Numbered(41))
    gui.port.advance(PERIOD)
    assert [(frame.first_seq, frame.last_seq) for frame in gui.frames] == [(0, 1), (2, 2), (40, 41)]


def test_a_full_queue_holds_the_source_until_half_is_gone():
    gui = Gui(capacity=4)
    left, pending = gui.emit(range(100))
    assert len(left) == 96
    assert pending.held
    gui.port.run()
    assert not pending.held
    assert gui.values == [0, 1, 2, 3]


def test_a_full_queue_brings_the_next_frame_forward():
    gui = Gui(capacity=4)
    gui.send("a")
    gui.port.run()
    left, pending = gui.emit("bcdef")
    assert (left, pending.held) == (["f"], True)
    gui.port.run()
    assert gui.values == list("abcde"), "no time has passed"
    assert not pending.held


def test_a_source_that_can_not_wait_loses_nothing():
    port, seen = FakePort(), []
    subject = Subject()
    subject.pipe(on_loop(port, capacity=3)).subscribe(seen.extend)
    for value in range(50):
        subject.on_next(value)
    port.advance(100)
    assert seen == list(range(50))


def test_no_frame_comes_while_the_gui_holds_one():
    gui = Gui(capacity=4)
    releases = []
    gui.on_frame = lambda frame: releases.append(hold())
    gui.send("a")
    gui.port.run()
    left, pending = gui.emit("bcdefgh")
    assert pending.held
    gui.port.advance(10 * PERIOD)
    assert gui.values == ["a"]
    assert pending.held
    releases.pop().release()
    gui.port.run()
    assert gui.values == ["a", "b", "c", "d", "e"]
    assert left == ["f", "g", "h"]


def test_completion_waits_for_a_last_frame_that_is_held():
    gui = Gui()
    releases = []
    gui.on_frame = lambda frame: releases.append(hold())
    gui.send("a")
    gui.source.on_completed()
    gui.port.advance(PERIOD)
    assert gui.frames[-1].final
    assert gui.ends == []
    releases.pop().release()
    gui.port.run()
    assert gui.ends == [None]


def test_a_callback_that_raises_is_reported_and_gets_the_next_frame():
    gui = Gui()

    def broken(frame):
        raise KeyError(frame[0])

    gui.on_frame = broken
    gui.send("a")
    gui.port.advance(PERIOD)
    gui.send("b")
    gui.source.on_completed()
    gui.port.advance(PERIOD)
    assert gui.values == ["a", "b"]
    assert gui.ends == [None]
    assert [type(fault.error) for fault in gui.faults] == [KeyError, KeyError]
    assert "test_on_loop.py" in gui.faults[0].subscribed_at
    assert not gui.faults[0].dropped


def test_disposing_stops_at_once_and_lets_the_source_go_on():
    gui = Gui(capacity=2)
    _, pending = gui.emit("abc")
    gui.subscription.dispose()
    assert not pending.held
    gui.port.advance(10)
    assert gui.values == []
    assert not gui.source.observed


def test_disposing_from_within_a_frame_is_the_last_one():
    gui = Gui()
    gui.on_frame = lambda frame: gui.subscription.dispose()
    gui.send("a", "b")
    gui.port.run()
    gui.send("c")
    gui.port.advance(10)
    assert gui.values == ["a", "b"]
    assert not gui.port.timers
    assert gui.ends == []


@pytest.mark.parametrize("port", [FakePort, PlainPort])
@pytest.mark.parametrize("when", ["posted", "timer"])
def test_a_closed_window_lets_a_held_source_go_on(port, when):
    gui = Gui(port(), capacity=2)
    if when == "timer":
        gui.send("x")
        gui.port.run()
    _, pending = gui.emit("abc")
    assert pending.held
    gui.port.close()
    assert not pending.held
    assert not gui.source.observed
    gui.send("d")
    assert gui.faults == []


def test_a_window_that_is_gone_when_the_next_value_comes_is_no_fault():
    gui = Gui(PlainPort())
    gui.port.close()
    gui.send("a")
    assert not gui.source.observed
    assert gui.faults == []


def test_a_port_that_breaks_is_reported_and_does_not_reach_the_source():
    gui = Gui()

    def broken(fn):
        raise OSError("no such display")

    gui.port.post = broken
    gui.send("a")
    assert [type(fault.error) for fault in gui.faults] == [OSError]
    assert not gui.source.observed


def test_a_port_that_calls_back_on_another_thread_is_told():
    gui = Gui()
    gui.port.is_current = lambda: False
    gui.send("a")
    gui.port.run()
    assert gui.frames == []
    assert "GUI thread" in str(gui.faults[0].error)


def test_a_window_closed_from_within_a_frame_ends_the_bridge():
    gui = Gui(PlainPort())

    def close(frame):
        gui.port.close()
        gui.port.later = lambda seconds, fn: (_ for _ in ()).throw(RuntimeError("destroyed"))

    gui.on_frame = close
    gui.send("a")
    gui.port.run()
    assert not gui.source.observed


def test_values_sent_from_within_a_frame_come_in_a_later_one():
    gui = Gui()
    gui.on_frame = lambda frame: gui.send(frame[0] + 1) if frame[0] < 3 else None
    gui.send(0)
    gui.port.advance(10)
    assert [list(frame) for frame in gui.frames] == [[0], [1], [2], [3]]


def test_a_nested_event_loop_within_a_frame_gets_no_frame():
    gui = Gui(capacity=2)

    def modal(frame):
        if len(gui.frames) == 1:
            gui.emit("bcd")
            gui.port.advance(10 * PERIOD)
            assert len(gui.frames) == 1

    gui.on_frame = modal
    gui.send("a")
    gui.port.run()
    gui.port.advance(10)
    assert gui.values == ["a", "b", "c"]


def test_a_gui_that_needs_long_for_its_frames_gets_as_much_time_for_itself(clock):
    gui = Gui()
    gui.on_frame = lambda frame: clock.__setitem__(0, clock[0] + PERIOD * 0.9)
    gui.send("a")
    gui.port.run()
    assert gui.port.timers[0][0] == pytest.approx(PERIOD * 0.9)


def test_frames_become_shorter_when_they_take_too_long_and_longer_again(clock):
    gui = Gui(capacity=4096)
    cost = [0.0001]

    def show(frame):
        clock[0] += cost[0] * len(frame)

    gui.on_frame = show
    gui.send(*range(4095))
    gui.port.advance(10)
    gui.send(*range(4095))
    gui.port.advance(10)
    assert [len(frame) for frame in gui.frames][:2] == [4095, 4095]
    gui.send(*range(20_000))
    gui.port.advance(1000)
    assert min(len(frame) for frame in gui.frames[2:-1]) == core.SHORTEST
    cost[0] = 0.0
    for _ in range(10):
        gui.send(1)
        gui.port.advance(PERIOD)
    before = len(gui.frames)
    gui.send(*range(4095))
    gui.port.advance(PERIOD)
    assert len(gui.frames) == before + 1


@given(
    st.lists(st.one_of(st.integers(1, 9), st.just("run"), st.floats(0, 1), st.just("release")), max_size=40),
    st.integers(1, 5),
    st.booleans(),
)
def test_whatever_happens_when_every_value_comes_once_and_in_order(steps, capacity, holding):
    gui = Gui(capacity=capacity)
    releases = []
    if holding:
        gui.on_frame = lambda frame: releases.append(hold())
    sent, waiting = 0, None
    for step in steps:
        if step == "run":
            gui.port.run()
        elif step == "release":
            for release in releases:
                release.release()
        elif isinstance(step, int):
            for _ in range(step):
                if waiting is not None and waiting.held:
                    break
                waiting = gui.send(sent)[0]
                sent += 1
        else:
            gui.port.advance(step)
    gui.source.on_completed()
    for _ in range(2 * sent + 4):
        gui.port.advance(PERIOD)
        for release in releases:
            release.release()
    assert gui.values == list(range(sent))
    assert gui.ends == [None]
    assert all(len(frame) <= capacity for frame in gui.frames)
    assert [frame.final for frame in gui.frames].count(True) == 1


def test_a_source_on_another_thread_that_switches_all_the_time(monkeypatch):
    import sys

    port, seen, ends = FakePort(), [], []
    source = Hub()
    source.pipe(on_loop(port, capacity=16)).subscribe(seen.extend, ends.append, lambda: ends.append(None))
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)

    def produce():
        free = threading.Event()
        for value in range(5000):
            pending = publish(source.on_next, value)
            if pending is not None and pending.held:
                free.clear()
                pending.then(free.set)
                assert free.wait(20)
        source.on_completed()

    thread = threading.Thread(target=produce)
    try:
        thread.start()
        while not ends:
            port.advance(1)
        thread.join(20)
    finally:
        sys.setswitchinterval(before)
    assert seen == list(range(5000))


def test_a_frame_is_a_sequence_that_says_briefly_what_it_is():
    frame = Frame(("a", "b", "c"), first_seq=4, last_seq=6)
    assert (len(frame), frame[1], frame[1:], list(frame), "b" in frame) == (3, "b", ("b", "c"), ["a", "b", "c"], True)
    assert repr(frame) == "<Frame of 3, 4 to 6>"
    assert repr(Frame(final=True)) == "<Frame of 0, final>"
    assert repr(Frame(("a",), None, 0, 0, final=True, error=ValueError("x"))) == "<Frame of 1, 0 to 0, final: ValueError('x')>"


class Flood:
    """A source on the loop of another thread that makes values as fast as they are taken."""

    def __init__(self, port, count, **settings):
        self.made, self.seen, self.ends = 0, [], []
        self.hub, self.count = Hub(), count
        bridge = on_loop(port, **settings)
        self.hub.pipe(bridge).subscribe(self.seen.append, self.ends.append, lambda: self.ends.append(None))
        self.thread = threading.Thread(target=lambda: asyncio.run(self.make()), daemon=True)
        self.thread.start()

    async def make(self):
        for value in range(self.count):
            self.made = value + 1
            await emit(self.hub.on_next, value)
        self.hub.on_completed()

    @property
    def ahead(self):
        """How many it has made that are in no frame yet."""
        return self.made - sum(len(frame) for frame in self.seen)

    def rests_at(self, ahead):
        """Waits until it is so far ahead of the frames, and sees whether it gets further."""
        until = real_clock() + 20
        while self.ahead < ahead and real_clock() < until:
            real_sleep(0.001)
        real_sleep(0.05)
        return self.ahead == ahead


def test_a_source_that_only_computes_pauses_until_the_next_frame(monkeypatch):
    monkeypatch.setattr(core, "PAUSE_SECONDS", 1000.0)
    port = FakePort()
    flood = Flood(port, 8 * core.STRETCH, period=PERIOD)
    for _ in range(3):
        assert flood.rests_at(core.STRETCH)
        port.advance(PERIOD)
    while not flood.ends:
        port.advance(PERIOD)
        real_sleep(0.001)
    flood.thread.join(20)
    assert [value for frame in flood.seen for value in frame] == list(range(8 * core.STRETCH))


def test_a_gui_that_is_blocked_makes_the_pauses_no_longer():
    port = FakePort()
    flood = Flood(port, 6000, capacity=4096)
    assert flood.rests_at(4096), "only its capacity stops it"
    while not flood.ends:
        port.advance(1)
        real_sleep(0.001)
    flood.thread.join(20)
    assert [value for frame in flood.seen for value in frame] == list(range(6000))


def test_a_pause_ends_with_the_subscription(monkeypatch):
    monkeypatch.setattr(core, "PAUSE_SECONDS", 1000.0)
    port = FakePort()
    flood = Flood(port, 2 * core.STRETCH)
    assert flood.rests_at(core.STRETCH)
    port.close()
    flood.thread.join(20)
    assert flood.made == 2 * core.STRETCH


def test_a_source_on_the_guis_own_loop_does_not_pause(monkeypatch):
    monkeypatch.setattr(core, "PAUSE_SECONDS", 1000.0)

    async def main():
        hub, seen, ended = Hub(), [], asyncio.Event()
        hub.pipe(on_loop(AsyncioPort(), period=1000)).subscribe(seen.extend, None, ended.set)
        for value in range(3 * core.STRETCH):
            await emit(hub.on_next, value)
        hub.on_completed()
        return seen

    assert len(asyncio.run(asyncio.wait_for(main(), 20))) < 3 * core.STRETCH, "all of it before the second frame"


@pytest.mark.parametrize(("name", "value"), [("period", 0), ("period", -1), ("capacity", 0)])
def test_settings_that_can_not_work_are_refused(name, value):
    with pytest.raises(UsageError, match=name):
        on_loop(FakePort(), **{name: value})
