"""One answer: requests to the model, their streams as events, retries and fallbacks."""

import asyncio
from collections.abc import AsyncIterable, AsyncIterator
from contextlib import suppress
from dataclasses import replace

from reactivex import Observable

from rxagent.engine.closing import LeftAnswer
from rxagent.engine.request import prepare, with_key
from rxagent.engine.scope import Ended, Scope
from rxagent.engine.session import new_id, wall_clock
from rxagent.engine.watch import Watch
from rxagent.errors import RxAgentError, told
from rxagent.events import (
    Draft,
    ErrorInfo,
    MessageEnd,
    MessageStart,
    ModelError,
    ModelEvent,
    ModelRetry,
    ResponseEnd,
    ResponseStart,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    ToolCallStart,
)
from rxagent.events.model_check import check
from rxagent.flow import to_aiter
from rxagent.messages import AssistantMessage, StopReason
from rxagent.models.base import Model, ModelRequest

NO_CALL = "the model's stream held arguments of a call that had not begun, or had ended"

DELTAS = (TextDelta, ThinkingDelta, ToolCallDelta)


def error_info(error: ModelError) -> ErrorInfo:
    """A model's error as it stands in agent events."""
    return ErrorInfo(error.message, error.kind, error.retryable, error.retry_after, error.status)


class Answer:
    """Gets one assistant message from the models of a run."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._draft: Draft | None = None
        self._started = False
        self._ids: set[str] = set()
        self.error: ErrorInfo | None = None

    async def get(self, turn: int) -> AssistantMessage:
        """Asks until there is an answer or no attempt is left; a failed answer has stop reason ``error``."""
        scope = self._scope
        request = await prepare(scope, turn)
        policy = scope.config.retry
        models = list(scope.setup.models)
        failures, failures_of_model = scope.session.progress.attempts, 0
        while True:
            keyed = await with_key(scope, models[0], request)
            if self._draft is None:
                self._open(models[0])
            end = await self._attempt(models[0], keyed)
            if isinstance(end, ResponseEnd):
                return await self._finish(end)
            failures += 1
            failures_of_model += 1
            again = end.retryable and failures_of_model < policy.attempts
            delay = policy.delay(failures_of_model, end.retry_after) if again else None
            if delay is None:
                if len(models) == 1:
                    return await self._fail(end)
                models.pop(0)
                failures_of_model, delay = 0, 0.0
            retry = ModelRetry(failures, delay, error_info(end), models[0].name, origin=scope.origin)
            try:
                await scope.emit(retry)
            finally:
                if retry.seq >= 0:  # it is out: an abort from here on leaves an empty answer of the next attempt
                    self._open(models[0])
            await asyncio.sleep(delay)

    async def withdraw(self) -> None:
        """Takes back what a process that died had begun to stream."""
        scope = self._scope
        error = ErrorInfo("the process ended while the answer was being streamed", "process", retryable=True)
        attempt = scope.session.progress.attempts + 1
        await scope.emit(ModelRetry(attempt, 0.0, error, scope.setup.models[0].name, origin=scope.origin))

    def close(self, stop_reason: StopReason, reason: str) -> list[MessageStart | MessageEnd]:
        """The events that end an answer in flight, what came of it kept; none if there is none."""
        draft, progress = self._draft, self._scope.session.progress
        if draft is None:
            return LeftAnswer(self._scope).close(stop_reason, reason)
        if progress.message is not None and progress.message.id == draft.id:
            return []
        origin = self._scope.origin
        end = MessageEnd(draft.finish(stop_reason, error_message=reason), origin=origin)
        return [end] if progress.streaming else [MessageStart(draft.message(), origin=origin), end]

    def _open(self, model: Model) -> None:
        self._draft = Draft(new_id(), wall_clock()(), model.name)
        self._started = False
        self._scope.session.call_ids.difference_update(self._ids)  # those of an attempt that was withdrawn are free again
        self._ids = set()

    async def _start(self, draft: Draft) -> None:
        await self._scope.emit(MessageStart(draft.message(), origin=self._scope.origin))
        self._started = True

    async def _finish(self, end: ResponseEnd) -> AssistantMessage:
        draft = self._draft
        assert draft is not None
        if not self._scope.session.progress.streaming:
            await self._start(draft)
        message = draft.finish(end.stop_reason, usage=end.usage, replay=end.replay)
        wanted: StopReason = "tool_use" if message.tool_calls else "stop"
        if message.stop_reason in ("stop", "tool_use") and message.stop_reason != wanted:  # whatever the server said
            message = replace(message, stop_reason=wanted)
        await self._scope.emit(MessageEnd(message, origin=self._scope.origin))
        self._draft, self._ids = None, set()
        return message

    async def _fail(self, error: ModelError) -> AssistantMessage:
        draft = self._draft
        assert draft is not None
        self.error = error_info(error)
        if not self._scope.session.progress.streaming:
            await self._start(draft)
        message = draft.finish("error", error_message=error.message)
        await self._scope.emit(MessageEnd(message, origin=self._scope.origin))
        self._draft, self._ids = None, set()
        return message

    async def _attempt(self, model: Model, request: ModelRequest) -> ResponseEnd | ModelError:
        """One request. The stream is closed when this returns, also by an abort or a timeout."""
        limits = self._scope.config.limits
        self._scope.check()
        watch = Watch(limits.first_event_timeout, limits.idle_timeout)
        stream: AsyncIterator[ModelEvent] | None = None
        try:
            with watch:
                stream = aiter(_pulled(model, request))
                return await self._play(stream, watch)
        except asyncio.CancelledError:
            if watch.expired is None or self._scope.signal.cancelled:
                raise
            task = asyncio.current_task()
            assert task is not None
            task.uncancel()
            what = "no event within" if not self._started else "nothing more for"
            return ModelError("timeout", f"{model.name}: {what} {watch.expired:g} s", retryable=True)
        except (Ended, RxAgentError):  # the run's own: an abort, a store that failed
            raise
        except Exception as error:  # a model must not raise; one that does is reported as what it is
            return ModelError("server", f"{model.name} raised {told(error)}")
        finally:
            await _closed(stream, limits.grace)

    async def _play(self, stream: AsyncIterator[ModelEvent], watch: Watch) -> ResponseEnd | ModelError:
        """Turns model events into agent events until the terminal one. The hot path of the whole engine."""
        scope, draft = self._scope, self._draft
        assert draft is not None
        session, origin, signal = scope.session, scope.origin, scope.signal
        streaming = scope.config.streaming
        now = watch.now
        async for event in stream:
            watch.at = now()
            if not (type(event) is TextDelta or isinstance(event, DELTAS)) or not self._started:
                if isinstance(event, ResponseEnd | ModelError):
                    check(event)
                    return event
                event = await self._boundary(draft, event, watch)  # noqa: PLW2901 - the same event under an id that is free
                if event is None:
                    continue
            if type(event) is not TextDelta and isinstance(event, ToolCallDelta) and not draft.is_calling(event.index):
                return ModelError("protocol", NO_CALL, retryable=True)
            message = draft.add(event)
            if not streaming:
                continue
            pending = session.update(event, message, origin)
            if pending is not None:
                watch.pause()
                await session.settle(pending)
                watch.seen()
            if signal.cancelled:
                raise Ended("aborted")
        return ModelError("protocol", "the model's stream ended before its end", retryable=True)

    async def _boundary(self, draft: Draft, event: ModelEvent, watch: Watch) -> ModelEvent | None:
        """Begins the message with its first event; None: there is no update to show for it."""
        check(event)
        if isinstance(event, ToolCallStart):
            event = self._identified(event)
        if self._started:
            return event
        watch.started()
        first = isinstance(event, ResponseStart)
        if first:
            draft.add(event)  # the start of the message tells the name the model gives itself
        watch.pause()
        await self._start(draft)
        watch.seen()
        return None if first else event

    def _identified(self, event: ToolCallStart) -> ToolCallStart:
        """The call under an id that is new to the session, whatever the provider sent."""
        known = self._scope.session.call_ids
        taken = not event.id or event.id in known
        call_id = f"call_{new_id()[:24]}" if taken else event.id
        self._ids.add(call_id)
        known.add(call_id)  # at once: other agents of the session may be answering at the same time
        return replace(event, id=call_id) if taken else event


def _pulled(model: Model, request: ModelRequest) -> AsyncIterable[ModelEvent]:
    stream = model.stream(request)
    if isinstance(stream, Observable):
        return to_aiter(stream, capacity=1024)
    return stream


async def _closed(stream: AsyncIterator[ModelEvent] | None, grace: float) -> None:
    aclose = getattr(stream, "aclose", None)
    if aclose is not None:
        with suppress(Exception):  # the answer is over; how its transport closes is not the run's concern
            async with asyncio.timeout(grace):
                await aclose()
