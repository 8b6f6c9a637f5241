"""`Answer`: the cells of one message that a model writes, while it does and after."""

import time
from collections.abc import Callable

from rxagent.chat.cells import BlockCell, Cell, TailCell, ThoughtCell
from rxagent.chat.tool_cell import ToolCell
from rxagent.chat.transcript import TranscriptView
from rxagent.events import model as m
from rxagent.messages import AssistantMessage, TextPart, ThinkingPart, ToolCall
from rxagent.operators.markdown_splitter import Splitter


class _Text:
    """A text block: finished blocks of Markdown, each a cell, and the open tail, one cell."""

    def __init__(self, view: TranscriptView) -> None:
        self.cells: list[Cell] = []
        self.text: list[str] = []
        self._view = view
        self._splitter = Splitter()
        self._tail: TailCell | None = None

    def feed(self, text: str) -> None:
        self.text.append(text)
        self._finished(self._splitter.feed(text))

    def show(self) -> None:
        """Shows the tail as it is now; once per frame."""
        tail = self._splitter.rest()
        if tail.strip():
            if self._tail is None:
                self._tail = TailCell()
                self.cells.append(self._tail)
                self._view.add(self._tail)
            self._tail.show(tail)
        elif self._tail is not None:
            self._view.drop([self._tail])
            self.cells.remove(self._tail)
            self._tail = None

    def end(self) -> None:
        self._finished(self._splitter.end())
        self.show()

    def _finished(self, blocks: list[str]) -> None:
        for source in blocks:
            if source.strip():
                cell = BlockCell(source)
                self.cells.append(cell)
                self._view.add(cell, before=self._tail)


class Answer:
    """One assistant message in the view. Feed it deltas, ``show`` once per frame, ``end`` with the whole message."""

    def __init__(self, view: TranscriptView, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._view = view
        self._clock = clock
        self._parts: dict[tuple[str, int], _Text | ThoughtCell | ToolCell] = {}  # by kind and index, as opened
        self._changed: dict[_Text, None] = {}  # in the order of their change

    @property
    def cells(self) -> list[Cell]:
        """All its cells."""
        every: list[Cell] = []
        for part in self._parts.values():
            every += part.cells if isinstance(part, _Text) else [part]
        return every

    def take(self, delta: m.ModelEvent) -> None:
        """A piece of the model's stream."""
        match delta:
            case m.TextDelta():
                text = self._text(delta.index)
                text.feed(delta.text)
                self._changed[text] = None
            case m.ThinkingDelta():
                if delta.text:
                    self._thought(delta.index).add(delta.text)
            case m.ThinkingEnd():
                if isinstance(thought := self._parts.get(("thinking", delta.index)), ThoughtCell):
                    thought.finish()
            case m.ToolCallStart():
                self._tool(delta.index, delta.name)
            case m.ToolCallDelta():
                cell = self._tool(delta.index, "")
                cell.written += len(delta.arguments)
                cell.changed()
            case _:
                pass

    def tick(self) -> None:
        """Time passes for the calls that are being written."""
        for part in self._parts.values():
            if isinstance(part, ToolCell):
                part.tick()

    def show(self) -> None:
        """Brings the open blocks up to date."""
        for text in self._changed:
            text.show()
        self._changed.clear()

    def withdraw(self) -> None:
        """The attempt failed and is repeated: nothing of it stays."""
        self._view.drop(self.cells)
        self._parts.clear()
        self._changed.clear()

    def end(self, message: AssistantMessage) -> dict[str, ToolCell]:
        """The message is complete; gives the cells of its calls by call id."""
        if not self._fits(message):
            self.withdraw()
            self._replay(message)
        tools: list[ToolCell] = []
        for part in self._parts.values():
            if isinstance(part, _Text):
                part.end()
            elif isinstance(part, ThoughtCell):
                part.finish()
            else:
                tools.append(part)
        self._changed.clear()
        calls = message.tool_calls
        runs = message.stop_reason not in ("error", "aborted")
        for cell, call in zip(tools, calls, strict=False):
            cell.name = call.name
            cell.args = call.arguments if call.invalid is None else call.invalid
            cell.end("waiting" if runs else "void", took=0.0)
        return {call.id: cell for cell, call in zip(tools, calls, strict=False)}

    def _fits(self, message: AssistantMessage) -> bool:
        """Whether what was streamed is the message, block by block."""
        shown = [
            "".join(part.text) if isinstance(part, _Text) else part.text if isinstance(part, ThoughtCell) else None
            for part in self._parts.values()
        ]
        wanted: list[object] = []
        for piece in message.content:
            if isinstance(piece, TextPart | ThinkingPart):
                wanted += [piece.text] if piece.text else []
            else:
                wanted.append(None)
        return [text for text in shown if text != ""] == wanted

    def _replay(self, message: AssistantMessage) -> None:
        for index, piece in enumerate(message.content):
            match piece:
                case TextPart():
                    text = self._text(index)
                    text.feed(piece.text)
                    text.end()
                case ThinkingPart():
                    if piece.text.strip():
                        self._thought(index).add(piece.text)
                case ToolCall():
                    self._tool(index, piece.name)

    def _text(self, index: int) -> _Text:
        part = self._parts.get(("text", index))
        if not isinstance(part, _Text):
            self.show()
            part = self._parts["text", index] = _Text(self._view)
        return part

    def _thought(self, index: int) -> ThoughtCell:
        part = self._parts.get(("thinking", index))
        if not isinstance(part, ThoughtCell):
            self.show()
            part = self._parts["thinking", index] = ThoughtCell()
            self._view.add(part)
        return part

    def _tool(self, index: int, name: str) -> ToolCell:
        part = self._parts.get(("tool", index))
        if not isinstance(part, ToolCell):
            self.show()
            part = self._parts["tool", index] = ToolCell(name, clock=self._clock)
            self._view.add(part)
        return part
