"""The calls of one answer: in parallel or one by one, within the limit, results in call order."""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field

from rxagent.engine.call import Call, Done
from rxagent.engine.scope import Scope
from rxagent.engine.session import new_id, wall_clock
from rxagent.events import Interrupt, MessageEnd, MessageStart, ToolEnd, ToolStart
from rxagent.messages import ToolCall, ToolResult, ToolResultMessage
from rxagent.tools import error_result


def result_message(call: ToolCall, result: ToolResult) -> ToolResultMessage:
    """The transcript's form of a call's result."""
    return ToolResultMessage(
        call.id,
        call.name,
        result.content,
        details=result.details,
        is_error=result.is_error,
        summary=result.summary,
        id=new_id(),
        timestamp=wall_clock()(),
    )


@dataclass(slots=True)
class BatchEnd:
    """How a batch ended. ``interrupts`` not empty: its result messages wait for the resumed run."""

    messages: tuple[ToolResultMessage, ...] = ()
    interrupts: tuple[Interrupt, ...] = ()
    terminate: bool = False


@dataclass(slots=True)
class Batch:
    """Runs the calls of one answer that have no result yet.

    ``refusal``: run none, and give each this error result. ``finished``: results of an earlier run.
    """

    scope: Scope
    calls: tuple[ToolCall, ...]
    refusal: str | None = None
    finished: dict[str, ToolResult] = field(default_factory=dict[str, ToolResult])
    _cut: str | None = field(default=None, init=False)
    _running: dict["asyncio.Task[Done]", Call] = field(default_factory=dict["asyncio.Task[Done]", Call], init=False)
    _done: dict[str, Done] = field(default_factory=dict[str, Done], init=False)

    async def run(self) -> BatchEnd:
        """Runs them all; leaves no task behind, also when it is cancelled."""
        self.scope.inbox.on_interrupt = self._interrupt
        try:
            await self._run_all()
        except BaseException:
            await self._stop()
            raise
        finally:
            self.scope.inbox.on_interrupt = None
        return await self._collect()

    def cut(self, reason: str) -> None:
        """Cancels what runs; what hasn't begun gets an error result instead."""
        self._cut = reason
        for call in self._running.values():
            call.cancel(reason)

    def _interrupt(self) -> None:
        self.cut("interrupted by a new message")

    async def _run_all(self) -> None:
        tools = {tool.declaration.name: tool for tool in self.scope.setup.tools}
        waiting = [Call(self.scope, call, tools.get(call.name)) for call in self.calls if call.id not in self.finished]
        one_by_one = self.scope.config.tool_mode == "sequential" or any(call.sequential for call in waiting)
        most = 1 if one_by_one else self.scope.config.limits.max_parallel_tools
        for call in waiting:
            while most is not None and len(self._running) >= most:
                await self._wait(asyncio.FIRST_COMPLETED)
            if self.refusal is not None or self._cut is not None:
                call.refuse(self.refusal or f"{call.name} was not run: {self._cut}")
            await call.announce()
            self._running[call.start()] = call
        while self._running:
            await self._wait(asyncio.ALL_COMPLETED)

    async def _wait(self, until: str) -> None:
        done, _ = await asyncio.wait(tuple(self._running), return_when=until)
        self._take(done)

    def _take(self, tasks: Iterable["asyncio.Task[Done]"]) -> None:
        for task in tasks:
            self._done[self._running.pop(task).id] = task.result()

    async def _stop(self) -> None:
        """Ends what still runs, within its grace period, keeping the results that are there."""
        self.cut(self.scope.signal.reason or "the run ended")
        if self._running:
            done, _ = await asyncio.wait(tuple(self._running))
            self._take(done)

    async def _collect(self) -> BatchEnd:
        results = {**self.finished, **{call_id: done.result for call_id, done in self._done.items()}}
        interrupts = tuple(i for call in self.calls if (done := self._done.get(call.id)) for i in done.interrupts)
        if interrupts:
            return BatchEnd(interrupts=interrupts)
        messages: list[ToolResultMessage] = []
        for call in self.calls:
            message = result_message(call, results[call.id])
            await self.scope.emit(MessageStart(message, origin=self.scope.origin))
            await self.scope.emit(MessageEnd(message, origin=self.scope.origin))
            messages.append(message)
        terminate = bool(self.calls) and all(results[call.id].terminate for call in self.calls)
        return BatchEnd(tuple(messages), terminate=terminate)


def abandon(scope: Scope, reason: str) -> list[ToolStart | ToolEnd | MessageStart | MessageEnd]:
    """The events that end the calls a run leaves open: finished results stand, all else is an error."""
    events: list[ToolStart | ToolEnd | MessageStart | MessageEnd] = []
    messages: list[MessageStart | MessageEnd] = []
    origin = scope.origin
    for progress in scope.session.progress.unanswered:
        call, result = progress.call, progress.result
        if result is None:
            result = error_result(f"{call.name} was not finished: {reason}")
            if not progress.started or progress.interrupted:
                events.append(ToolStart(call.id, call.name, call.invalid or call.arguments, origin=origin))
            events.append(ToolEnd(call.id, call.name, call.arguments, result, is_error=True, origin=origin))
        message = result_message(call, result)
        messages += [MessageStart(message, origin=origin), MessageEnd(message, origin=origin)]
    return [*events, *messages]
