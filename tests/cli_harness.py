"""The command in a process of its own, in a pipe or on a pseudo-terminal, and servers in a thread to run it against."""

import asyncio
import contextlib
import io
import json
import os
import pathlib
import pty
import re
import select
import socket
import struct
import subprocess
import sys
import threading
import time

from aiohttp import web

from rxagent.cli import main

ROOT = pathlib.Path(__file__).parents[1]
COMMAND = [sys.executable, "-m", "rxagent"]
_UNWANTED = re.compile(r"RXAGENT_|[A-Z]+_API_KEY|NO_COLOR|COLUMNS|.*proxy", re.IGNORECASE)


def environment(**more):
    """This process's, without what would change the command's behaviour."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not re.match(r"RXAGENT_|[A-Z]+_API_KEY|NO_COLOR|COLUMNS|.*proxy", name, re.IGNORECASE)
    }
    config = {"XDG_CONFIG_HOME": "/nonexistent", "PYTHONPATH": str(ROOT), "TERM": "xterm"}
    return {**kept, **config, **more}


def rxagent(*arguments, stdin=None, cwd=None, timeout=30, **env):
    """Runs the command to its end, in pipes."""
    return subprocess.run(
        [*COMMAND, *arguments],
        input=stdin,
        stdin=subprocess.DEVNULL if stdin is None else None,
        capture_output=True,
        encoding="utf-8",
        cwd=cwd,
        timeout=timeout,
        env=environment(**env),
        check=False,
    )


def called(*arguments, stdin="", cwd=None, **env):
    """Calls the command in this process: several times as fast, where no process, pipe or signal matters."""
    out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.TextIOWrapper(io.BytesIO(), "utf-8")
    before, paths, here, variables = set(sys.modules), list(sys.path), pathlib.Path.cwd(), dict(os.environ)
    given, sys.stdin = sys.stdin, io.TextIOWrapper(io.BytesIO(stdin.encode()), "utf-8")
    try:
        os.environ.clear()
        os.environ.update(environment(**env))
        os.chdir(cwd or here)
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                code = main(list(arguments))
            except SystemExit as left:
                code = left.code
    finally:
        sys.stdin = given
        os.chdir(here)
        os.environ.clear()
        os.environ.update(variables)
        sys.path[:] = paths
        for name in set(sys.modules) - before:
            if cwd and str(cwd) in (getattr(sys.modules[name], "__file__", None) or ""):
                del sys.modules[name]
    for stream in (out, err):
        stream.flush()
    told, complained = (stream.buffer.getvalue().decode() for stream in (out, err))
    return subprocess.CompletedProcess(arguments, code, told, complained)


def started(*arguments, **env):
    """Starts the command in pipes; the caller ends it."""
    return subprocess.Popen(
        [*COMMAND, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(**env)
    )


class OnTerminal:
    """The command on a pseudo-terminal of its own."""

    def __init__(self, *arguments, **env):
        self.shown = ""
        pid, self._fd = pty.fork()
        if not pid:
            os.execvpe(COMMAND[0], [*COMMAND, *arguments], environment(**env))
        self._pid = pid

    def press(self, keys):
        os.write(self._fd, keys.encode())

    def until(self, text, timeout=20.0):
        """Reads until something is shown."""
        end = time.monotonic() + timeout
        while text not in self.shown:
            assert time.monotonic() < end, f"{text!r} was not shown: {self.shown!r}"
            assert self._read(end), f"ended before {text!r} was shown: {self.shown!r}"

    def wait(self, timeout=20.0):
        """Reads to the end; gives the exit code."""
        end = time.monotonic() + timeout
        while self._read(end):
            assert time.monotonic() < end, self.shown
        os.close(self._fd)
        return os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])

    def _read(self, end):
        if not select.select([self._fd], [], [], max(0.0, end - time.monotonic()))[0]:
            return True
        try:
            data = os.read(self._fd, 65536)
        except OSError:  # how a pseudo-terminal ends
            return False
        self.shown += data.decode("utf-8", "replace")
        return bool(data)


@contextlib.contextmanager
def served(app):
    """Serves an aiohttp application from a thread; gives its URL."""
    loop = asyncio.new_event_loop()
    ready = threading.Event()
    urls = []

    async def serve():
        runner = web.AppRunner(app, shutdown_timeout=0.05)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        urls.append(f"http://127.0.0.1:{runner.addresses[0][1]}")
        ready.set()
        return runner

    def work():
        asyncio.set_event_loop(loop)
        runner = loop.run_until_complete(serve())
        loop.run_forever()
        loop.run_until_complete(runner.cleanup())
        left = asyncio.all_tasks(loop)  # answers that nobody waits for any more
        for task in left:
            task.cancel()
        loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        loop.close()

    thread = threading.Thread(target=work)
    thread.start()
    ready.wait()
    try:
        yield urls[0]
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()


def chunk(delta, finish=None):
    value = {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}
    return f"data: {json.dumps(value)}\n\n".encode()


def texts(*pieces):
    return [chunk({"content": piece}) for piece in pieces]


END = [chunk({}, "stop"), b"data: [DONE]\n\n"]


def chat(*answers):
    """An application that answers the n-th request with the n-th list of chunks.

    A chunk may also be a number of seconds to wait, or "reset", "cut" or a status.
    """
    waiting = list(answers)

    async def answer(request):
        await request.read()
        chunks = waiting.pop(0) if len(waiting) > 1 else waiting[0]
        if isinstance(chunks[0], int) and chunks[0] >= 100:
            return web.json_response({"error": {"message": chunks[1]}}, status=chunks[0])
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for each in chunks:
            if isinstance(each, bytes):
                await response.write(each)
            elif isinstance(each, float):
                await asyncio.sleep(each)
            elif each == "reset":
                await asyncio.sleep(0.05)
                raw = request.transport.get_extra_info("socket")
                raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                request.transport.abort()
            elif each == "cut":
                await asyncio.sleep(0.05)
                request.transport.close()
        with contextlib.suppress(ConnectionError):
            await response.write_eof()
        return response

    app = web.Application()
    app.router.add_post("/v1/chat/completions", answer)
    return app


def at(url, name="test"):
    """The arguments that name a model at a server."""
    return ["--model", name, "--base-url", f"{url}/v1"]
