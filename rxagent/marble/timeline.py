"""A recorded run laid out in time: which bars and ticks stand on which lane, and how far to the right.

Events carry no time of their own. What is known (message timestamps, tool durations) places its events; those
between are spread evenly. A recording in which no time passes is laid out by sequence alone.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from rxagent import events as ev
from rxagent.events import AnyEvent
from rxagent.marble.describing import describe
from rxagent.marble.placing import positions, times_of
from rxagent.messages import AssistantMessage

STEP = 14.0  # pixels from one event to the next, at least

OK, BAD, WAITING, QUIET, TEXT, THINKING, TURN = "#2f9e6e", "#c0392b", "#e3b341", "#c5ced8", "#3b82c4", "#8e5bb5", "#5b6b8c"


@dataclass(slots=True)
class Bar:
    """Something that lasted, from ``x0`` to ``x1``; ``tip`` is its whole story."""

    x0: float
    x1: float
    colour: str
    label: str = ""
    tip: str = ""


@dataclass(slots=True)
class Lane:
    """One row: bars, and ticks for what took no time. ``key`` groups the lanes of one agent."""

    key: tuple[str, ...]
    name: str
    bars: list[Bar] = field(default_factory=list[Bar])
    ticks: list[float] = field(default_factory=list[float])


@dataclass(slots=True)
class Timeline:
    """The lanes of a run, its width in pixels, and (x, seq, seconds or None) for the ruler."""

    lanes: list[Lane]
    width: float
    ruler: list[tuple[float, int, float | None]]


def timeline(events: Sequence[AnyEvent]) -> Timeline:
    """Lay out the events of a run or a whole session."""
    times = times_of(events)
    xs = positions(events, times, STEP)
    layout = _Layout()
    for event, x in zip(events, xs, strict=True):
        layout.add(event, x)
    end = (xs[-1] if xs else 0.0) + STEP
    layout.close(end)
    known = [t for t in times if t is not None]
    zero = known[0] if known else 0.0
    seconds = [None if t is None else t - zero for t in times]
    ruler = [(x, event.seq, t) for x, event, t in zip(xs, events, seconds, strict=True)]
    return Timeline(layout.ordered(), end + STEP, ruler)


@dataclass(slots=True)
class _Agent:
    """What is going on in one agent."""

    path: tuple[str, ...]
    lanes: dict[str, Lane] = field(default_factory=dict[str, Lane])
    open: dict[str, Bar] = field(default_factory=dict[str, Bar])
    calls: dict[str, tuple[str, Bar]] = field(default_factory=dict[str, tuple[str, Bar]])
    waiting: set[str] = field(default_factory=set[str])

    def lane(self, name: str) -> Lane:
        return self.lanes.setdefault(name, Lane(self.path, name))

    def begin(self, name: str, x: float, colour: str, label: str = "") -> Bar:
        bar = Bar(x, x, colour, label, label)
        self.lane(name).bars.append(bar)
        self.open[name] = bar
        return bar

    def end(self, name: str, x: float) -> Bar | None:
        bar = self.open.pop(name, None)
        if bar is not None:
            bar.x1 = x
        return bar

    def state(self, x: float, name: str, colour: str) -> None:
        bar = self.open.get("state")
        if bar is None or bar.label != name:
            self.end("state", x)
            self.begin("state", x, colour, name)

    def queue(self, x: float, waiting: set[str]) -> None:
        if waiting != self.waiting:
            self.waiting = waiting
            self.end("queue", x)
            if waiting:
                self.begin("queue", x, WAITING, f"{len(waiting)} waiting")

    def mark(self, name: str, x: float, colour: str, label: str) -> None:
        self.lane(name).bars.append(Bar(x, x + 5, colour, label, label))


class _Layout:
    """Turns events into bars, one agent at a time."""

    def __init__(self) -> None:
        self._agents: dict[tuple[str, ...], _Agent] = {}

    def ordered(self) -> list[Lane]:
        """The lanes, agent by agent, in a fixed order within each."""
        order = ["run", "turns", "thinking", "text"]
        last = ["queue", "notes", "state"]
        found: list[Lane] = []
        for agent in self._agents.values():
            middle = [name for name in agent.lanes if name not in order and name not in last]
            found += [agent.lanes[name] for name in [*order, *middle, *last] if name in agent.lanes]
        return found

    def close(self, x: float) -> None:
        """End what is still open, as a log that was cut leaves it."""
        for agent in self._agents.values():
            for name in list(agent.open):
                agent.end(name, x)
            for _, bar in agent.calls.values():
                bar.x1, bar.colour, bar.tip = x, QUIET, f"{bar.tip} (no end in the log)"

    def add(self, event: AnyEvent, x: float) -> None:
        """Draw one event."""
        path = event.origin.path or (event.origin.agent or "agent",)
        agent = self._agents.setdefault(path, _Agent(path))
        if isinstance(event, ev.ToolStart | ev.ToolUpdate | ev.ToolEnd):
            self._tool(agent, event, x)
        elif isinstance(event, ev.MessageStart | ev.MessageUpdate | ev.MessageEnd | ev.ModelRetry):
            self._message(agent, event, x)
        elif isinstance(event, ev.AgentStart | ev.AgentEnd | ev.TurnStart | ev.TurnEnd):
            self._life(agent, event, x)
        elif isinstance(event, ev.QueueChanged):
            agent.queue(x, {m.id for m in (*event.steering, *event.follow_ups)})
        elif isinstance(event, ev.Interrupted):
            agent.mark("notes", x, WAITING, "asks: " + "; ".join(i.question for i in event.interrupts))
        elif not isinstance(event, ev.SessionStart):
            agent.mark("notes", x, TURN, describe(event))

    def _life(self, agent: _Agent, event: ev.AgentStart | ev.AgentEnd | ev.TurnStart | ev.TurnEnd, x: float) -> None:
        if isinstance(event, ev.AgentStart):
            agent.begin("run", x, QUIET, f"run {event.origin.run_id}".strip())
        elif isinstance(event, ev.TurnStart):
            agent.begin("turns", x, TURN, f"turn {event.turn}")
            agent.state(x, "waiting", QUIET)
        elif isinstance(event, ev.TurnEnd):
            agent.end("turns", x)
        else:
            agent.end("state", x)
            bar = agent.end("run", x)
            if bar is not None:
                bar.colour = OK if event.outcome == "completed" else WAITING if event.outcome == "interrupted" else BAD
                bar.label = bar.tip = event.outcome + (f": {event.error}" if event.error else "")

    def _message(
        self, agent: _Agent, event: ev.MessageStart | ev.MessageUpdate | ev.MessageEnd | ev.ModelRetry, x: float
    ) -> None:
        if isinstance(event, ev.MessageUpdate):
            self._delta(agent, event, x)
        elif isinstance(event, ev.ModelRetry):
            for name in ("text", "thinking"):
                bar = agent.end(name, x)
                if bar is not None:
                    bar.colour, bar.tip = QUIET, f"withdrawn: {bar.tip}"
            agent.mark("notes", x, BAD, f"retry {event.attempt} in {event.delay:.3g}s: {event.error}")
            agent.state(x, "retrying", BAD)
        elif isinstance(event.message, AssistantMessage):
            if isinstance(event, ev.MessageStart):
                agent.state(x, "streaming", TEXT)
                return
            for name, words, colour in (("text", event.message.text, TEXT), ("thinking", event.message.thinking, THINKING)):
                if words and name not in agent.open:  # an answer that was not streamed
                    agent.begin(name, x - STEP / 2, colour)
                bar = agent.end(name, x)
                if bar is not None:
                    bar.label = bar.tip = words
            agent.state(x, "waiting", QUIET)
        elif isinstance(event, ev.MessageEnd) and event.message.role != "tool":
            agent.queue(x, agent.waiting - {event.message.id})  # it left its queue with this
            agent.mark("notes", x, OK, describe(event.message))

    def _delta(self, agent: _Agent, event: ev.MessageUpdate, x: float) -> None:
        name = {"text_delta": "text", "thinking_delta": "thinking"}.get(event.delta.type)
        if name is None:
            return
        if name not in agent.open:
            agent.begin(name, x, TEXT if name == "text" else THINKING)
        bar = agent.open[name]
        bar.x1 = x
        text = getattr(event.delta, "text", "")
        if len(bar.tip) < 2_000:
            bar.tip = bar.label = bar.tip + text
        agent.lane(name).ticks.append(x)

    def _tool(self, agent: _Agent, event: ev.ToolStart | ev.ToolUpdate | ev.ToolEnd, x: float) -> None:
        if isinstance(event, ev.ToolStart):
            busy = {name for name, _ in agent.calls.values()}
            names = (event.tool_name if n == 1 else f"{event.tool_name} {n}" for n in range(1, len(busy) + 2))
            name = next(name for name in names if name not in busy)
            bar = Bar(x, x, QUIET, _call(event), _call(event))
            agent.lane(name).bars.append(bar)
            agent.calls[event.call_id] = (name, bar)
            agent.state(x, "tools", OK)
            return
        found = agent.calls.get(event.call_id)
        if found is None:
            return
        name, bar = found
        if isinstance(event, ev.ToolUpdate):
            agent.lane(name).ticks.append(x)
            return
        del agent.calls[event.call_id]
        bar.x1 = x
        bar.colour = BAD if event.is_error else WAITING if event.interrupted else OK
        answer = "interrupted" if event.interrupted else event.result.summary or event.result.text
        bar.label = bar.tip = f"{_call(event)} → {answer}"
        bar.tip += f"  ({event.duration:.3g}s)"
        if not agent.calls:
            agent.state(x, "waiting", QUIET)


def _call(event: ev.ToolStart | ev.ToolEnd) -> str:
    if isinstance(event.args, str):
        return f"{event.tool_name}({event.args})"
    return f"{event.tool_name}({', '.join(f'{k}={v!r}' for k, v in event.args.items())})"


def lane_heading(lane: Lane, lanes: Iterable[Lane]) -> str:
    """The lane's name, with its agent's path where a run has several agents."""
    several = len({other.key for other in lanes}) > 1
    return f"{'/'.join(lane.key)} · {lane.name}" if several else lane.name
