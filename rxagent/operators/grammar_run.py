"""One run under the grammar: walks `grammar.TABLE` and checks what a table can't say (ids, turns, calls, results)."""

from dataclasses import dataclass, field
from typing import cast

from rxagent.events import agent as e
from rxagent.messages import AssistantMessage, ToolResultMessage
from rxagent.operators.grammar import TABLE, At, RunEvent, expected_at, fault, sign_of


@dataclass(slots=True)
class Batch:
    """The calls of one answer. ``calls`` is None where the answer wasn't seen, in a stream joined late."""

    calls: tuple[str, ...] | None
    started: list[str] = field(default_factory=list[str])
    open: dict[str, str] = field(default_factory=dict[str, str])
    ended: set[str] = field(default_factory=set[str])
    interrupted: set[str] = field(default_factory=set[str])
    results: list[str] = field(default_factory=list[str])

    def resumed(self) -> "Batch":
        """The batch as the resumed run finds it: its interrupted calls may start again, the others are done."""
        return Batch(self.calls, ended=set(self.ended), interrupted=set(self.interrupted))

    def due(self) -> list[str]:
        """The calls that get a result message, in call order."""
        order = self.started if self.calls is None else self.calls
        return [call for call in order if call in self.ended]


@dataclass(slots=True)
class Session:
    """What is known of the whole session. ``whole``: it was seen from its first event."""

    whole: bool
    message_ids: set[str] = field(default_factory=set[str])
    call_ids: set[str] = field(default_factory=set[str])
    waiting: dict[str, Batch] = field(default_factory=dict[str, Batch])
    interrupted_at: set[int] = field(default_factory=set[int])


class RunGrammar:
    """Checks the events of one run, in order."""

    def __init__(self, start: e.AgentStart, session: Session) -> None:
        self.path = start.origin.path
        self.call_id = start.origin.call_id
        self._session = session
        self._at = At.STARTED
        self._resumes = start.resumes is not None
        self._turn = -1
        self._attempts = 0
        self._message = ""
        self._answer: AssistantMessage | None = None
        self._batch: Batch | None = None
        self._appended: list[str] = []
        self._ended_interrupted = False

    def in_call(self, call_id: str = "") -> bool:
        """Whether this tool call is open; without an id, whether any is."""
        if self._batch is None:
            return False
        return call_id in self._batch.open if call_id else bool(self._batch.open)

    def expected(self) -> str:
        """Where the run is and what may follow."""
        return f"{self._at.value}: {expected_at(self._at)}"

    def take(self, event: RunEvent) -> None:
        """Takes one event in; raises `GrammarError` where it has no place."""
        after = TABLE[self._at].get(sign_of(event))
        if after is None:
            raise fault(event, self.expected())
        if isinstance(event, e.MessageUpdate):
            self._update(event)
        elif isinstance(event, e.MessageStart | e.MessageEnd | e.ModelRetry):
            after = self._message_level(event, after)
        elif isinstance(event, e.ToolStart | e.ToolUpdate | e.ToolEnd):
            self._tool_level(event)
        else:
            after = self._run_level(event, after)
        self._at = after

    def _update(self, event: e.MessageUpdate) -> None:
        # An update read by itself has no message; its place is all that can be checked.
        message = cast("AssistantMessage | None", event.message)
        if message is not None and message.id != self._message:
            raise fault(event, f"it belongs to message {message.id!r}, but {self._message!r} is open")

    def _run_level(self, event: e.AgentStart | e.TurnStart | e.TurnEnd | e.Interrupted | e.AgentEnd, after: At) -> At:
        match event:
            case e.TurnStart():
                return self._turn_start(event)
            case e.TurnEnd():
                self._turn_end(event)
            case e.Interrupted():
                if not event.interrupts:
                    raise fault(event, "expected at least one interrupt in it")
                self._ended_interrupted = True
                self._session.interrupted_at.add(event.seq)
            case e.AgentEnd():
                self._agent_end(event)
            case e.AgentStart():
                pass
        return after

    # -- messages

    def _message_level(self, event: e.MessageStart | e.MessageEnd | e.ModelRetry, after: At) -> At:
        match event:
            case e.ModelRetry():
                self._attempts += 1
                if event.attempt != self._attempts:
                    raise fault(event, f"expected attempt {self._attempts}, not {event.attempt}")
                return after
            case e.MessageStart():
                return self._message_start(event, after)
            case e.MessageEnd():
                self._message_end(event)
                return after

    def _message_start(self, event: e.MessageStart, after: At) -> At:
        message = event.message
        if not message.id:
            raise fault(event, "expected a message id that is not empty")
        if message.id in self._session.message_ids:
            raise fault(event, "expected a message id that is new in the session")
        self._message = message.id
        if after is not At.RESULT:
            return after
        assert isinstance(message, ToolResultMessage)
        if self._at is At.FRESH and not self._reopen(message.call_id):
            return At.INPUT
        self._result_start(event, message.call_id)
        return after

    def _message_end(self, event: e.MessageEnd) -> None:
        message = event.message
        if message.id != self._message:
            raise fault(event, f"expected the end of message {self._message!r}")
        if message.id in self._session.message_ids:
            raise fault(event, "expected a message id that is new in the session")
        self._session.message_ids.add(message.id)
        self._appended.append(message.id)
        if isinstance(message, AssistantMessage):
            self._answered(event, message)
        elif isinstance(message, ToolResultMessage) and self._at is At.RESULT:
            assert self._batch is not None
            if message.call_id != self._batch.results[-1]:
                raise fault(event, f"expected the result of call {self._batch.results[-1]!r}, as at its start")

    def _answered(self, event: e.MessageEnd, message: AssistantMessage) -> None:
        self._answer = message
        known = self._session.call_ids
        for call in message.tool_calls:
            if not call.id:
                raise fault(event, f"expected an id for its call of {call.name}")
            if call.id in known:
                raise fault(event, f"expected call ids that are new in the session, not {call.id!r} again")
            known.add(call.id)
        self._batch = Batch(tuple(call.id for call in message.tool_calls))

    # -- tools

    def _tool_level(self, event: e.ToolStart | e.ToolUpdate | e.ToolEnd) -> None:
        if isinstance(event, e.ToolStart):
            self._tool_start(event)
            return
        assert self._batch is not None
        batch = self._batch
        name = batch.open.get(event.call_id)
        if name is None:
            raise fault(event, f"call {event.call_id!r} is not open; open are {', '.join(batch.open) or 'none'}")
        if name != event.tool_name:
            raise fault(event, f"the call was started as {name!r}")
        if isinstance(event, e.ToolEnd):
            self._unrun(event)
            del batch.open[event.call_id]
            batch.ended.add(event.call_id)
            if event.interrupted:
                batch.interrupted.add(event.call_id)

    def _unrun(self, event: e.ToolEnd) -> None:
        reason = None if self._answer is None else self._answer.stop_reason
        if reason in ("error", "aborted", "length") and not (event.is_error and not event.interrupted):
            raise fault(event, f"no call of an answer that ended with {reason!r} runs; expected an error as its result")

    def _tool_start(self, event: e.ToolStart) -> None:
        call = event.call_id
        if self._at is At.FRESH and not self._reopen(call):
            raise fault(event, "no call of this id waits for a resumed run; expected one that was interrupted")
        batch = self._batch
        assert batch is not None
        if not call:
            raise fault(event, "expected a call id that is not empty")
        if call in batch.open or (call in batch.ended and call not in batch.interrupted):
            raise fault(event, "the call has started before; expected one that has not, or that was interrupted")
        if batch.calls is not None and call not in batch.calls:
            raise fault(event, f"the answer asked for no such call; expected one of {', '.join(batch.calls) or 'none'}")
        if call not in batch.started:  # else it was interrupted and is settled within the same turn: out of order
            self._in_order(event, batch)
            batch.started.append(call)
        batch.open[call] = event.tool_name
        batch.ended.discard(call)
        batch.interrupted.discard(call)

    def _in_order(self, event: e.ToolStart, batch: Batch) -> None:
        if batch.calls is not None and batch.started:
            last = batch.started[-1]
            if batch.calls.index(last) > batch.calls.index(event.call_id):
                raise fault(event, f"calls start in call order, and {last!r}, which stands behind it, has started")

    def _reopen(self, call: str) -> bool:
        """Takes up the batch that a call waits in; in a session joined late, an unknown call makes one."""
        waiting = self._session.waiting.get(call)
        if waiting is not None:
            self._batch = waiting.resumed()
        elif self._resumes and not self._session.whole:
            self._batch = Batch(None)
        return self._batch is not None

    def _result_start(self, event: e.MessageStart, call: str) -> None:
        batch = self._batch
        assert batch is not None
        if batch.open:
            raise fault(event, f"results come after the last tool_end; still open: {', '.join(batch.open)}")
        if batch.interrupted:
            raise fault(event, f"call {min(batch.interrupted)!r} was interrupted: the batch's results wait for the resumed run")
        if batch.calls is None:
            if call in batch.results:
                raise fault(event, f"call {call!r} has its result already")
        else:
            due = batch.due()
            wanted = due[len(batch.results)] if len(batch.results) < len(due) else None
            if call != wanted:
                due_next = f"the result of {wanted!r}" if wanted else "no more results"
                raise fault(event, f"it answers {call!r}; expected {due_next}")
        batch.results.append(call)

    # -- turns and the end

    def _turn_start(self, event: e.TurnStart) -> At:
        self._turn += 1
        if event.turn != self._turn:
            raise fault(event, f"expected turn {self._turn}")
        self._attempts = 0
        self._answer = self._batch = None
        return At.FRESH if self._turn == 0 and (self._resumes or self._session.waiting) else At.TURN

    def _turn_end(self, event: e.TurnEnd) -> None:
        batch = self._batch
        self._check_message(event)
        results = [message.call_id for message in event.tool_results]
        written = [] if batch is None else batch.results
        if results != written:
            raise fault(event, f"expected tool_results of {written}, as written in this turn, not of {results}")
        if batch is None:
            return
        if batch.open:
            raise fault(event, f"expected tool_end of {', '.join(batch.open)}")
        waiting = self._session.waiting
        if batch.interrupted:
            waiting.update(dict.fromkeys(batch.due(), batch))
            return
        missing = [call for call in batch.due() if call not in batch.results]
        if missing:
            raise fault(event, f"expected message_start of the result of {missing[0]!r}")
        for call in batch.results:
            waiting.pop(call, None)

    def _check_message(self, event: e.TurnEnd) -> None:
        given = None if event.message is None else event.message.id
        if self._answer is not None and given != self._answer.id:
            raise fault(event, f"expected message {self._answer.id!r} in it, the answer of this turn, not {given!r}")
        if self._answer is None and self._batch is None and given is not None:
            raise fault(event, f"expected no message in it: this turn has no answer, but it carries {given!r}")

    def _agent_end(self, event: e.AgentEnd) -> None:
        if self._ended_interrupted != (event.outcome == "interrupted"):
            came = "came" if self._ended_interrupted else "did not come"
            raise fault(event, f"outcome is {event.outcome!r}, but interrupted {came} before it")
        given = [message.id for message in event.messages]
        if given != self._appended:
            raise fault(event, f"expected exactly the messages that the run appended, {self._appended}, not {given}")
