"""`rxagent run --mode rpc`: an agent as a process, JSON Lines both ways on stdio.

In, one command a line, with an ``id`` of the caller's choice (or none)::

    {"id": 1, "type": "prompt", "text": "…"}            starts a run
    {"type": "steer", "text": "…", "interrupt": false}   reaches the running run
    {"type": "follow_up", "text": "…"}                   for when it would stop
    {"type": "abort", "reason": "…"}                     ends it
    {"type": "answer", "answers": {"ID": …}, "cancelled": ["ID"]}   goes on after an interrupt
    {"type": "state"}                                    the present state
    {"type": "continue"} {"type": "retry"} {"type": "reset"}

Out: each event of the session as in JSON mode, and for each command
``{"type": "response", "id": …, "command": …, "ok": true, "result": …}`` or ``"ok": false, "error": …``.
At the end of its input the process ends, once the run is over.
"""

import asyncio
import sys
import threading
from collections.abc import Callable
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, JsonValue, TypeAdapter, ValidationError
from pydantic_core import from_json
from pydantic_core import to_json as value_to_json

from rxagent.cli.state_json import state_object
from rxagent.cli.terminal import Terminal
from rxagent.engine import Agent, Run
from rxagent.engine.launch import Cancel, with_answers
from rxagent.errors import RxAgentError, UsageError
from rxagent.runner import Runner

_LONGEST = 64 << 20  # bytes of one command


class _Command(BaseModel):
    model_config = ConfigDict(extra="forbid")

    id: JsonValue = None


class _Prompt(_Command):
    type: Literal["prompt"]
    text: str


class _Steer(_Command):
    type: Literal["steer"]
    text: str
    interrupt: bool = False


class _FollowUp(_Command):
    type: Literal["follow_up"]
    text: str


class _Abort(_Command):
    type: Literal["abort"]
    reason: str | None = None


class _Answer(_Command):
    type: Literal["answer"]
    answers: dict[str, JsonValue] = Field(default_factory=dict[str, JsonValue])
    cancelled: list[str] = Field(default_factory=list[str])


class _Plain(_Command):
    type: Literal["state", "continue", "retry", "reset"]


_COMMANDS: TypeAdapter[_Prompt | _Steer | _FollowUp | _Abort | _Answer | _Plain] = TypeAdapter(
    Annotated[_Prompt | _Steer | _FollowUp | _Abort | _Answer | _Plain, Discriminator("type")]
)


class Rpc:
    """Serves one agent on stdio."""

    def __init__(self, runner: Runner, agent: Agent, terminal: Terminal) -> None:
        self._runner = runner
        self._agent = agent
        self._terminal = terminal
        self._run: Run | None = None
        self._lines: asyncio.Queue[bytes | None] = asyncio.Queue(maxsize=64)
        self._loop = asyncio.get_running_loop()

    async def serve(self) -> Run | None:
        """Serves until the input ends and the last run is over; gives that run."""
        threading.Thread(target=self._read, daemon=True, name="rxagent stdin").start()
        while (line := await self._lines.get()) is not None:
            if line.strip():
                self._respond(line)
        if self._run is not None:
            await self._run.ended()
        return self._run

    def abort(self) -> None:
        """Ends the running run and the serving."""
        self._agent.abort("by Ctrl-C")
        while not self._lines.empty():
            self._lines.get_nowait()
        self._lines.put_nowait(None)

    def _read(self) -> None:
        """Reads stdin on a thread of its own: it may be a file, a pipe or a terminal. Waits while commands wait."""
        while True:
            try:
                line = sys.stdin.buffer.readline(_LONGEST)
            except (OSError, ValueError):
                line = b""
            try:
                asyncio.run_coroutine_threadsafe(self._lines.put(line or None), self._loop).result()
            except Exception:  # the loop is gone, and with it whoever would listen
                return
            if not line:
                return

    def _respond(self, line: bytes) -> None:
        command: JsonValue = None
        name: JsonValue = None
        try:
            command = from_json(line)
            name = command.get("type") if isinstance(command, dict) else None
            parsed = _COMMANDS.validate_python(command)
            self._tell({"id": parsed.id, "command": parsed.type, "ok": True, "result": self._do(parsed)})
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            at = ".".join(str(step) for step in first["loc"])
            self._refuse(command, name, f"{f'{at}: ' if at else ''}{first['msg']}")
        except ValueError as error:
            self._refuse(command, name, f"no JSON: {error}" if command is None else str(error))
        except RxAgentError as error:
            self._refuse(command, name, f"{type(error).__name__}: {error}")

    def _refuse(self, command: JsonValue, name: JsonValue, why: str) -> None:
        asked = command.get("id") if isinstance(command, dict) else None
        self._tell({"id": asked, "command": name, "ok": False, "error": why})

    def _tell(self, response: dict[str, JsonValue]) -> None:
        self._terminal.answer.write(f"{value_to_json({'type': 'response', **response}).decode()}\n")

    def _do(self, command: _Prompt | _Steer | _FollowUp | _Abort | _Answer | _Plain) -> JsonValue:
        agent = self._agent
        match command:
            case _Prompt():
                return self._began(agent.prompt(command.text))
            case _Steer():
                agent.steer(command.text, interrupt=command.interrupt)
            case _FollowUp():
                agent.follow_up(command.text)
            case _Abort():
                agent.abort(command.reason)
            case _Answer():
                settled: dict[str, object] = {**command.answers, **{key: Cancel() for key in command.cancelled}}
                if agent.is_running:
                    raise UsageError("answer: a run is going; it has to end first")
                with_answers(agent.session, settled)  # what is refused is refused in the response
                return self._began(self._runner.resume(agent.session_id, settled))
            case _Plain(type="state"):
                return state_object(agent.state)
            case _Plain():
                begin: dict[str, Callable[[], Run | None]] = {
                    "continue": agent.continue_,
                    "retry": agent.retry,
                    "reset": agent.reset,
                }
                run = begin[command.type]()
                return None if run is None else self._began(run)
        return None

    def _began(self, run: Run) -> JsonValue:
        self._run = run
        return {"run_id": run.run_id, "session_id": run.origin.session_id}
