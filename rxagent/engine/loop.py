"""The loop: turns of one run, from `AgentStart` to `AgentEnd`.

1. It only emits events; nothing here knows who watches.
2. Whatever happens, what `Progress` says is open gets closed: every start has its end, one `AgentEnd`.
3. After an abort nothing is waited for but the grace period of tools, and no request is made.
"""

import asyncio
from collections.abc import Awaitable, Iterable
from dataclasses import dataclass, field
from typing import NoReturn

from pydantic import JsonValue, ValidationError

from rxagent.engine.answer import Answer
from rxagent.engine.batch import Batch, BatchEnd
from rxagent.engine.closing import closing
from rxagent.engine.config import matches
from rxagent.engine.scope import Ended, HookFailed, Scope
from rxagent.errors import told
from rxagent.events import (
    AgentStart,
    ConfigChanged,
    ErrorInfo,
    Interrupt,
    Interrupted,
    MessageEnd,
    MessageStart,
    Outcome,
    TurnEnd,
    TurnStart,
)
from rxagent.flow.loops import call_on, on_loop
from rxagent.hooks import HookTurn, Stop
from rxagent.messages import AnyMessage, AssistantMessage, ToolResultMessage

_Next = tuple[int, bool, tuple[AnyMessage, ...]]
"""The number of the next turn, whether the last one wants it, and the messages it takes in."""

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
            messages: the input, with ids; a resumed run takes it in when its calls are done.
            resume: the interrupted run to go on with.

        Raises:
            asyncio.CancelledError: the task was cancelled from outside; the events are complete all the same.
        """
        await self._drive(self._first(messages) if resume is None else self._resumed(messages, resume))

    async def take_up(self) -> None:
        """Goes on with the run that the log leaves open, and ends it as ``run`` does.

        An answer that was being streamed is withdrawn and asked for again; finished calls stand; of calls
        that had begun, `Scope.recovery` decides.
        """
        await self._drive(self._left())

    async def _drive(self, entry: Awaitable[_Next]) -> None:
        scope = self._scope
        self._task = asyncio.current_task()
        forget = scope.signal.on_cancel(self._on_cancel)
        cancelled: asyncio.CancelledError | None = None
        try:
            outcome, error = await self._outcome(entry)
        except asyncio.CancelledError as cancel:
            outcome, error = self._doomed() or ("aborted", None)
            if scope.signal.cancelled and self._task is not None:
                self._task.uncancel()
            else:
                cancelled = cancel
                scope.signal.cancel("cancelled")
        except Exception as failure:  # a run ends in an event, whatever broke
            outcome, error = "failed", ErrorInfo(told(failure), "internal")
        scope.closing = True
        forget()
        for event in closing(scope, self._answer, outcome, error):
            pending = scope.session.publish(event)
            if pending is None or scope.signal.cancelled:
                continue  # once cancelled, nothing is waited for, so nothing can stop the end any more
            try:
                await scope.session.settle(pending)
            except asyncio.CancelledError:
                scope.signal.cancel("cancelled")
                scope.session.let_go()
        if cancelled is not None:
            raise cancelled

    def _on_cancel(self) -> None:
        """Ends whatever the run waits for. Called from any thread."""
        if not on_loop(self._loop):
            call_on(self._loop, self._on_cancel)
            return
        self._scope.session.let_go()
        if self._task is not None and not self._scope.closing and asyncio.current_task() is not self._task:
            self._task.cancel()  # within the task itself the next check notices

    async def _outcome(self, entry: Awaitable[_Next]) -> tuple[Outcome, ErrorInfo | None]:
        try:
            await self._turns(await entry)
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

    async def _turns(self, after: _Next) -> None:
        inbox = self._scope.inbox
        turn, go_on, inputs = after
        while True:
            if not go_on and not inputs:
                inputs = inbox.next_follow_ups()
                if not inputs:
                    return
            self._check_limits(turn)
            go_on = await self._turn(turn, inputs)
            turn += 1
            inputs = inbox.next_steering()

    async def _first(self, messages: tuple[AnyMessage, ...]) -> _Next:
        await self._scope.emit(AgentStart(messages, origin=self._scope.origin))
        return 0, True, (*messages, *self._scope.inbox.next_steering())

    async def _resumed(self, messages: tuple[AnyMessage, ...], resume: Resume) -> _Next:
        scope = self._scope
        start = AgentStart(messages, resume.interrupted_at, resume.answers, resume.cancelled, origin=scope.origin)
        await scope.emit(start)
        go_on = await self._resumed_turn()
        return 1, go_on, (*messages, *scope.inbox.next_steering())

    async def _left(self) -> _Next:
        """The rest of what a process that died was doing."""
        progress, inbox = self._scope.session.progress, self._scope.inbox
        turn, go_on = progress.turn, True
        if turn < 0 and progress.resumed:
            turn, go_on = 0, await self._resumed_turn()
        elif progress.turn_open:
            go_on = await self._rest_of_turn(turn)
        elif progress.stopped:
            raise Ended("interrupted")
        elif questions := tuple(question for call in progress.unanswered for question in call.asked):
            await self._stop(questions)
        elif turn >= 0 and progress.message is not None:
            self._check_answer(progress.message)
            go_on = await self._turn_over(turn, progress.message, progress.results, go_on=progress.went_on)
        return turn + 1, go_on, (*progress.inputs, *inbox.next_steering())

    async def _rest_of_turn(self, turn: int) -> bool:
        progress = self._scope.session.progress
        message = progress.message
        if progress.resumed and turn == 0:
            return await self._unanswered(message)
        if message is None:
            if progress.opened is not None:
                await self._taken_in(progress.opened)
            for waiting in self._rest_of_inputs():
                await self._take_in(waiting)
            if progress.streaming:
                await self._answer.withdraw()
            message = await self._answer.get(turn)
        self._check_answer(message)
        end = await self._tools(message)
        return await self._end_turn(turn, message, end)

    def _check_answer(self, message: AssistantMessage) -> None:
        """Ends the run after an answer that failed or was aborted."""
        if message.stop_reason == "error":
            raise Ended("failed", self._answer.error or ErrorInfo(message.error_message or "the answer failed"))
        if message.stop_reason == "aborted":
            raise Ended("aborted")

    def _rest_of_inputs(self) -> tuple[AnyMessage, ...]:
        """What the open turn had still to take in."""
        progress, inbox = self._scope.session.progress, self._scope.inbox
        queued: tuple[AnyMessage, ...] = ()
        if "follow_ups" in progress.taken:
            queued = inbox.next_follow_ups() if inbox.follow_up_mode == "all" else ()
        elif not progress.taken or inbox.steering_mode == "all":
            queued = inbox.next_steering()
            if not queued and not progress.taken and not progress.went_on and not progress.inputs:
                queued = inbox.next_follow_ups()
        return (*progress.inputs, *queued)

    async def _turn(self, turn: int, inputs: Iterable[AnyMessage]) -> bool:
        """One turn; whether its tool results want another one."""
        scope = self._scope
        await scope.emit(TurnStart(turn, origin=scope.origin))
        for message in inputs:
            await self._take_in(message)
        message = await self._answer.get(turn)
        self._check_answer(message)
        end = await self._tools(message)
        return await self._end_turn(turn, message, end)

    async def _resumed_turn(self) -> bool:
        """The first turn of a resumed run: the calls that have no result yet."""
        await self._scope.emit(TurnStart(0, origin=self._scope.origin))
        return await self._unanswered(self._scope.session.progress.message)

    async def _unanswered(self, message: AssistantMessage | None) -> bool:
        assert message is not None  # what interrupts is a call, and a call has an answer that made it
        return await self._end_turn(0, message, await Batch(self._scope).run())

    async def _take_in(self, message: AnyMessage) -> None:
        await self._scope.emit(MessageStart(message, origin=self._scope.origin))
        await self._taken_in(message)

    async def _taken_in(self, message: AnyMessage) -> None:
        end = MessageEnd(message, origin=self._scope.origin)
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
            await self._stop(end.interrupts)
        go_on = bool(end.messages) and not end.terminate and message.stop_reason != "content_filter"
        return await self._turn_over(turn, message, end.messages, go_on=go_on)

    async def _stop(self, questions: tuple[Interrupt, ...]) -> NoReturn:
        """Ends the run until there are answers."""
        await self._scope.emit(Interrupted(questions, origin=self._scope.origin))
        raise Ended("interrupted")

    async def _turn_over(
        self, turn: int, message: AssistantMessage, results: tuple[ToolResultMessage, ...], *, go_on: bool
    ) -> bool:
        """After a turn: the hook, and another agent where one takes over; whether there is to be another turn."""
        await self._after_turn(turn, message, results)
        scope = self._scope
        successor = scope.session.progress.successor
        if successor is None:
            return go_on
        scope.become(scope.find(successor))
        config = scope.setup.config()
        if not matches(config, scope.session.state):
            await scope.emit(ConfigChanged(config, origin=scope.origin))
        return True

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
