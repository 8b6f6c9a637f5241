"""The calls of one answer: in parallel or one by one, within the limit, results in call order."""

import asyncio
from dataclasses import dataclass, field

from rxagent.engine.call import Call
from rxagent.engine.lost import decided, given_result, question_of
from rxagent.engine.progress import CallProgress
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
    """Runs the calls of the latest answer that have no result yet, and puts all results into the transcript.

    ``refusal``: run none, and give each this error result.
    """

    scope: Scope
    refusal: str | None = None
    _cut: str | None = field(default=None, init=False)
    _running: dict["asyncio.Task[None]", Call] = field(default_factory=dict["asyncio.Task[None]", Call], init=False)
    _interrupts: dict[str, tuple[Interrupt, ...]] = field(default_factory=dict[str, tuple[Interrupt, ...]], init=False)

    async def run(self) -> BatchEnd:
        """Runs them all; leaves no task behind, also when it is cancelled."""
        self.scope.inbox.on_interrupt = self._interrupt
        try:
            await self._run_all()
        except GeneratorExit:  # the loop was closed: nobody is left to wait
            raise
        except BaseException:
            self.cut(self.scope.signal.reason or "the run ended")
            if self._running:
                await asyncio.wait(tuple(self._running))  # each within its grace period; their results stand in the log
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
        waiting: list[Call] = []
        for past in self.scope.session.progress.unanswered:
            if past.result is None:
                call = Call(self.scope, past.call, tools.get(past.call.name))
                if not past.started or await self._go_on(call, past):
                    waiting.append(call)
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

    async def _go_on(self, call: Call, past: CallProgress) -> bool:
        """Takes up a call that was begun before: by this run in a process that died, or by the run this one resumes."""
        progress = self.scope.session.progress
        asked = tuple(i for i in progress.interrupts if i.call_id == call.id)
        if past.open and (call.resumable or self.refusal is not None):
            call.reopen()
        elif past.open or past.lost:
            return await self._recover(call, past)
        elif past.asked and past.started_at > progress.began_at:
            return self._asked_before(call, past)
        elif asked and not call.resumable:
            call.ask_again(asked)
        return True

    async def _recover(self, call: Call, past: CallProgress) -> bool:
        """Does what was decided about a call nobody knows the end of; False if there is nothing to run or to end."""
        progress = self.scope.session.progress
        decision = decided(past, progress, self.scope.recovery)
        if decision == "rerun":
            if past.open:
                await call.cut()
            return True
        if past.open:
            call.reopen()
        if decision != "ask":
            call.preset(given_result(call.name, decision))
            return True
        if past.asked and past.started_at > progress.began_at:
            return self._asked_before(call, past)
        call.ask_again((question_of(past, progress),), lost=True)
        return True

    def _asked_before(self, call: Call, past: CallProgress) -> bool:
        """The call has asked in this very run, whose process died before it could stop for the answers."""
        self._interrupts[call.id] = past.asked
        return False

    async def _wait(self, until: str) -> None:
        done, _ = await asyncio.wait(tuple(self._running), return_when=until)
        for task in done:
            call = self._running.pop(task)
            task.result()  # a call's failure is its result; what comes out here is the run's own (a store's, say)
            self._interrupts[call.id] = call.interrupts

    async def _collect(self) -> BatchEnd:
        scope, progress = self.scope, self.scope.session.progress
        interrupts = tuple(i for call_id in progress.calls for i in self._interrupts.get(call_id, ()))
        if interrupts:
            return BatchEnd(interrupts=interrupts)
        ends = [call.result for call in progress.calls.values() if call.result is not None]
        terminate = any(end.action for end in ends) or (len(ends) == len(progress.calls) and all(end.terminate for end in ends))
        for call in progress.unanswered:
            assert call.result is not None
            message = _opened(scope, call.call)
            if message is None:
                message = result_message(call.call, call.result)
                await scope.emit(MessageStart(message, origin=scope.origin))
            await scope.emit(MessageEnd(message, origin=scope.origin))
        return BatchEnd(progress.results, terminate=terminate)


def _opened(scope: Scope, call: ToolCall) -> ToolResultMessage | None:
    """The call's result message, where it has begun and not ended."""
    opened = scope.session.progress.opened
    return opened if isinstance(opened, ToolResultMessage) and opened.call_id == call.id else None


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
        message = _opened(scope, call)
        if message is None:
            message = result_message(call, result)
            messages.append(MessageStart(message, origin=origin))
        messages.append(MessageEnd(message, origin=origin))
    return [*events, *messages]
