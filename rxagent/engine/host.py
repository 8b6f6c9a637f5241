"""`Host`: the engine's side of a running tool call: progress, questions, children, handing over."""

import asyncio
from collections.abc import Sequence

from pydantic import JsonValue

from rxagent.engine.scope import Scope
from rxagent.errors import ToolFailed, Unserialisable
from rxagent.events import Custom, Handoff, Interrupt, Origin, ToolUpdate
from rxagent.flow.loops import on_loop
from rxagent.messages import AnyMessage, JsonObject, ToolCall, to_json_value
from rxagent.tools import Told


class Host:
    """What a tool's `ToolContext` reaches the run through. Does nothing any more once the call has ended."""

    def __init__(self, scope: Scope, call: ToolCall) -> None:
        self._scope = scope
        self._call = call
        self._args: JsonObject | str = call.arguments
        self._loop = asyncio.get_running_loop()
        self._asked: list[Interrupt] = []
        self._questions = 0
        self._ended = False

    @property
    def id(self) -> str:
        """The call's id."""
        return self._call.id

    @property
    def scope(self) -> Scope:
        """The surroundings of the run."""
        return self._scope

    @property
    def origin(self) -> Origin:
        """Session, run, agent and path."""
        return self._scope.origin

    @property
    def transcript(self) -> Sequence[AnyMessage]:
        """The messages of the agent whose call this is."""
        return self._scope.session.state.messages

    def update(self, call_id: str, partial: JsonValue) -> Told:
        """See `ToolContext.update`."""
        return self._tell(self.progress_event(partial))

    def emit(self, name: str, data: JsonValue) -> Told:
        """See `ToolContext.emit`."""
        return self._tell(Custom(name, data, origin=self._scope.origin))

    def answer(self, call_id: str, question: str, schema: JsonObject | None) -> tuple[bool, JsonValue]:
        """See `ToolContext.interrupt`."""
        key = str(self._questions)
        self._questions += 1
        known = self._scope.session.progress.answers
        interrupt_id = f"{self._call.id}:{key}"
        if interrupt_id in known:
            return True, known[interrupt_id]
        if not self.ask(key, question, schema):
            raise ToolFailed(f"the question {question!r} was cancelled")
        return False, None

    def waits_for(self, interrupts: Sequence[Interrupt]) -> None:
        """Notes questions that were asked below."""
        self._asked.extend(interrupts)

    async def hand_over(self, target: str) -> None:
        """Lets another agent take over when this turn is done.

        Raises:
            ToolFailed: the run has been handed over already.
        """
        progress = self._scope.session.progress
        source = self._scope.origin.agent
        if target == source:
            raise ToolFailed(f"{source} has the conversation already")
        if progress.successor not in (None, target):
            raise ToolFailed(f"the conversation was handed over to {progress.successor} already")
        if progress.successor is None and not self._ended:
            await self._scope.emit(Handoff(source, target, origin=self._scope.origin))

    def ask(self, key: str, question: str, schema: JsonObject | None) -> bool:
        """Notes a question; False if it was cancelled already. Raises `TypeError` where it can't be put into the log."""
        interrupt_id = f"{self._call.id}:{key}"
        if interrupt_id in self._scope.session.progress.cancelled:
            return False
        path = self._scope.origin.path
        text, form = _askable(question, schema)
        self._asked.append(Interrupt(interrupt_id, text, form, path, self._call.id, self._call.name))
        return True

    def progress_event(self, partial: JsonValue) -> ToolUpdate:
        """The event that reports progress."""
        return ToolUpdate(self._call.id, self._call.name, self._args, partial, origin=self._scope.origin)

    def _tell(self, event: ToolUpdate | Custom) -> Told:
        if self._ended:
            return Told()
        if on_loop(self._loop):
            return Told(self._scope.session.publish(event))
        asyncio.run_coroutine_threadsafe(self._from_thread(event), self._loop).result()
        return Told()

    async def _from_thread(self, event: ToolUpdate | Custom) -> None:
        if not self._ended:
            await self._scope.session.emit(event)


def _askable(question: object, schema: object) -> tuple[str, JsonObject | None]:
    """A question and its schema as the log can keep them; callers aren't all typed."""
    text = to_json_value(question, "a question") if isinstance(question, str) else None
    if not isinstance(text, str):
        raise TypeError(f"a question is text, not {question!r:.80}")
    if schema is None:
        return text, None
    try:
        form = to_json_value(schema, "the schema of a question")
    except Unserialisable:
        form = None
    if not isinstance(form, dict):
        raise TypeError(f"the schema of a question is a JSON schema, a dict such as {{'type': 'boolean'}}, not {schema!r:.80}")
    return text, form
