"""The terminal app on a pseudo-terminal: keystroke to echo, and CPU per frame, while a 200,000-character answer comes in.

    python benchmarks/chat.py [CHARACTERS]

The app runs in a process of its own, as the command starts it. A person types a letter now and then; the time until the
terminal gets it back is the echo. CPU per frame is what the whole process used between two frames, the model's and the
engine's share included; the answer comes at an even pace, so that every frame brings as much.
"""

import asyncio
import fcntl
import gc
import json
import os
import pathlib
import pty
import select
import statistics
import struct
import sys
import tempfile
import termios
import time

ROOT = pathlib.Path(__file__).parents[1]
CHARACTERS = 200_000
PER_SECOND = 4_000  # characters
PIECE = 20
SECTION = """## Part {n}: what is measured here

The answer is long enough to matter, with **strong** words, `code`, a [link](https://example.org/{n}) and a sentence that goes
on until it has to be wrapped, as sentences of models do, {n} times over.

1. The first item of the list of part {n}.
2. The second, with `inline code` in it.
   - and one below it
   - and another

```python
def part_{n}(events):
    total = 0
    for number, event in enumerate(events):
        if number % {n} == 0:
            total += len(event) * {n}
    return f"part {n}: {{total}}"
```

| event | count | what it tells |
|---|---:|---|
| `MessageUpdate` | {n} | the answer grew by a piece |
| `ToolStart` | 2 | a tool of part {n} begins |
| `AgentEnd` | 1 | the run is over |

> Quoted, so that there is a quote in part {n} as well.

"""


def answer(characters):
    text = "".join(SECTION.format(n=n) for n in range(1, characters // 800 + 2))
    return text[:characters]


# -- the process of the app


async def app(characters, report):
    from rxagent import Agent
    from rxagent.chat.app import ChatApp
    from rxagent.chat.desk import Desk
    from rxagent.chat.window import Options
    from rxagent.events.model import TextDelta
    from rxagent.models import ScriptedModel, resolve
    from rxagent.stores import MemoryStore

    text = answer(characters)

    async def turn(_):
        began, sent = time.perf_counter(), 0
        while sent < len(text):
            yield TextDelta(text[sent : sent + PIECE])
            sent += PIECE
            early = began + sent / PER_SECOND - time.perf_counter()
            if early > 0:
                await asyncio.sleep(early)

    frames = []

    class Measured(ChatApp):
        def _frame(self, frame):
            super()._frame(frame)
            message = self.agent.state.streaming_message
            drawn = self.transcript.drawn
            frames.append((len(message.text) if message else 0, time.process_time(), drawn))
            if self.outcome:
                report.write_text(json.dumps(frames))
                self.exit(0)

    async with MemoryStore() as store:
        gc.collect()
        gc.freeze()  # as the command does
        await Measured(Desk(Agent(ScriptedModel([turn])), store), Options(resolve=resolve, prompt="go")).run_async()


# -- the person at the terminal


def watch(characters, report):
    pid, fd = pty.fork()
    if not pid:
        os.environ |= {"TERM": "xterm-256color", "COLUMNS": "100", "LINES": "30", "PYTHONPATH": str(ROOT)}
        os.execv(sys.executable, [sys.executable, __file__, "--app", str(characters), str(report)])
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
    echoes, next_key, waiting = [], time.perf_counter() + 3, None
    while True:
        ready, _, _ = select.select([fd], [], [], 0.01)
        if ready:
            try:
                data = os.read(fd, 1 << 20)
            except OSError:
                break
            if not data:
                break
            if waiting and waiting[0] in data:
                echoes.append(time.perf_counter() - waiting[1])
                waiting = None
        now = time.perf_counter()
        if waiting is None and now >= next_key:
            letter = chr(0x410 + len(echoes)).encode()  # each a letter that stands nowhere else
            os.write(fd, letter)
            waiting, next_key = (letter, now), now + 0.3
    os.waitpid(pid, 0)
    return echoes


def main(characters):
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder) / "frames.json"
        echoes = watch(characters, report)
        frames = json.loads(report.read_text())

    def per_frame(low, high):
        inside = [(length, cpu) for length, cpu, _ in frames if low <= length <= high]
        return (inside[-1][1] - inside[0][1]) / (len(inside) - 1)

    early = per_frame(8_000, 14_000)
    late = per_frame(characters - 8_000, characters)
    print(f"{characters:,} characters, {len(frames)} frames, {frames[-1][2]} cells drawn")
    median, worst = statistics.median(echoes) * 1e3, max(echoes) * 1e3
    print(f"keystroke to echo: median {median:.0f} ms, worst {worst:.0f} ms, {len(echoes)} keys")
    print(f"CPU per frame: {early * 1e3:.1f} ms at 10,000 characters, {late * 1e3:.1f} ms at the end: {late / early:.2f} x")


if __name__ == "__main__":
    if "--app" in sys.argv:
        asyncio.run(app(int(sys.argv[2]), pathlib.Path(sys.argv[3])))
    else:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else CHARACTERS)
