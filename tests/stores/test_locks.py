"""Locks of sessions, per session and, where a system has no such thing, per store."""

import pytest

from rxagent.errors import SessionLocked, StoreError
from rxagent.stores.locks import PER_SESSION, SessionLocks

KINDS = [pytest.param(False, id="per store")] + ([pytest.param(True, id="per session")] if PER_SESSION else [])


@pytest.mark.parametrize("per_session", KINDS)
def test_a_session_has_one_holder(tmp_path, per_session):
    one, two = (SessionLocks(str(tmp_path / "lock"), per_session=per_session) for _ in range(2))
    assert one.acquire("a")
    assert not one.acquire("a")
    with pytest.raises(SessionLocked, match="'a'"):
        two.acquire("a")
    one.release("a")
    one.release("a")
    assert two.acquire("a")
    two.close()
    two.close()
    assert one.acquire("a")
    one.close()


def test_per_store_a_second_store_waits_until_all_sessions_are_released(tmp_path):
    one, two = (SessionLocks(str(tmp_path / "lock"), per_session=False) for _ in range(2))
    assert one.acquire("a")
    assert one.acquire("b")
    one.release("a")
    with pytest.raises(SessionLocked):
        two.acquire("c")
    one.release("b")
    assert two.acquire("c")
    two.close()


@pytest.mark.skipif(not PER_SESSION, reason="one lock covers the whole store here")
def test_per_session_thousands_need_one_open_file(tmp_path):
    one, two = (SessionLocks(str(tmp_path / "lock")) for _ in range(2))
    for n in range(5000):
        assert one.acquire(f"s{n}")
    with pytest.raises(SessionLocked):
        two.acquire("s4321")
    assert two.acquire("s5000")
    one.close()
    assert two.acquire("s4321")
    two.close()


def test_a_place_without_room_for_the_lock_is_a_clear_error(tmp_path):
    with pytest.raises(StoreError, match="can't lock"):
        SessionLocks(str(tmp_path / "nowhere" / "lock")).acquire("a")
