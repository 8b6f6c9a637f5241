"""Other processes for the tests of stores."""

import os
import subprocess
import sys
import textwrap

import pytest

PRELUDE = """
import asyncio, os, sys, threading, time
from rxagent.errors import *
from rxagent.events import *
from rxagent.messages import *
from rxagent.stores import *
KINDS = {"sqlite": SqliteStore, "jsonl": JsonlStore}
path = sys.argv[1]
# A script may give up its rights, and then Python's own files may be out of reach.
import concurrent.futures.thread, sqlite3
EventReader().read(to_json(Custom("n")))
"""


class Other:
    """A Python process that runs a script with the store classes at hand; talks in lines."""

    def __init__(self, script, *args):
        code = PRELUDE + textwrap.dedent(script)
        self.process = subprocess.Popen(
            [sys.executable, "-X", "dev", "-c", code, *map(str, args)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYTHONUNBUFFERED": "1"},
        )

    def line(self):
        return self.process.stdout.readline().strip()

    def say(self, text=""):
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()

    def finish(self):
        out, _ = self.process.communicate(timeout=120)
        assert self.process.returncode == 0
        return out.split("\n")[:-1]

    def kill(self):
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def other():
    made = []

    def make(script, *args):
        made.append(Other(script, *args))
        return made[-1]

    yield make
    for each in made:
        each.kill()
