"""File stores shared by processes: one writer per session, readers anywhere, and death at any moment."""

import asyncio

import pytest

from rxagent.errors import SessionLocked, WrongSeq
from rxagent.events import Custom
from rxagent.stores import JsonlStore, SqliteStore

KINDS = {"sqlite": SqliteStore, "jsonl": JsonlStore}

WRITER = """
    async def main():
        store = KINDS[sys.argv[2]](path)
        await store.append("s", 0, [Custom("n")])
        print("mine")
        sys.stdin.readline()
        await store.release("s")
        print("released")
        sys.stdin.readline()
    asyncio.run(main())
"""


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


def test_a_second_writer_is_refused_until_the_first_releases(kind, tmp_path, other):
    path = tmp_path / "runs"
    first = other(WRITER, path, kind)
    assert first.line() == "mine"

    async def main():
        async with KINDS[kind](path) as store:
            with pytest.raises(SessionLocked, match="'s'"):
                await store.append("s", 1, [Custom("n")])
            await store.append("another", 0, [Custom("n")])
            assert len(await store.load("s")) == 1
            first.say()
            assert first.line() == "released"
            await store.append("s", 1, [Custom("n")])

    asyncio.run(main())


def test_the_lock_of_a_killed_writer_is_gone(kind, tmp_path, other):
    path = tmp_path / "runs"
    first = other(WRITER, path, kind)
    assert first.line() == "mine"
    first.kill()

    async def main():
        async with KINDS[kind](path) as store:
            await store.append("s", 1, [Custom("n")])

    asyncio.run(main())


def test_two_stores_of_one_process_exclude_each_other_too(kind, tmp_path):
    async def main():
        one, two = KINDS[kind](tmp_path / "runs"), KINDS[kind](tmp_path / "runs")
        await one.append("s", 0, [Custom("n")])
        with pytest.raises(SessionLocked):
            await two.append("s", 1, [Custom("n")])
        await two.append("t", 0, [Custom("n")])
        await one.close()  # closing one store must not drop the locks of the other
        three = KINDS[kind](tmp_path / "runs")
        with pytest.raises(SessionLocked):
            await three.append("t", 1, [Custom("n")])
        await two.append("s", 1, [Custom("n")])
        await two.close()
        await three.close()

    asyncio.run(main())


def test_a_reader_of_a_session_that_is_given_up_hears_its_next_writer(kind, tmp_path):
    async def main():
        one, two = KINDS[kind](tmp_path / "runs"), KINDS[kind](tmp_path / "runs")
        await one.append("s", 0, [Custom("n")])
        got = []
        one.read("s").subscribe(got.append)
        while len(got) < 1:
            await asyncio.sleep(0.001)
        await one.release("s")
        await two.append("s", 1, [Custom("n")])
        while len(got) < 2:
            await asyncio.sleep(0.001)
        outcome = await asyncio.gather(one.append("s", 0, [Custom("n")]), return_exceptions=True)
        assert isinstance(outcome[0], SessionLocked)
        await two.append("s", 2, [Custom("n")])
        await two.release("s")
        outcome = await asyncio.gather(one.append("s", 0, [Custom("n")]), return_exceptions=True)
        assert isinstance(outcome[0], WrongSeq)
        await two.append("s", 3, [Custom("n")])
        while len(got) < 4:
            await asyncio.sleep(0.001)
        assert [event.seq for event in got] == [0, 1, 2, 3]
        await one.close()
        await two.close()

    asyncio.run(asyncio.wait_for(main(), 20))


def test_a_refused_append_makes_nobody_a_writer(kind, tmp_path):
    async def main():
        one, two = KINDS[kind](tmp_path / "runs"), KINDS[kind](tmp_path / "runs")
        outcome = await asyncio.gather(one.append("s", 7, [Custom("n")]), return_exceptions=True)
        assert type(outcome[0]).__name__ == "WrongSeq"
        await two.append("s", 0, [Custom("n")])
        await one.close()
        await two.close()

    asyncio.run(main())


def test_readers_in_other_processes_follow_exactly(kind, tmp_path, other):
    path = tmp_path / "runs"
    reading = """
        async def main():
            store = KINDS[sys.argv[2]](path)
            seqs, done = [], asyncio.Event()
            def take(event):
                seqs.append(event.seq)
                if event.name == "last": done.set()
            store.read("s", int(sys.argv[3])).subscribe(take)
            print("reading")
            await asyncio.wait_for(done.wait(), 60)
            assert seqs == list(range(int(sys.argv[3]), 1201)), seqs
            print("all")
            await store.close()
        asyncio.run(main())
    """

    async def main():
        async with KINDS[kind](path) as store:
            await store.append("s", 0, [Custom("n")] * 3)
            readers = [other(reading, path, kind, start) for start in (0, 2, 700)]
            for reader in readers:
                assert reader.line() == "reading"
            seq = 3
            while seq < 1200:
                size = min(1 + seq % 7, 1200 - seq)
                await store.append("s", seq, [Custom("n")] * size)
                await store.append("noise", seq - 3, [Custom("n")] * size)
                seq += size
            await store.append("s", 1200, [Custom("last")])
            for reader in readers:
                assert await asyncio.to_thread(reader.finish) == ["all"]

    asyncio.run(main())


def test_two_processes_write_their_sessions_into_one_file(kind, tmp_path, other):
    path = tmp_path / "runs"
    script = """
        async def main():
            async with KINDS[sys.argv[2]](path) as store:
                for n in range(150):
                    await store.append(sys.argv[3], n, [Custom(sys.argv[3])])
        asyncio.run(main())
    """
    writers = [other(script, path, kind, name) for name in ("a", "b", "c")]
    for writer in writers:
        writer.finish()

    async def main():
        async with KINDS[kind](path) as store:
            for name in ("a", "b", "c"):
                assert [(e.seq, e.name) for e in await store.load(name)] == [(n, name) for n in range(150)]

    asyncio.run(main())


# One process forks the victims, so that 200 deaths don't cost 200 imports.
VICTIMS = """
    import random, signal
    kind, deaths, chance = sys.argv[2], int(sys.argv[3]), random.Random(int(sys.argv[4]))

    async def write(pipe, seqs):
        store = KINDS[kind](path)
        async def session(name):
            n = seqs[name]
            while True:
                size = 1 + n % 5
                await store.append(name, n, [Custom(name, "x" * 300)] * size)
                n += size
                os.write(pipe, f"{name} {n}\\n".encode())
        await asyncio.gather(*(session(name) for name in seqs))

    async def check(seqs):
        async with KINDS[kind](path) as store:
            found = {name: await store.load(name) if name in {i.id for i in await store.sessions()} else [] for name in seqs}
        for name, events in found.items():
            assert [e.seq for e in events] == list(range(len(events))), "a hole"
            assert len(events) >= seqs[name], f"{name}: {seqs[name]} acknowledged, {len(events)} found"
        return {name: len(events) for name, events in found.items()}

    to_json(Custom("n"))  # builds what takes long to build, once for all
    seqs, written = {name: 0 for name in "abc"}, 0
    for death in range(deaths):
        if death % 40 == 39:  # a fresh file now and then, or reading it takes all the time
            path, seqs = f"{path}-", {name: 0 for name in "abc"}
        out, pipe = os.pipe()
        child = os.fork()
        if not child:
            os.close(out)
            try:
                asyncio.run(write(pipe, seqs))
            finally:
                os._exit(9)
        os.close(pipe)
        time.sleep(chance.uniform(0, 0.06))
        os.kill(child, signal.SIGKILL)
        assert os.WIFSIGNALED(os.waitpid(child, 0)[1]), "the writer failed by itself"
        with os.fdopen(out) as acknowledged:
            for line in acknowledged.read().split("\\n")[:-1]:
                name, n = line.split()
                seqs[name] = int(n)
        seqs = asyncio.run(check(seqs))
        written += sum(seqs.values())
    print(written)
"""


@pytest.mark.parametrize("seed", [1])
def test_200_kills_lose_nothing_that_was_acknowledged(kind, seed, tmp_path, other):
    written = other(VICTIMS, tmp_path / "runs", kind, 200, seed).finish()
    assert int(written[-1]) > 1000  # the victims did get to write
