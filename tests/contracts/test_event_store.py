"""What every `EventStore` promises, run over each of them."""

import asyncio
import gc
import itertools
import tempfile
import threading
import warnings
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reactivex import operators as rxops
from strategies import logs

from rxagent.errors import StoreClosed, UnknownSession, Unserialisable, UsageError, WrongSeq
from rxagent.events import (
    AgentEnd,
    AgentStart,
    Custom,
    EventReader,
    MessageEnd,
    MessageStart,
    MessageUpdate,
    Origin,
    SessionStart,
    TextDelta,
    ToolCallDelta,
    ToolCallStart,
    TurnStart,
    UnknownEvent,
    to_json,
)
from rxagent.flow import hold
from rxagent.log import EventStore, SessionInfo
from rxagent.marble.loop import run_virtual
from rxagent.messages import AssistantMessage, UserMessage
from rxagent.stores import JsonlStore, MemoryStore, SqliteStore

MAKERS = {
    "memory": lambda folder: MemoryStore(),
    "sqlite": lambda folder: SqliteStore(folder / "runs.db"),
    "jsonl": lambda folder: JsonlStore(folder / "runs.jsonl"),
}


@pytest.fixture(params=MAKERS)
def make(request, tmp_path):
    return lambda: MAKERS[request.param](tmp_path)


def folded(events):
    """As a reader of the whole stream sees them."""
    reader = EventReader()
    return [reader.read(to_json(event)) for event in events]


def answer(origin, text, message_id="m"):
    message = AssistantMessage(id=message_id, timestamp=2.0)
    deltas = [MessageUpdate(TextDelta(piece), origin=origin) for piece in text]
    return [MessageStart(message, origin=origin), *deltas, MessageEnd(replace(message, stop_reason="stop"), origin=origin)]


def numbered(events, first=0):
    return [replace(event, seq=seq) for seq, event in enumerate(events, first)]


def a_run(session_id="s"):
    """A log with two agents streaming at once, a call's arguments in pieces, and a kind of event nobody knows."""
    root = Origin(session_id, "r1", "root", ("root",))
    left = Origin(session_id, "r1", "child", ("root", "child"), "c1")
    right = Origin(session_id, "r1", "child", ("root", "child"), "c2")
    user = UserMessage("héllo\n\u2028 \x00", id="u", timestamp=1.0)
    mixed = [event for pair in zip(answer(left, "left!", "l"), answer(right, "right", "r"), strict=True) for event in pair]
    stranger = {"session_id": session_id, "more": 1}
    unknown = {"type": "from_the_future", "seq": 0, "origin": stranger, "big": 2**70, "x": [1.5, None]}
    call = [MessageUpdate(ToolCallStart("c1", "look", 1), origin=root), MessageUpdate(ToolCallDelta('{"a":1}', 1), origin=root)]
    return folded(
        numbered(
            [
                SessionStart(origin=root),
                AgentStart((user,), origin=root),
                TurnStart(origin=root),
                MessageStart(user, origin=root),
                MessageEnd(user, origin=root),
                *answer(root, ["Hel", "lo"])[:3],
                *call,
                *answer(root, "")[1:],
                *mixed,
                UnknownEvent(unknown, type="from_the_future", origin=Origin(session_id)),
                Custom("note", {"k": [1, "é"]}, origin=root),
                AgentEnd(origin=root),
            ]
        )
    )


def texts(events):
    return [event.message.text if isinstance(event, MessageUpdate) else None for event in events]


async def until(condition, seconds=20.0):
    """Waits for something that another thread or process brings about."""
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.002)


def test_it_is_an_event_store(make):
    async def main():
        async with make() as store:
            assert isinstance(store, EventStore)
            assert store.durability in {"process", "disk"}

    asyncio.run(main())


def test_what_was_appended_is_loaded_as_it_was(make):
    events = a_run()

    async def main():
        async with make() as store:
            await store.append("s", 0, events[:7])
            await store.append("s", 7, events[7:])
            loaded = await store.load("s")
            assert loaded == events
            assert [to_json(event) for event in loaded] == [to_json(event) for event in events]
            assert texts(loaded) == texts(events)

    asyncio.run(main())


def test_from_any_seq_on_updates_have_their_whole_message(make):
    events = a_run()

    async def main():
        async with make() as store:
            for event in events:
                await store.append("s", event.seq, [event])
            for seq in range(len(events) + 3):
                assert await store.load("s", seq) == events[seq:]
                got = []
                subscription = store.read("s", seq).subscribe(got.append)
                await until(lambda got=got, seq=seq: len(got) == len(events[seq:]))
                subscription.dispose()
                assert texts(got) == texts(events[seq:])

    asyncio.run(main())


@settings(max_examples=20)
@given(kind=st.sampled_from(sorted(MAKERS)), log=logs(), data=st.data())
def test_any_session_comes_back_the_same_from_anywhere_in_it(kind, log, data):
    events = folded(log)
    cuts = sorted(data.draw(st.sets(st.integers(0, len(events)), max_size=4)) | {0, len(events)})
    places = data.draw(st.lists(st.integers(0, len(events)), min_size=1, max_size=6))

    async def main(folder):
        async with MAKERS[kind](folder) as store:
            for start, stop in itertools.pairwise(cuts):
                await store.append("any", start, events[start:stop])
            for place in places:
                loaded = await store.load("any", place)
                assert [to_json(event) for event in loaded] == [to_json(event) for event in events[place:]]
                assert texts(loaded) == texts(events[place:])

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(main(Path(folder)))


def test_updates_that_come_as_their_deltas_alone_get_their_messages(make):
    origin = Origin("s", "r", "a", ("a",))
    bare = numbered([SessionStart(origin=origin), *answer(origin, "abc"), *answer(origin, "xy")])

    async def main():
        async with make() as store:
            await store.append("s", 0, bare[:3])
            await store.append("s", 3, bare[3:])
            assert texts(await store.load("s")) == texts(folded(bare))
            assert texts(await store.load("s", 3)) == texts(folded(bare))[3:]

    asyncio.run(main())


def test_events_get_their_numbers_when_they_enter(make):
    async def main():
        async with make() as store:
            await store.append("s", 0, [SessionStart(), Custom("a")])
            await store.append("s", 2, [Custom("b")])
            assert [event.seq for event in await store.load("s")] == [0, 1, 2]

    asyncio.run(main())


def test_a_wrong_seq_is_refused_and_leaves_no_trace(make):
    async def main():
        async with make() as store:
            await store.append("s", 0, [SessionStart()])
            for seq in (0, 2, -1):
                with pytest.raises(WrongSeq):
                    await store.append("s", seq, [Custom("no")])
            with pytest.raises(WrongSeq):
                await store.append("s", 1, [Custom("yes"), Custom("no", seq=7)])
            with pytest.raises(WrongSeq):
                await store.append("new", 1, [Custom("no")])
            assert await store.load("s") == [SessionStart(seq=0)]
            assert [info.id for info in await store.sessions()] == ["s"]
            await store.append("s", 1, [Custom("yes")])
            assert len(await store.load("s")) == 2

    asyncio.run(main())


def test_of_two_that_race_for_a_seq_one_wins(make):
    async def main():
        async with make() as store:
            race = [store.append("s", 0, [Custom(str(n))]) for n in range(20)]
            outcomes = await asyncio.gather(*race, return_exceptions=True)
            assert sorted(type(outcome).__name__ for outcome in outcomes) == ["NoneType"] + ["WrongSeq"] * 19
            assert len(await store.load("s")) == 1

    asyncio.run(main())


def test_an_empty_append_begins_nothing(make):
    async def main():
        async with make() as store:
            await store.append("s", 0, [])
            assert await store.sessions() == []
            with pytest.raises(WrongSeq):
                await store.append("s", 3, [])

    asyncio.run(main())


def test_an_unknown_session_is_an_error_to_load_and_a_wait_to_read(make):
    async def main():
        async with make() as store:
            with pytest.raises(UnknownSession, match="nobody"):
                await store.load("nobody")
            got = []
            store.read("nobody").subscribe(got.append)
            await asyncio.sleep(0.01)
            await store.append("nobody", 0, [SessionStart()])
            await until(lambda: got)
            assert got == [SessionStart(seq=0)]
            assert await store.load("nobody", 5) == []

    asyncio.run(main())


def test_session_ids_and_seqs_are_checked(make):
    async def main():
        async with make() as store:
            for bad in ("", "\ud800"):
                with pytest.raises(UsageError):
                    await store.append(bad, 0, [SessionStart()])
                with pytest.raises(UsageError):
                    await store.load(bad)
            with pytest.raises(UsageError):
                store.read("s", -1)
            for good in ("a b/ü'\"%;--", "x" * 5000, "\x00\n"):
                await store.append(good, 0, [SessionStart()])
                assert await store.load(good) == [SessionStart(seq=0)]

    asyncio.run(main())


def test_sessions_are_listed_with_their_times(make):
    async def main():
        async with make() as store:
            await store.append("b", 0, a_run("b"))
            await store.append("a", 0, [SessionStart()])
            await store.append("b", len(a_run()), [MessageStart(UserMessage("x", timestamp=9.0))])
            assert await store.sessions() == [SessionInfo("b", len(a_run()) + 1, 1.0, 9.0), SessionInfo("a", 1)]

    asyncio.run(main())


@settings(max_examples=25)
@given(
    kind=st.sampled_from(sorted(MAKERS)),
    batches=st.lists(st.integers(1, 9), max_size=12),
    readers=st.lists(st.tuples(st.integers(0, 12), st.integers(0, 40)), max_size=5),
)
def test_readers_get_each_event_once_in_order_whenever_they_join(kind, batches, readers):
    async def main(folder):
        async with MAKERS[kind](folder) as store:
            heard = []

            def join(at):
                for when, from_seq in readers:
                    if when == at:
                        heard.append((from_seq, got := []))
                        store.read("s", from_seq).subscribe(got.append)

            count = 0
            for at, size in enumerate(batches):
                join(at)
                await store.append("s", count, [Custom("n", n) for n in range(count, count + size)])
                count += size
            join(len(batches))
            await until(lambda: all(len(got) >= count - from_seq for from_seq, got in heard))
            await asyncio.sleep(0.01)
            for from_seq, got in heard:
                assert [event.seq for event in got] == list(range(from_seq, count))

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(main(Path(folder)))


def test_many_sessions_append_at_once(make):
    async def main():
        async with make() as store:

            async def write(name):
                for n in range(10):
                    await store.append(name, n * 2, [Custom(name, n), Custom(name, n)])

            await asyncio.gather(*(write(f"s{n}") for n in range(50)))
            for n in range(50):
                assert [event.seq for event in await store.load(f"s{n}")] == list(range(20))

    asyncio.run(main())


def test_several_loops_in_several_threads_use_one_store(make):
    store = make()
    heard = {}

    def work(name):
        async def main():
            got = heard[name] = []
            store.read("shared").subscribe(got.append)
            for n in range(30):
                await store.append(name, n, [Custom(name)])
            await until(lambda: len(got) == 50)

        asyncio.run(main())

    threads = [threading.Thread(target=work, args=(f"t{n}",)) for n in range(4)]
    for thread in threads:
        thread.start()

    async def main():
        for n in range(50):
            await store.append("shared", n, [Custom("shared")])
        await asyncio.to_thread(lambda: [thread.join() for thread in threads])
        for name, got in heard.items():
            assert len(await store.load(name)) == 30
            assert [event.seq for event in got] == list(range(50))
        await store.close()

    asyncio.run(main())


def test_a_consumer_that_holds_is_waited_for(make):
    async def main():
        async with make() as store:
            got, releases = [], []

            def slow(event):
                got.append(event)
                releases.append(hold())

            store.read("s").subscribe(slow)
            await store.append("s", 0, [Custom("n") for _ in range(20)])
            for n in range(1, 21):
                await until(lambda n=n: len(got) >= n)
                await asyncio.sleep(0)
                assert len(got) == n
                releases[-1].release()

    asyncio.run(main())


def test_a_raising_consumer_is_reported_and_the_others_go_on(make, capfd):
    async def main():
        async with make() as store:
            got = []
            store.read("s").pipe(rxops.map(lambda event: 1 / (event.seq - 1))).subscribe(lambda _: None)
            store.read("s").subscribe(got.append)
            await store.append("s", 0, [Custom("n") for _ in range(5)])
            await until(lambda: len(got) == 5)

    asyncio.run(main())
    assert "ZeroDivisionError" in capfd.readouterr().err


def test_dispose_ends_delivery_and_leaves_no_task(make):
    async def main():
        async with make() as store:
            before = asyncio.all_tasks()
            got = []
            subscription = store.read("s").subscribe(got.append)
            await store.append("s", 0, [Custom("n")])
            await until(lambda: got)
            subscription.dispose()
            await store.append("s", 1, [Custom("n")])
            await until(lambda: asyncio.all_tasks() == before)
            subscription.dispose()
            assert len(got) == 1

            # from inside the handler, in the middle of a page
            first = []
            store.read("s").pipe(rxops.take(1)).subscribe(first.append)
            await until(lambda: first and asyncio.all_tasks() == before)
            assert len(first) == 1

    asyncio.run(main())


def test_reading_without_a_loop_happens_on_a_thread_that_ends(make):
    store = make()
    asyncio.run(store.append("s", 0, [Custom("n") for _ in range(3)]))
    before = set(threading.enumerate())
    got, enough, done = [], threading.Event(), threading.Event()

    def take(event):
        got.append(event.seq)
        if len(got) == 4:
            enough.set()

    subscription = store.read("s").subscribe(take)
    left = store.read("s").subscribe(lambda _: None, on_completed=done.set)
    asyncio.run(store.append("s", 3, [Custom("n")]))
    assert enough.wait(20)
    subscription.dispose()
    subscription.thread.join(20)
    assert got == [0, 1, 2, 3]
    asyncio.run(store.close())
    assert done.is_set()
    assert not left.thread.is_alive()
    assert not [thread for thread in set(threading.enumerate()) - before if "store" in thread.name]


def test_close_keeps_what_was_begun_completes_readers_and_is_repeatable(make):
    async def main():
        store = make()
        done = []
        store.read("s").subscribe(lambda _: None, on_completed=lambda: done.append(True))
        await asyncio.sleep(0.01)
        begun = asyncio.ensure_future(store.append("s", 0, [Custom("n")]))
        await asyncio.sleep(0)
        await store.close()
        await begun
        await store.close()
        await until(lambda: done)
        assert not [thread for thread in threading.enumerate() if thread.name.startswith("rxagent-store")]
        for late in (store.append("s", 1, []), store.load("s"), store.sessions(), store.release("s")):
            with pytest.raises(StoreClosed):
                await late
        with pytest.raises(StoreClosed):
            store.read("s")

    asyncio.run(main())


def test_closing_amid_a_crowd_of_calls_answers_each(make):
    async def main():
        store = make()
        appends = [asyncio.ensure_future(store.append(f"s{n}", 0, [Custom("n")])) for n in range(50)]
        await asyncio.sleep(0)
        loads = [asyncio.ensure_future(store.load(f"s{n}")) for n in range(50)]
        await asyncio.sleep(0)
        await store.close()
        outcomes = await asyncio.wait_for(asyncio.gather(*appends, *loads, return_exceptions=True), 20)
        assert {type(outcome) for outcome in outcomes} <= {type(None), list, StoreClosed, UnknownSession}

    asyncio.run(main())


def test_a_cancelled_append_leaves_the_store_in_order(make):
    async def main():
        async with make() as store:
            cancelled = asyncio.ensure_future(store.append("s", 0, [Custom("n")]))
            await asyncio.sleep(0)
            cancelled.cancel()
            await asyncio.gather(cancelled, return_exceptions=True)
            await store.append("other", 0, [Custom("n")])
            stored = await store.load("s")
            await store.append("s", len(stored), [Custom("n")])
            assert len(await store.load("s")) == len(stored) + 1

    asyncio.run(main())


def test_release_is_harmless_and_the_next_append_goes_on(make):
    async def main():
        async with make() as store:
            await store.release("s")
            origin = Origin("s", "r", "a", ("a",))
            events = folded(numbered(answer(origin, "abcdef")))
            for event in events:
                await store.append("s", event.seq, [event])
                await store.release("s")
            for seq in range(len(events)):
                assert texts(await store.load("s", seq)) == texts(events)[seq:]

    asyncio.run(main())


def test_on_virtual_time_nothing_needs_a_thread(make):
    async def main():
        async with make() as store:
            got = []
            store.read("s").subscribe(got.append)
            before = threading.active_count()
            for n in range(20):
                await store.append("s", n, [Custom("n")])
            await asyncio.sleep(3600)
            assert [event.seq for event in got] == list(range(20))
            assert threading.active_count() == before
            assert len(await store.load("s")) == 20

    run_virtual(main())


def test_a_reader_of_what_the_store_itself_writes_needs_no_timer(make):
    async def main():
        async with make() as store:
            await store.append("s", 0, [Custom("n")])
            got = []
            store.read("s").subscribe(got.append)
            await asyncio.sleep(1)
            assert asyncio.get_running_loop().pending_timers() == []
            await store.append("s", 1, [Custom("n")])
            await asyncio.sleep(1)
            assert len(got) == 2

    run_virtual(main())


def test_dropped_without_close_it_leaves_nothing_open(make):
    async def main():
        store = make()
        await store.append("s", 0, [Custom("n")])
        await store.load("s")

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        asyncio.run(main())
        gc.collect()


@pytest.mark.parametrize("kind", ["sqlite", "jsonl"])
def test_what_has_no_json_form_is_refused_and_nothing_of_the_append_stays(kind, tmp_path):
    async def main():
        async with MAKERS[kind](tmp_path) as store:
            with pytest.raises(Unserialisable, match="seq 1"):
                await store.append("s", 0, [SessionStart(), Custom("bad", object())])
            assert await store.sessions() == []

    asyncio.run(main())


@pytest.mark.parametrize("kind", ["sqlite", "jsonl"])
def test_a_new_store_on_the_same_file_goes_on(kind, tmp_path):
    events = a_run()

    async def main():
        for event in events:
            async with MAKERS[kind](tmp_path) as store:
                await store.append("s", event.seq, [event])
        async with MAKERS[kind](tmp_path) as store:
            assert await store.load("s") == events
            for seq in range(len(events)):
                assert texts(await store.load("s", seq)) == texts(events)[seq:]

    asyncio.run(main())
