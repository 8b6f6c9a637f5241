"""The loop: turns of one run, from `AgentStart` to `AgentEnd`.

1. It only emits events; nothing here knows who watches.
2. Whatever happens, what `Progress` says is open gets closed: every start has its end, one `AgentEnd`.
3. After an abort nothing is waited for but the grace period of tools, and no request is made.
"""

import asyncio
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from pydantic import JsonValue, ValidationError

from rxagent.engine.answer import Answer
from rxagent.engine.batch import Batch, BatchEnd, abandon
from rxagent.engine.scope import Ended, HookFailed, Scope
from rxagent.events import (
    AgentEnd,
    AgentStart,
    AnyEvent,
    ErrorInfo,
    Interrupted,
    MessageEnd,
    MessageStart,
    Outcome,
    TurnEnd,
    TurnStart,
)
from rxagent.hooks import HookTurn, Stop
from rxagent.messages import AnyMessage, AssistantMessage, ToolResultMessage

LENGTH = "the answer was cut at its maximum length, so this call may be incomplete and was not run; make it shorter"
FILTERED = "the provider's content filter ended the answer, so this call was not run"


@dataclass(frozen=True, slots=True)
class Resume:
    """Takes up an interrupted run: the seq of its `Interrupted`, and answers by interrupt id."""

    interrupted_at: int
    answers: dict[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    cancelled: tuple[str, ...] = ()


class Loop:
    """Drives one run to its end."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._answer = Answer(scope)
        self._error: ErrorInfo | None = None
        self._task: asyncio.Task[object] | None = None
        self._loop = asyncio.get_running_loop()

    async def run(self, messages: tuple[AnyMessage, ...], resume: Resume | None = None) -> None:
        """Runs until nothing is left to do. Model failures, aborts and limits are outcomes, not exceptions.

        Args:
            messages: the input, with ids.
            resume: the interrupted run to go on with.

        Raises:
            StoreError: the journal could not keep the run's end.
            asyncio.CancelledError: the task was cancelled from outside; the events are complete all the same.
        """
        scope = self._scope
        self._task = asyncio.current_task()
        forget = scope.signal.on_cancel(self._on_cancel)
        cancelled: asyncio.CancelledError | None = None
        try:
            outcome, error = await self._outcome(messages, resume)
        except asyncio.CancelledError as cancel:
            outcome, error = self._doomed() or ("aborted", None)
            if scope.signal.cancelled and self._task is not None:
                self._task.uncancel()
            else:
                cancelled = cancel
                scope.signal.cancel("cancelled")
        except Exception as failure:  # a run ends in an event, whatever broke
            outcome, error = "failed", ErrorInfo(f"{type(failure).__name__}: {failure}", "internal")
        scope.closing = True
        forget()
        for event in self._closing(outcome, error):
            pending = scope.session.publish(event)
            if pending is None or scope.signal.cancelled:
                continue  # once cancelled, nothing is waited for, so nothing can stop the end any more
            try:
                await scope.session.settle(pending)
            except asyncio.CancelledError:
                scope.signal.cancel("cancelled")
                scope.session.gate.open()
        await scope.session.acknowledged()
        if cancelled is not None:
            raise cancelled

    def _on_cancel(self) -> None:
        """Ends whatever the run waits for. Called from any thread."""
        try:
            here = asyncio.get_running_loop() is self._loop
        except RuntimeError:
            here = False
        if not here:
            self._loop.call_soon_threadsafe(self._on_cancel)
            return
        self._scope.session.gate.open()
        if self._task is not None and not self._scope.closing and asyncio.current_task() is not self._task:
            self._task.cancel()  # within the task itself the next check notices

    async def _outcome(self, messages: tuple[AnyMessage, ...], resume: Resume | None) -> tuple[Outcome, ErrorInfo | None]:
        try:
            await self._turns(messages, resume)
            return self._completed()
        except Ended as end:
            return self._doomed() or (end.outcome, end.error)
        except HookFailed as failure:
            return "failed", ErrorInfo(str(failure), "hook")

    def _doomed(self) -> tuple[Outcome, ErrorInfo] | None:
        """A critical listener failed: the abort that followed is a failure."""
        doom = self._scope.doom
        return None if doom is None else ("failed", doom)

    def _completed(self) -> tuple[Outcome, ErrorInfo | None]:
        """Completed, unless the answer isn't of the type that was asked for."""
        output, message = self._scope.output, self._scope.session.progress.message
        if output is not None and message is not None and not message.tool_calls:
            try:
                output.read(message.text)
            except ValidationError as error:
                return "failed", ErrorInfo(f"the answer does not fit the output type: {error}", "output")
        return "completed", None

    async def _turns(self, messages: tuple[AnyMessage, ...], resume: Resume | None) -> None:
        inbox = self._scope.inbox
        await self._begin(messages, resume)
        inputs = (*messages, *inbox.next_steering()) if resume is None else ()
        turn, go_on = 0, True
        if resume is not None:
            go_on = await self._resumed_turn()
            turn = 1
            inputs = inbox.next_steering()
        while True:
            if not go_on and not inputs:
                inputs = inbox.next_follow_ups()
                if not inputs:
                    return
            self._check_limits(turn)
            go_on = await self._turn(turn, inputs)
            turn += 1
            inputs = inbox.next_steering()

    async def _begin(self, messages: tuple[AnyMessage, ...], resume: Resume | None) -> None:
        if resume is None:
            event = AgentStart(messages, origin=self._scope.origin)
        else:
            event = AgentStart(messages, resume.interrupted_at, resume.answers, resume.cancelled, origin=self._scope.origin)
        await self._scope.emit(event)

    async def _turn(self, turn: int, inputs: Iterable[AnyMessage]) -> bool:
        """One turn; whether its tool results want another one."""
        scope = self._scope
        await scope.emit(TurnStart(turn, origin=scope.origin))
        for message in inputs:
            await self._take_in(message)
        message = await self._answer.get(turn)
        if message.stop_reason == "error":
            raise Ended("failed", self._answer.error)
        end = await self._tools(message)
        return await self._end_turn(turn, message, end)

    async def _resumed_turn(self) -> bool:
        """The first turn of a resumed run: the calls that have no result yet."""
        scope, progress = self._scope, self._scope.session.progress
        await scope.emit(TurnStart(0, origin=scope.origin))
        message = progress.message
        if message is None or not progress.unanswered:
            await scope.emit(TurnEnd(None, origin=scope.origin))
            return True
        return await self._end_turn(0, message, await Batch(scope).run())

    async def _take_in(self, message: AnyMessage) -> None:
        origin = self._scope.origin
        await self._scope.emit(MessageStart(message, origin=origin))
        end = MessageEnd(message, origin=origin)
        try:
            await self._scope.emit(end)
        finally:
            if end.seq >= 0:
                self._scope.inbox.delivered(message.id)

    async def _tools(self, message: AssistantMessage) -> BatchEnd:
        if not message.tool_calls:
            return BatchEnd()
        refusals = {"length": LENGTH, "content_filter": FILTERED}
        return await Batch(self._scope, refusals.get(message.stop_reason or "")).run()

    async def _end_turn(self, turn: int, message: AssistantMessage, end: BatchEnd) -> bool:
        scope = self._scope
        await scope.emit(TurnEnd(message, end.messages, origin=scope.origin))
        if end.interrupts:
            await scope.emit(Interrupted(end.interrupts, origin=scope.origin))
            raise Ended("interrupted")
        await self._after_turn(turn, message, end.messages)
        return bool(end.messages) and not end.terminate and message.stop_reason != "content_filter"

    async def _after_turn(self, turn: int, message: AssistantMessage, results: tuple[ToolResultMessage, ...]) -> None:
        scope = self._scope
        for hook in scope.config.hooks.after_turn:
            seen = HookTurn(turn, message, results, scope.session.state.messages, scope.hook_context())
            verdict = await scope.call("after_turn", hook, seen)
            if isinstance(verdict, Stop):
                raise Ended("completed")
            if verdict is not None:
                raise HookFailed("after_turn", TypeError(f"expected Stop() or None, got {verdict!r:.80}"))

    def _check_limits(self, turn: int) -> None:
        limits = self._scope.config.limits
        if limits.max_turns is not None and turn >= limits.max_turns:
            raise Ended("limit", ErrorInfo(f"max_turns: {turn} turns made, {limits.max_turns} allowed", "limit"))
        used_up = limits.used_up(self._scope.session.progress.usage)
        if used_up is not None:
            raise Ended("limit", ErrorInfo(used_up, "limit"))

    def _closing(self, outcome: Outcome, error: ErrorInfo | None) -> Iterator[AnyEvent]:
        """The events that end whatever is open, in the grammar's order; each is made when the last one is out."""
        progress, origin = self._scope.session.progress, self._scope.origin
        if not progress.run_open:
            yield AgentStart(origin=origin)
        if progress.turn < 0:
            yield TurnStart(0, origin=origin)
        if progress.turn_open:
            yield from self._closing_turn(outcome, error)
        yield AgentEnd(tuple(progress.appended), outcome, error, progress.usage, origin=origin)

    def _closing_turn(self, outcome: Outcome, error: ErrorInfo | None) -> Iterator[AnyEvent]:
        scope, progress = self._scope, self._scope.session.progress
        reason = error.message if error is not None else scope.signal.reason or outcome
        if progress.message is None and not progress.streaming:
            queued = {m.id for m in (*scope.inbox.steering, *scope.inbox.follow_ups)}
            for message in [m for m in progress.inputs if m.id not in queued]:  # the prompt is not lost with its run
                yield MessageStart(message, origin=scope.origin)
                yield MessageEnd(message, origin=scope.origin)
        yield from self._answer.close("aborted" if outcome == "aborted" else "error", reason)
        message = progress.message
        if message is not None and message.stop_reason not in ("error", "aborted"):
            yield from abandon(scope, reason)
        yield TurnEnd(message, progress.results, origin=scope.origin)
