"""The virtual loop: one clock, exact repeats, clear ends."""

import asyncio
import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rxagent.marble.faults import ClockStandsStill, NothingToWaitFor, SocketsNotSimulated, VirtualTimeUp
from rxagent.marble.loop import Ending, VirtualLoop, run_virtual


def now() -> float:
    return asyncio.get_running_loop().time()


def test_ten_minutes_of_sleep_cost_no_time_and_arrive_exactly():
    async def main() -> float:
        for _ in range(600):
            await asyncio.sleep(1.0)
        return now()

    before = time.process_time()
    assert run_virtual(main()) == 600.0
    assert time.process_time() - before < 5


def test_sums_of_tenths_are_the_same_instant_as_their_total():
    async def main() -> list[str]:
        seen: list[str] = []
        loop = asyncio.get_running_loop()
        loop.call_later(0.3, seen.append, "total")
        await asyncio.sleep(0.1)
        await asyncio.sleep(0.2)
        seen.append(f"sum at {now()}")
        await asyncio.sleep(0)
        return seen

    assert run_virtual(main()) == ["total", "sum at 0.3"]


@given(st.lists(st.integers(min_value=0, max_value=5), max_size=30))
def test_timers_run_by_time_and_within_an_instant_in_the_order_they_were_set(delays: list[int]):
    async def main() -> list[tuple[int, int]]:
        seen: list[tuple[int, int]] = []
        loop = asyncio.get_running_loop()
        for n, delay in enumerate(delays):
            loop.call_later(delay / 10, seen.append, (delay, n))
        await asyncio.sleep(1)
        return seen

    assert run_virtual(main()) == sorted((delay, n) for n, delay in enumerate(delays))


def test_asyncio_timeout_fires_at_its_virtual_time():
    async def main() -> float:
        try:
            async with asyncio.timeout(2.5):
                await asyncio.sleep(3600)
        except TimeoutError:
            return now()
        return -1

    assert run_virtual(main()) == 2.5


def test_wait_for_queue_and_gather_share_the_clock():
    async def main() -> tuple[float, list[int]]:
        queue: asyncio.Queue[int] = asyncio.Queue(1)

        async def producer() -> None:
            for n in range(3):
                await asyncio.sleep(0.25)
                await queue.put(n)

        async def consumer() -> list[int]:
            return [await asyncio.wait_for(queue.get(), 1) for _ in range(3)]

        _, got = await asyncio.gather(producer(), consumer())
        return now(), got

    assert run_virtual(main()) == (0.75, [0, 1, 2])


def test_thread_work_runs_inline_on_the_loops_own_thread():
    def work(x: int) -> tuple[int, asyncio.AbstractEventLoop, threading.Thread]:
        return x, asyncio.get_running_loop(), threading.current_thread()

    async def main() -> bool:
        found = await asyncio.to_thread(work, 7)
        return found == (7, asyncio.get_running_loop(), threading.current_thread())

    assert run_virtual(main())


def test_thread_work_that_raises_raises_where_it_is_awaited():
    def work() -> None:
        raise ValueError("no")

    async def main() -> None:
        await asyncio.get_running_loop().run_in_executor(None, work)

    with pytest.raises(ValueError, match="no"):
        run_virtual(main())


def test_a_deadlock_is_named_with_the_task_and_the_line_that_waits():
    async def stuck() -> None:
        await asyncio.Event().wait()

    async def main() -> None:
        await asyncio.sleep(0.25)
        await asyncio.create_task(stuck(), name="the stuck one")

    with pytest.raises(NothingToWaitFor, match="at 250ms everything waits for nothing") as caught:
        run_virtual(main())
    assert any("the stuck one waits in" in line and "test_loop.py" not in line.split(" (")[0] for line in caught.value.waiting)
    assert len(caught.value.waiting) == 2


def test_the_limit_cuts_a_program_without_end():
    async def main() -> None:
        while True:
            await asyncio.sleep(1)

    with pytest.raises(VirtualTimeUp, match="not ended at 10m of virtual time"):
        run_virtual(main(), limit=600)


def test_a_loop_that_never_lets_time_pass_is_cut():
    async def main() -> None:
        while True:
            await asyncio.sleep(0)

    with pytest.raises(ClockStandsStill, match="stands still at 0ms"):
        run_virtual(main())


def test_a_real_thread_may_call_back_while_the_loop_is_idle():
    async def main() -> str:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[str] = loop.create_future()
        thread = threading.Thread(target=lambda: loop.call_soon_threadsafe(future.set_result, "hello"))
        thread.start()
        try:
            return await future
        finally:
            thread.join()

    assert run_virtual(main()) == "hello"


def test_the_network_is_refused_in_plain_words():
    async def main() -> None:
        await asyncio.open_connection("localhost", 1)

    with pytest.raises(SocketsNotSimulated, match="virtual loop"):
        run_virtual(main())


def test_play_says_why_it_stopped():
    loop = VirtualLoop()
    seen: list[int] = []
    loop.call_later(1, seen.append, 1)
    loop.call_later(2, seen.append, 2)
    assert loop.play(1.5) is Ending.TIME_UP
    assert (seen, loop.time()) == ([1], 1.5)
    assert loop.play(10) is Ending.QUIET
    assert (seen, loop.time()) == ([1, 2], 2.0)
    loop.call_later(1, seen.append, 3)
    loop.call_later(2, seen.append, 4)
    assert loop.play(10, lambda: 3 in seen) is Ending.DONE
    assert loop.time() == 3.0
    assert [t.when() for t in loop.pending_timers()] == [4.0]
    loop.close()


def test_settle_runs_the_present_instant_only():
    loop = VirtualLoop()
    seen: list[str] = []
    loop.call_soon(lambda: loop.call_later(0, seen.append, "now"))
    loop.call_later(0.001, seen.append, "later")
    loop.settle()
    assert seen == ["now"]
    loop.close()


def test_close_cancels_what_is_left_and_lets_it_clean_up():
    loop = VirtualLoop()
    seen: list[str] = []

    async def forever() -> None:
        try:
            await asyncio.sleep(1000)
        finally:
            seen.append("cleaned")

    loop.create_task(forever())
    loop.settle()
    loop.close()
    assert seen == ["cleaned"]
    assert loop.is_closed()


def test_a_cancelled_timer_does_not_move_the_clock():
    async def main() -> float:
        asyncio.get_running_loop().call_later(50, print).cancel()
        await asyncio.sleep(1)
        return now()

    assert run_virtual(main()) == 1.0
