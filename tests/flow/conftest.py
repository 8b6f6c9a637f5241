"""Runs the coroutine tests of this folder, each on a loop of its own that must end up empty."""

import asyncio
import inspect
import threading

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a coroutine test, then look for tasks and threads that it left behind."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    wanted = inspect.signature(pyfuncitem.obj).parameters
    arguments = {name: pyfuncitem.funcargs[name] for name in wanted}
    threads = set(threading.enumerate())

    async def main() -> None:
        await pyfuncitem.obj(**arguments)
        for _ in range(3):  # a cancelled task needs a step or two to end
            await asyncio.sleep(0)
        left = asyncio.all_tasks() - {asyncio.current_task()}
        assert not left, f"tasks left behind: {left}"

    asyncio.run(main(), debug=False)
    new = {thread for thread in threading.enumerate() if thread not in threads and thread.is_alive()}
    for thread in new:
        thread.join(5)
    assert not {thread for thread in new if thread.is_alive()}, "threads left behind"
    return True
