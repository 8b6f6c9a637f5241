"""Hypothesis strategies that everybody shares: random grammatical sessions.

``logs()`` draws a whole session (`SessionStart`, runs, what may stand between them), ``runs()`` one run.
They cover turns, parallel tools, retries, unstreamed answers, aborts, failures, limits, children (also
two of one name at once), interrupts and the runs that resume them, custom events anywhere.
"""

from dataclasses import dataclass, field, replace

from hypothesis import strategies as st

from rxagent import events as e
from rxagent.messages import (
    AnyMessage,
    AssistantMessage,
    CustomMessage,
    SystemMessage,
    ToolCall,
    ToolResult,
    ToolResultMessage,
    Usage,
    UserMessage,
)

TEXTS = st.text(alphabet="abc \n.é€𝄞`#-", max_size=6)
NAMES = st.sampled_from(["add", "ask", "search", "ask"])
USAGES = st.none() | st.builds(Usage, st.integers(0, 99), st.integers(0, 99))


@dataclass
class Waiting:
    """A batch that waits for a resumed run."""

    seq: int
    message: AssistantMessage
    calls: tuple[ToolCall, ...]
    finished: dict[str, ToolResult]
    questions: tuple[e.Interrupt, ...]


@dataclass
class Writer:
    """Writes one session, numbering as it goes."""

    draw: object
    events: list[e.AnyEvent] = field(default_factory=list)
    counter: int = 0
    depth: int = 2

    def put(self, event: e.AnyEvent, origin: e.Origin) -> e.AnyEvent:
        event = replace(event, seq=len(self.events), origin=origin)
        self.events.append(event)
        return event

    def new(self, prefix: str) -> str:
        self.counter += 1
        return f"{prefix}{self.counter}"

    def pick(self, strategy):
        return self.draw(strategy)

    def chance(self, of: int = 4) -> bool:
        return self.draw(st.integers(0, of - 1)) == of - 1  # shrinks towards "no"


@dataclass
class RunWriter:
    """Writes one run of one agent."""

    w: Writer
    origin: e.Origin
    appended: list[AnyMessage] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)

    def put(self, event: e.AnyEvent) -> e.AnyEvent:
        return self.w.put(event, self.origin)

    def noise(self) -> None:
        """What may stand anywhere inside a run."""
        if not self.w.chance(12):
            return
        kind = self.w.pick(st.integers(0, 3))
        self.put(
            [
                e.Custom("note", {"n": 1}),
                e.QueueChanged((UserMessage("later", id=self.w.new("q")),)),
                e.ConfigChanged(e.AgentConfig("be brief", "other")),
                e.UnknownEvent({"type": "from_the_future", "x": 1}, type="from_the_future"),
            ][kind]
        )

    def whole(self, message: AnyMessage) -> None:
        """A message that begins and ends at once."""
        self.put(e.MessageStart(message))
        self.noise()
        self.put(e.MessageEnd(message))
        self.appended.append(message)

    def inputs(self, least: int) -> None:
        for _ in range(self.w.pick(st.integers(least, 2))):
            text, uid = self.w.pick(TEXTS), self.w.new("u")
            kind = self.w.pick(st.integers(0, 5))
            if kind == 4:
                self.whole(SystemMessage(text, id=uid, timestamp=1.0))
            elif kind == 5:
                self.whole(CustomMessage(role="note", id=uid, timestamp=1.0))
            else:
                self.whole(UserMessage(text, id=uid, timestamp=1.0))

    # -- the model

    def attempt(self, streamed: bool) -> e.Draft:
        """One attempt at an answer; its draft is whole also where it isn't streamed."""
        w = self.w
        draft = e.Draft(w.new("a"), 1.0, "scripted")
        self.put(e.MessageStart(draft.message()))

        def piece(delta: e.ModelEvent) -> None:
            message = draft.add(delta)
            if streamed:
                self.put(e.MessageUpdate(delta, message=message))
                self.noise()

        if w.chance(3):
            piece(e.ResponseStart("scripted-1"))
        for index in range(w.pick(st.integers(0, 3))):
            kind = w.pick(st.sampled_from(["text", "call", "thinking", "call"]))
            if kind == "call":
                piece(e.ToolCallStart(w.new("c"), w.pick(NAMES), index))
                for part in w.pick(st.sampled_from([[], ['{"a":', "1}"], ['{"a": 1}'], ["{bad"]])):
                    piece(e.ToolCallDelta(part, index))
                piece(e.ToolCallEnd(index, w.pick(st.sampled_from([None, None, {"b": 2}]))))
                continue
            start, delta, end = (
                (e.TextStart, e.TextDelta, e.TextEnd) if kind == "text" else (e.ThinkingStart, e.ThinkingDelta, e.ThinkingEnd)
            )
            opened = w.chance(2)
            if opened:
                piece(start(index))
            for text in w.pick(st.lists(TEXTS, max_size=4)):
                piece(delta(text, index))
            if opened:
                piece(end(index))
        return draft

    def answer(self, streamed: bool) -> AssistantMessage:
        w = self.w
        for attempt in range(1, w.pick(st.integers(1, 3)) if w.chance(3) else 1):
            if w.chance(2):
                self.attempt(streamed)
            self.put(e.ModelRetry(attempt, 0.5, e.ErrorInfo("overloaded", "overloaded", retryable=True), "scripted"))
            self.noise()
        draft = self.attempt(streamed)
        has_calls = bool(draft.message().tool_calls)
        usual = "tool_use" if has_calls else "stop"
        reason = w.pick(st.sampled_from([usual] * 6 + ["length", "error", "aborted"]))
        message = draft.finish(reason, usage=w.pick(USAGES), error_message="it broke" if reason == "error" else None)
        self.put(e.MessageEnd(message))
        self.appended.append(message)
        if message.usage is not None:
            self.usage = self.usage + message.usage
        return message

    # -- tools

    def tools(
        self, message: AssistantMessage, calls: tuple[ToolCall, ...], finished: dict[str, ToolResult], *, refuse: bool
    ) -> tuple[tuple[ToolResultMessage, ...], Waiting | None]:
        """Runs calls, interleaved; ``finished`` has results of an earlier run."""
        w = self.w
        todo = [call for call in calls if call.id not in finished]
        results = dict(finished)
        questions: list[e.Interrupt] = []
        live: list[ToolCall] = []
        children: dict[str, list[e.AnyEvent]] = {}
        while todo or live:
            step = w.pick(st.integers(0, 3))
            if todo and (step == 0 or not live):
                call = todo.pop(0)
                self.put(e.ToolStart(call.id, call.name, call.invalid or call.arguments))
                live.append(call)
                if call.name == "ask" and w.depth > 0 and not refuse:
                    children[call.id] = child_events(w, self.origin, call.id)
            elif step == 1:
                call = w.pick(st.sampled_from(live))
                self.put(e.ToolUpdate(call.id, call.name, call.arguments, w.pick(st.sampled_from([0.5, "half", {"x": 1}]))))
            elif step == 2 and (busy := [c for c in live if children.get(c.id)]):
                self.let_through(children[w.pick(st.sampled_from(busy)).id], w.pick(st.integers(1, 5)))
            else:
                call = w.pick(st.sampled_from(live))
                self.let_through(children.pop(call.id, []))
                live.remove(call)
                question, result = self.end(call, refuse=refuse)
                if question is None:
                    results[call.id] = result
                else:
                    questions.append(question)
            self.noise()
        if questions:
            return (), Waiting(-1, message, calls, results, tuple(questions))
        written = []
        for call in calls:
            result = results[call.id]
            entry = ToolResultMessage(call.id, call.name, result.content, is_error=result.is_error, id=w.new("t"), timestamp=1.0)
            self.whole(entry)
            written.append(entry)
        return tuple(written), None

    def let_through(self, child: list[e.AnyEvent], most: int = 10**6) -> None:
        """Puts the next events of a child in."""
        for event in child[:most]:
            self.w.put(event, event.origin)
        del child[:most]

    def end(self, call: ToolCall, *, refuse: bool) -> tuple[e.Interrupt | None, ToolResult]:
        """Ends a call: with a result, or with a question."""
        w = self.w
        question = None
        result = ToolResult(w.pick(TEXTS), is_error=refuse or w.chance())
        if not refuse and w.chance(6):
            question = e.Interrupt(w.new("i"), "may I?", None, self.origin.path, call.id, call.name)
            result = ToolResult()
        asked = question is not None
        self.put(e.ToolEnd(call.id, call.name, call.arguments, result, is_error=result.is_error, interrupted=asked, duration=0.1))
        return question, result

    # -- the run

    def run(self, resumes: Waiting | None = None) -> Waiting | None:
        """The whole run; gives the batch that waits, if it was interrupted."""
        w = self.w
        streamed = not w.chance(5)
        if resumes is None:
            self.put(e.AgentStart((UserMessage("hi", id=w.new("u"), timestamp=1.0),)))
        else:
            answers = {question.id: True for question in resumes.questions}
            self.put(e.AgentStart((), resumes.seq, answers))
        outcome: e.Outcome = "completed"
        waiting: Waiting | None = None
        turn = 0
        while True:
            self.noise()
            self.put(e.TurnStart(turn))
            message, results, outcome, waiting = self.turn(resumes if turn == 0 else None, streamed, first=turn == 0)
            self.put(e.TurnEnd(message, results))
            turn += 1
            if outcome != "completed" or waiting or turn >= 3 or not w.chance(2):
                break
        if waiting is not None:
            outcome = "interrupted"
            waiting.seq = self.put(e.Interrupted(waiting.questions)).seq
        elif outcome == "completed" and w.chance(6):
            outcome = "limit"
        error = e.ErrorInfo("it broke") if outcome in ("failed", "limit") else None
        self.put(e.AgentEnd(tuple(self.appended), outcome, error, self.usage))
        return waiting

    def turn(self, resumes: Waiting | None, streamed: bool, *, first: bool):
        w = self.w
        if resumes is not None:
            results, waiting = self.tools(resumes.message, resumes.calls, resumes.finished, refuse=False)
            return resumes.message, results, "completed", waiting
        self.inputs(least=1 if first else 0)
        if w.chance(10):
            return None, (), w.pick(st.sampled_from(["aborted", "failed"])), None
        message = self.answer(streamed)
        refuse = message.stop_reason in ("length", "error", "aborted")
        outcome: e.Outcome = {"error": "failed", "aborted": "aborted"}.get(message.stop_reason or "", "completed")
        if not message.tool_calls or (outcome != "completed" and w.chance(2)):
            return message, (), outcome, None
        results, waiting = self.tools(message, message.tool_calls, {}, refuse=refuse)
        return message, results, outcome, waiting


def child_events(w: Writer, parent: e.Origin, call_id: str) -> list[e.AnyEvent]:
    """The events of an agent that runs as a tool, to be interleaved; numbered when they are put in."""
    inner = Writer(w.draw, counter=0, depth=w.depth - 1)
    inner.new = w.new  # ids are unique in the session
    origin = e.Origin(parent.session_id, w.new("r"), "expert", (*parent.path, "expert"), call_id)
    RunWriter(inner, origin).run()
    return inner.events


@st.composite
def logs(draw, max_runs: int = 3) -> list[e.AnyEvent]:
    """A session from its `SessionStart` on: runs, resumed runs, and what stands between them."""
    w = Writer(draw)
    between = e.Origin("s1", "", "main", ("main",))
    history = (UserMessage("before", id=w.new("u"), timestamp=1.0),) if w.chance() else ()
    w.put(e.SessionStart(e.AgentConfig("be nice", "scripted"), history), between)
    waiting: Waiting | None = None
    for _ in range(draw(st.integers(0, max_runs))):
        origin = e.Origin("s1", w.new("r"), "main", ("main",))
        waiting = RunWriter(w, origin).run(waiting if waiting and not w.chance(4) else None)
        if w.chance(4):
            w.put(e.QueueChanged(), between)
        if w.chance(8):
            w.put(e.SessionReset(), between)
            waiting = None
        if w.chance(8):
            w.put(e.ConfigChanged(e.AgentConfig("be brief")), between)
    return w.events


@st.composite
def runs(draw) -> list[e.AnyEvent]:
    """One run, its children included, numbered from somewhere."""
    w = Writer(draw)
    RunWriter(w, e.Origin("s1", "r0", "main", ("main",))).run()
    shift = draw(st.sampled_from([0, 7]))
    return [replace(event, seq=event.seq + shift) for event in w.events]
