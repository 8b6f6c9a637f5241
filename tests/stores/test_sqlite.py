"""`SqliteStore` on files that are damaged, foreign, newer, read-only, or have no room."""

import asyncio
import hashlib
import sqlite3
import tempfile
from pathlib import Path

import pytest

from rxagent.errors import StoreCorrupt, StoreError, StoreFull, StoreTooNew, UsageError
from rxagent.events import Custom
from rxagent.stores import SqliteStore


def filled(path, events=400):
    async def main():
        async with SqliteStore(path) as store:
            await store.append("s", 0, [Custom("n", "x" * 200) for _ in range(events)])

    asyncio.run(main())
    return path


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_file_that_is_no_database_is_refused_untouched(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("Dear diary, " * 500)
    before = digest(path)
    with pytest.raises(StoreCorrupt, match=r"notes\.txt"):
        SqliteStore(path)
    assert digest(path) == before
    assert [found.name for found in tmp_path.iterdir()] == ["notes.txt"]


def test_another_programs_database_is_refused_untouched(tmp_path):
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE sessions (id)")
    db.close()
    before = digest(path)
    with pytest.raises(StoreError, match="another program"):
        SqliteStore(path)
    assert digest(path) == before


@pytest.mark.parametrize("tidy", [True, False])
def test_a_newer_file_is_refused_untouched(tmp_path, tidy, other):
    path = filled(tmp_path / "runs.db")
    newer = """
        import sqlite3
        db = sqlite3.connect(path, isolation_level=None)
        db.execute("PRAGMA user_version = 2")
        if sys.argv[2] == "True": db.close()
        os._exit(0)
    """
    other(newer, path, tidy).finish()  # untidy: the version stands in the WAL alone
    before = digest(path)
    for _ in range(2):
        with pytest.raises(StoreTooNew, match="upgrade"):
            SqliteStore(path)
    assert digest(path) == before


def test_a_damaged_page_anywhere_is_found_and_the_file_stays_as_it_is(tmp_path):
    pristine = filled(tmp_path / "runs.db").read_bytes()
    pages = len(pristine) // 4096
    assert pages > 20
    path = tmp_path / "damaged.db"

    async def use():
        async with SqliteStore(path) as store:
            with pytest.raises(StoreCorrupt, match=r"damaged\.db"):
                await store.append("s", 400, [Custom("n")])
            with pytest.raises(StoreCorrupt, match=r"damaged\.db"):
                await store.append("new", 0, [Custom("n")])

    for page in range(1, pages):
        path.write_bytes(pristine[: page * 4096] + b"\xa5" * 4096 + pristine[(page + 1) * 4096 :])
        before = digest(path)
        asyncio.run(use())
        assert digest(path) == before


def test_a_reader_of_a_damaged_page_hears_of_it(tmp_path):
    path = filled(tmp_path / "runs.db")
    content = path.read_bytes()
    middle = len(content) // 4096 // 2 * 4096
    path.write_bytes(content[:middle] + b"\xa5" * 4096 + content[middle + 4096 :])
    before = digest(path)

    async def main():
        async with SqliteStore(path) as store:
            with pytest.raises(StoreCorrupt):
                await store.load("s")
            errors = []
            store.read("s").subscribe(lambda _: None, errors.append)
            while not errors:
                await asyncio.sleep(0.001)
            assert isinstance(errors[0], StoreCorrupt)

    asyncio.run(main())
    assert digest(path) == before


def test_damage_inside_an_event_names_the_event(tmp_path):
    path = filled(tmp_path / "runs.db", 20)
    with sqlite3.connect(path) as db:
        db.execute("UPDATE events SET event = '{\"type\":' WHERE place & 4294967295 = 7")
        db.execute("DELETE FROM events WHERE place & 4294967295 = 15")
    db.close()

    async def main():
        async with SqliteStore(path) as store:
            with pytest.raises(StoreCorrupt, match="session 's', event 7"):
                await store.load("s")
            with pytest.raises(StoreCorrupt, match="event 16 follows 14"):
                await store.load("s", 10)

    asyncio.run(main())


def test_a_cut_off_file_is_refused_untouched(tmp_path):
    path = filled(tmp_path / "runs.db")
    path.write_bytes(path.read_bytes()[: 4096 * 5 + 100])
    before = digest(path)

    async def main():
        async with SqliteStore(path) as store:
            await store.append("s", 400, [Custom("n")])

    with pytest.raises(StoreCorrupt):
        asyncio.run(main())
    assert digest(path) == before


def test_a_full_disk_refuses_the_append_and_keeps_what_was_there(tmp_path, other):
    script = """
        import resource
        async def main():
            async with SqliteStore(path) as store:
                await store.append("s", 0, [Custom("n", "x" * 500)] * 100)
                resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, resource.RLIM_INFINITY))
                seq = 100
                try:
                    while True:
                        await store.append("s", seq, [Custom("n", "x" * 500)] * 100)
                        seq += 100
                except StoreError as error:
                    print(type(error).__name__)
                assert len(await store.load("s")) == seq
                resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
                await store.append("s", seq, [Custom("n")])
                print(seq + 1)
        asyncio.run(main())
    """
    path = tmp_path / "runs.db"
    said, count = other(script, path).finish()
    # A file-size limit is EFBIG, which SQLite calls an I/O error; ENOSPC is tested below.
    assert said in {"StoreError", "StoreFull"}

    async def main():
        async with SqliteStore(path) as store:
            assert len(await store.load("s")) == int(count)

    asyncio.run(main())


def test_no_room_is_called_that(tmp_path):
    path = filled(tmp_path / "runs.db")

    async def main():
        async with SqliteStore(path) as store:
            await store.append("s", 400, [Custom("n")])
            store._medium._connections["write"].execute("PRAGMA max_page_count = 1")  # SQLite's own full disk
            with pytest.raises(StoreFull, match="room"):
                await store.append("s", 401, [Custom("n", "x" * 10_000)])
            assert len(await store.load("s")) == 401
            store._medium._connections["write"].execute("PRAGMA max_page_count = 4294967294")
            await store.append("s", 401, [Custom("n")])
            assert len(await store.load("s")) == 402

    asyncio.run(main())


READ_ONLY = """
    if os.getuid() == 0:
        os.setuid(65534)  # root may write anything
    async def main():
        async with SqliteStore(path) as store:
            print(len(await store.load("s")), (await store.sessions())[0].events)
            try:
                await store.append("s", 400, [Custom("n")])
            except StoreReadOnly as error:
                print(type(error).__name__)
            print(len(await store.load("s")))
    asyncio.run(main())
"""


@pytest.mark.parametrize("folder_mode", [0o755, 0o555, 0o777])
def test_a_read_only_file_is_read_and_not_written(folder_mode, other):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = filled(folder / "runs.db")
        path.chmod(0o444)
        (folder / "runs.db-lock").unlink()
        before = digest(path)
        folder.chmod(folder_mode)
        try:
            assert other(READ_ONLY, path).finish() == ["400 400", "StoreReadOnly", "400"]
        finally:
            folder.chmod(0o755)
        assert digest(path) == before


def test_a_folder_that_is_not_there_is_a_clear_error(tmp_path):
    with pytest.raises(StoreError, match="nowhere"):
        SqliteStore(tmp_path / "nowhere" / "runs.db")
    with pytest.raises(StoreError, match="opened"):
        SqliteStore(tmp_path)
    with pytest.raises(UsageError, match="MemoryStore"):
        SqliteStore(":memory:")


def test_odd_file_names_are_file_names(tmp_path):
    for name in ("a?b#c%20d.db", "ü é.db", "with\nline"):
        filled(tmp_path / name, 1)
        assert (tmp_path / name).exists()


def test_many_processes_may_make_the_file_at_once(tmp_path, other):
    script = """
        sys.stdin.readline()
        async def main():
            async with SqliteStore(path) as store:
                await store.append(sys.argv[2], 0, [Custom("n")])
        asyncio.run(main())
    """
    made = [other(script, tmp_path / "runs.db", n) for n in range(6)]
    for process in made:
        process.say()
    for process in made:
        process.finish()

    async def main():
        async with SqliteStore(tmp_path / "runs.db") as store:
            assert len(await store.sessions()) == 6

    asyncio.run(main())


def test_a_sqlite_shell_can_read_the_log(tmp_path):
    path = filled(tmp_path / "runs.db", 3)
    with sqlite3.connect(path) as db:
        rows = db.execute("SELECT session, seq, json_extract(event, '$.name') FROM log").fetchall()
    db.close()
    assert rows == [("s", n, "n") for n in range(3)]
