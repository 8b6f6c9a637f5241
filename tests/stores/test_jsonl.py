"""`JsonlStore`: torn ends, damage with its line, and files made by others."""

import asyncio
import errno
import json
import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rxagent.errors import CorruptLog, StoreError, StoreFull
from rxagent.events import Custom, Origin, SessionStart, to_json
from rxagent.stores import JsonlStore

HERE = Origin("s", "r", "a", ("a",))


def event(n, origin=HERE):
    return Custom("n", {"n": n, "text": "ü" * (n % 5)}, seq=n, origin=origin)


def lines(*events):
    return b"".join(to_json(e) + b"\n" for e in events)


async def loaded(path, session_id="s"):
    async with JsonlStore(path) as store:
        return await store.load(session_id)


async def appended(path, seq, *, session_id="s"):
    async with JsonlStore(path) as store:
        await store.append(session_id, seq, [event(seq)])


def test_what_it_writes_is_the_events_themselves_one_per_line(tmp_path):
    path = tmp_path / "log.jsonl"
    asyncio.run(appended(path, 0))
    asyncio.run(appended(path, 1))
    assert path.read_bytes() == lines(event(0), event(1))


def test_events_of_another_origin_name_their_session(tmp_path):
    path = tmp_path / "log.jsonl"
    asyncio.run(appended(path, 0, session_id="fork"))
    line = json.loads(path.read_bytes())
    assert line["session_id"] == "fork"
    assert line["event"]["origin"]["session_id"] == "s"
    assert asyncio.run(loaded(path, "fork")) == [event(0)]


def test_a_stream_of_events_in_a_file_is_a_store(tmp_path):
    path = tmp_path / "printed.jsonl"
    path.write_bytes(b"\r\n" + lines(event(0), event(1)).replace(b"\n", b"\r\n") + b"\n   \n" + lines(event(2)))
    assert asyncio.run(loaded(path)) == [event(n) for n in range(3)]
    asyncio.run(appended(path, 3))
    assert asyncio.run(loaded(path)) == [event(n) for n in range(4)]


@given(st.data())
def test_a_file_cut_at_any_byte_keeps_every_whole_line_and_goes_on(data):
    whole = [event(n) for n in range(5)]
    content = lines(*whole)
    cut = data.draw(st.integers(0, len(content)))
    expected = [e for n, e in enumerate(whole) if len(lines(*whole[: n + 1])) - 1 <= cut]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.jsonl"
        path.write_bytes(content[:cut])
        if expected:
            assert asyncio.run(loaded(path)) == expected
        assert path.read_bytes() == content[:cut]  # reading repairs nothing
        asyncio.run(appended(path, len(expected)))
        assert path.read_bytes() == lines(*expected, event(len(expected)))


def test_a_reader_that_saw_the_torn_end_follows_across_its_repair(tmp_path):
    for tail in (to_json(event(2))[:-9], to_json(event(2))):  # torn; whole but for its line end
        path = tmp_path / f"{len(tail)}.jsonl"
        path.write_bytes(lines(event(0), event(1)) + tail)
        known = 2 if len(tail) < len(to_json(event(2))) else 3

        async def main(path=path, known=known):
            reader, writer = JsonlStore(path), JsonlStore(path)
            got = []
            reader.read("s").subscribe(got.append)
            while len(got) < known:
                await asyncio.sleep(0.001)
            for seq in range(known, 6):
                await writer.append("s", seq, [event(seq)])
            while len(got) < 6:
                await asyncio.sleep(0.001)
            assert got == [event(n) for n in range(6)]
            await reader.close()
            await writer.close()

        asyncio.run(asyncio.wait_for(main(), 20))


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (b"{\n", "no event"),
        (b"\xff\xfe\n", "no event"),
        (b"[1]\n", "JSON object"),
        (b'{"seq":1}\n', "type"),
        (b'{"type":"custom","seq":1}\n', "session"),
        (lines(event(0)), "goes on with 1"),
        (lines(event(2)), "goes on with 1"),
        (b'{"type":"custom","seq":1,"origin":{"session_id":"s"}}\n', "name"),
        (b'{"type":"custom","seq":1,"origin":{"session_id":"s"},"name":[]}\n', "name"),
    ],
)
def test_damage_in_the_middle_names_the_line_and_the_file_stays_as_it_is(tmp_path, bad, why):
    path = tmp_path / "log.jsonl"
    other = Origin("t", "r", "a", ("a",))
    content = lines(event(0)) + b"\n" + bad + lines(event(0, other))
    path.write_bytes(content)
    for _ in range(2):
        with pytest.raises(CorruptLog, match=rf"log\.jsonl, line 3 .*{why}"):
            asyncio.run(loaded(path))
    assert path.read_bytes() == content


def test_damage_found_again_by_the_same_store_has_the_same_line(tmp_path):
    path = tmp_path / "log.jsonl"
    content = lines(event(0)) + b"nonsense\n"
    path.write_bytes(content)

    async def main():
        async with JsonlStore(path) as store:
            for call in (store.load("s"), store.sessions(), store.append("s", 1, [event(1)]), store.load("t")):
                with pytest.raises(CorruptLog, match="line 2"):
                    await call

    asyncio.run(main())
    assert path.read_bytes() == content


def test_a_full_disk_refuses_the_append_and_keeps_what_was_there(tmp_path, other):
    script = """
        import resource
        async def main():
            async with JsonlStore(path) as store:
                resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))
                seq = 0
                try:
                    while True:
                        await store.append("s", seq, [Custom("n", "x" * 500)] * 7)
                        seq += 7
                except StoreFull:
                    print(os.path.getsize(path) < 100_000)
                assert len(await store.load("s")) == seq
                resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
                await store.append("s", seq, [Custom("n")])
                print(seq + 1)
        asyncio.run(main())
    """
    path = tmp_path / "log.jsonl"
    kept, count = other(script, path).finish()
    assert kept == "True"
    assert len(asyncio.run(loaded(path))) == int(count)


def test_a_failing_sync_acknowledges_nothing(tmp_path, monkeypatch):
    async def main():
        async with JsonlStore(tmp_path / "log.jsonl") as store:
            await store.append("s", 0, [event(0)])

            def fail(fd):
                raise OSError(errno.ENOSPC, "No space left on device")

            with monkeypatch.context() as patch:
                patch.setattr(os, "fsync", fail)
                with pytest.raises(StoreFull, match="nothing of this append"):
                    await store.append("s", 1, [event(1)])
            assert await store.load("s") == [event(0)]
            await store.append("s", 1, [event(1)])

    asyncio.run(main())
    assert (tmp_path / "log.jsonl").read_bytes() == lines(event(0), event(1))


def test_a_read_only_file_is_read_and_not_written(other):
    script = """
        if os.getuid() == 0:
            os.setuid(65534)  # root may write anything
        async def main():
            async with JsonlStore(path) as store:
                print(len(await store.load("s")))
                try:
                    await store.append("s", 1, [Custom("n")])
                except StoreReadOnly:
                    print("no")
        asyncio.run(main())
    """
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "log.jsonl"
        path.write_bytes(lines(event(0)) + b'{"torn')
        path.chmod(0o444)
        Path(name).chmod(0o555)
        try:
            assert other(script, path).finish() == ["1", "no"]
        finally:
            Path(name).chmod(0o755)
        assert path.read_bytes() == lines(event(0)) + b'{"torn'


def test_what_is_no_ordinary_file_is_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", "/dev/null", tmp_path, tmp_path / "nowhere" / "log.jsonl"):
        with pytest.raises(StoreError, match=Path(path).name):
            JsonlStore(path)


def test_a_file_that_shrinks_while_open_is_damage(tmp_path):
    path = tmp_path / "log.jsonl"

    async def main():
        async with JsonlStore(path) as store:
            await store.append("s", 0, [SessionStart(), event(1), event(2)])
            path.write_bytes(lines(event(0)))
            with pytest.raises(CorruptLog, match="shorter"):
                await store.load("s")

    asyncio.run(main())
