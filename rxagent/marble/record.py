"""A live run written down as a marble block that plays it again.

Times are rounded to the scale. Models, tools and the user become input lines; text, tool calls and the run's
life become expected lines. What a block can't say (images, agents below) is left out.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from rxagent import events as ev
from rxagent.events import AnyEvent
from rxagent.marble.describing import describe, quoted
from rxagent.marble.diff import fresh_symbol
from rxagent.marble.faults import MarbleError
from rxagent.marble.notation import COMPLETE, write_line
from rxagent.messages import AssistantMessage, ToolCall, UserMessage

Recorded = Sequence[tuple[float, AnyEvent]]


@dataclass(slots=True)
class _Track:
    """One line in the making: what happens in which frame. ``begins`` is the frame in which it starts to play."""

    name: str
    begins: int = 0
    frames: dict[int, list[str]] = field(default_factory=dict[int, list[str]])

    def put(self, frame: int, meaning: str) -> None:
        self.frames.setdefault(frame, []).append(meaning)


@dataclass(slots=True)
class _Writer:
    """Symbols and their meanings, over all lines of the block."""

    symbols: dict[str, str] = field(default_factory=dict[str, str])

    def symbol(self, meaning: str) -> str:
        if meaning == COMPLETE:
            return meaning
        known = next((s for s, m in self.symbols.items() if m == meaning), None)
        if known is None:
            try:
                known = fresh_symbol(meaning, set(self.symbols))
            except LookupError:
                raise MarbleError("the run has more different events than there are symbols for them") from None
            self.symbols[known] = meaning
        return known

    def line(self, track: _Track, frame: int) -> str:
        marks: list[tuple[int, str]] = []
        for at, meanings in sorted(track.frames.items()):
            symbols = [self.symbol(meaning) for meaning in meanings]
            marks.append((at, symbols[0] if len(symbols) == 1 else self.symbol(" ".join(symbols))))
        return "." * min(track.begins, 60) + write_line([(at * frame, symbol) for at, symbol in marks], frame)


def write_run(recorded: Recorded, scale: float = 0.01) -> str:
    """The text of a block (without its fence) that plays the run again.

    ``recorded``: the events of one run, each with the seconds at which it came. ``scale`` is in seconds a column.
    Raises ``MarbleError`` for a run with more different events than there are symbols.
    """
    book = _Book(scale)
    begin = recorded[0][0] if recorded else 0.0
    for at, event in recorded:
        if len(event.origin.path) <= 1:
            book.add(round((at - begin) / scale), event)
    return book.text()


class _Book:
    """Follows a run frame by frame, as it will be when the block is played."""

    def __init__(self, scale: float) -> None:
        self.scale = scale
        self.prompt = ""
        self.models: list[_Track] = []
        self.tools: dict[str, list[_Track]] = {}
        self.user = _Track("user")
        self.views = {name: _Track(name) for name in ("text", "tools", "life")}
        self.running: dict[str, tuple[_Track, int]] = {}
        self.request = (0, 0)  # the frame in which the present request was made: as played, as recorded
        self.now = 0  # the frame in which the play is
        self.waiting: set[str] = set()

    def add(self, at: int, event: AnyEvent) -> None:
        match event:
            case ev.AgentStart():
                self.prompt = next((m.text for m in event.input if isinstance(m, UserMessage)), "")
                self.views["life"].put(self.now, describe(event))
            case ev.TurnStart():
                self.request = (self.now, at)
                self.models.append(_Track("model", self.now))
            case ev.MessageUpdate():
                self._delta(at, event)
            case ev.MessageEnd() if isinstance(event.message, AssistantMessage):
                self._answered(at, event.message)
            case ev.ModelRetry():
                self._retried(at, event)
            case ev.ToolStart():
                self._started(at, event)
            case ev.ToolEnd():
                self._ended(at, event)
            case ev.QueueChanged():
                self._queued(at, event)
            case ev.AgentEnd():
                if event.outcome == "aborted":
                    self.user.put(self._played(at), "abort")
                self.views["life"].put(self._played(at) if event.outcome == "aborted" else self.now, describe(event))
            case _:
                pass

    def _played(self, at: int) -> int:
        """The frame, as played, of something recorded in frame ``at`` of the present request."""
        return self.request[0] + at - self.request[1]

    def _delta(self, at: int, event: ev.MessageUpdate) -> None:
        self.now = max(self.now, self._played(at))
        if isinstance(event.delta, ev.TextDelta | ev.ThinkingDelta):
            meaning = describe(event.delta)
            self.models[-1].put(self.now - self.request[0], meaning)
            if isinstance(event.delta, ev.TextDelta):
                self.views["text"].put(self.now, meaning)

    def _answered(self, at: int, message: AssistantMessage) -> None:
        if message.stop_reason == "aborted":
            return
        self.now = max(self.now, self._played(at))
        line = self.models[-1]
        for call in message.tool_calls:
            line.put(self.now - self.request[0], _call(call))
        if message.stop_reason == "error":
            line.put(self.now - self.request[0], f"error server {message.error_message or ''!r}")
        elif message.stop_reason in ("length", "content_filter"):
            line.put(self.now - self.request[0], f"done {message.stop_reason}")
        else:
            line.put(self.now - self.request[0], COMPLETE)

    def _retried(self, at: int, event: ev.ModelRetry) -> None:
        self.now = max(self.now, self._played(at))
        delay = round(event.delay / self.scale)
        retry = f"retryable=True retry_after={delay * self.scale:.6g}"
        self.models[-1].put(self.now - self.request[0], f"error {event.error.kind} {event.error.message!r} {retry}")
        self.now += delay
        self.request = (self.now, at + delay)
        self.models.append(_Track("model", self.now))

    def _started(self, at: int, event: ev.ToolStart) -> None:
        track = _Track(event.tool_name, self.now)
        self.tools.setdefault(event.tool_name, []).append(track)
        self.running[event.call_id] = (track, at)
        self.views["tools"].put(self.now, f"tool_start {event.tool_name}")

    def _ended(self, at: int, event: ev.ToolEnd) -> None:
        track, began = self.running.pop(event.call_id, (_Track(event.tool_name, self.now), at))
        frame = track.begins + at - began
        flag = " is_error=True" if event.is_error else ""
        track.put(frame - track.begins, f"result {quoted(event.result.text)}{flag}")
        self.views["tools"].put(frame, f"tool_end {event.tool_name} {quoted(event.result.text)}{flag}")
        self.now = max(self.now, frame)

    def _queued(self, at: int, event: ev.QueueChanged) -> None:
        for kind, queue in (("steer", event.steering), ("follow_up", event.follow_ups)):
            for message in queue:
                if message.id not in self.waiting:
                    self.user.put(self._played(at), f"{kind} {describe(message).partition(' ')[2]}")
        self.waiting = {m.id for m in (*event.steering, *event.follow_ups)}

    def text(self) -> str:
        """The whole block."""
        writer = _Writer()
        inputs = [*_numbered(self.models), *(pair for tracks in self.tools.values() for pair in _numbered(tracks))]
        arguments = ["model=model"]
        if self.tools:
            arguments.append(f"tools=[{', '.join(self.tools)}]")
        if self.user.frames:
            inputs.append(("user", self.user))
            arguments.append("user=user")
        expected = [(name, track) for name, track in self.views.items() if track.frames]
        width = max(len(name) for name, _ in (*inputs, *expected, ("scale", self.user))) + 2
        rows = [f"{'scale':<{width}}{self.scale * 1000:.6g}ms"]
        frame = round(self.scale * 1_000_000_000)
        rows += [f"{name:<{width}}{writer.line(track, frame)}" for name, track in inputs]
        rows.append(f"> run({self.prompt!r}, {', '.join(arguments)})")
        rows += [f"{name:<{width}}{writer.line(track, frame)}" for name, track in expected]
        legend = [f"{symbol} = {meaning}" for symbol, meaning in writer.symbols.items()]
        rows += [f"{'where' if n == 0 else '':<{width}}{entry}" for n, entry in enumerate(legend)]
        return "\n".join(rows)


def _numbered(tracks: list[_Track]) -> list[tuple[str, _Track]]:
    return [(track.name if n == 0 else f"{track.name}.{n + 1}", track) for n, track in enumerate(tracks)]


def _call(call: ToolCall) -> str:
    return f"call {call.name}({', '.join(f'{name}={value!r}' for name, value in call.arguments.items())})"
