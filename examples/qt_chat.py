"""A chat window in Qt: answers as they stream, running tools, steering, stop, retry. Its looks are in ``qt_chat.qss``.

pip install 'rxagent[qt]'; then: python qt_chat.py --model openai:gpt-5-mini   (without a model: the built-in demo)
"""

import argparse
import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path

from PySide6.QtCore import QMargins, Qt, QTimer
from PySide6.QtGui import QCloseEvent, QColor, QFont, QTextCursor, QTextDocument, QTextFormat
from PySide6.QtWidgets import QApplication, QBoxLayout, QLabel, QLineEdit, QMainWindow, QPushButton, QScrollArea, QWidget

from rxagent import Agent, tool
from rxagent.bridges import AgentHost, Frame, QtPort
from rxagent.events import AgentEnd, AnyEvent, MessageEnd, MessageStart, ModelRetry, ToolEnd, ToolStart, ToolUpdate
from rxagent.messages import AssistantMessage, UserMessage

STYLE = Path(__file__).with_suffix(".qss").read_text(encoding="utf-8")
DOWN, RIGHT = QBoxLayout.Direction.TopToBottom, QBoxLayout.Direction.LeftToRight


@tool
async def search(query: str) -> AsyncIterator[str]:
    """Searches the library's catalogue."""
    for n in range(1, 4):
        await asyncio.sleep(0.5)
        yield f"{n} of 3 shelves searched"
    yield f"Three books on {query}: Reactive Streams, Flow Control, The Patient Reader."


class Card(QLabel):
    """A tool call: its arguments, the time it takes, and what it says."""

    def __init__(self, event: ToolStart) -> None:
        super().__init__(objectName="card", wordWrap=True)
        values = event.args.values() if isinstance(event.args, dict) else [event.args]
        self.call = f"{event.tool_name}({', '.join(map(repr, values))})"
        self.started, self.note = time.monotonic(), ""
        self.tell()

    def tell(self, mark: str = "●") -> None:
        note = f"  —  {self.note}" if self.note else ""
        self.setText(f"{mark} {self.call}   {time.monotonic() - self.started:.1f} s{note}")


class ChatWindow(QMainWindow):
    """One conversation. Everything it knows comes in ``show_frame``; everything it does goes to the host."""

    def __init__(self, agent: Agent) -> None:
        super().__init__(windowTitle=f"Chat · {agent.model.name}", styleSheet=STYLE)
        self.resize(760, 640)
        self.host = AgentHost(agent)
        self.answer: QLabel | None = None
        self.cards: dict[str, Card] = {}
        self.build(agent.model.name)
        self.clock = QTimer(self, interval=100)
        self.clock.timeout.connect(lambda: [card.tell() for card in self.cards.values()])
        self.clock.start()
        self.host.frames(QtPort(self)).subscribe(self.show_frame)

    def build(self, model: str) -> None:
        page, whole = QWidget(objectName="page"), QWidget()
        self.column = QBoxLayout(DOWN, page, spacing=10, contentsMargins=QMargins(24, 12, 24, 12))
        self.column.addStretch()
        self.hello = QLabel("Ask about a book, or tell it to search for something.", objectName="hello")
        self.hello.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.add(self.hello)
        scroll = QScrollArea(widget=page, widgetResizable=True)
        bar = scroll.verticalScrollBar()
        bar.rangeChanged.connect(lambda _low, high: bar.setValue(high))
        self.usage, self.waiting = QLabel(objectName="dim"), QLabel(objectName="dim", visible=False)
        self.fault, self.error = QLabel(wordWrap=True), QWidget(objectName="error", visible=False)
        self.error.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.input = QLineEdit(placeholderText="Ask something", returnPressed=self.send)
        self.button = QPushButton("Send", objectName="send", clicked=self.send)
        self.stop = QPushButton("Stop", objectName="stop", visible=False, clicked=lambda: self.host.abort("stopped"))
        self.error.setLayout(row(self.fault, QPushButton("Retry", objectName="retry", clicked=self.retry), x=12, y=8))
        lines = QBoxLayout(DOWN, whole, spacing=8, contentsMargins=QMargins(0, 14, 0, 16))
        lines.addLayout(row(QLabel(model, objectName="title"), self.usage, x=24))
        lines.addWidget(scroll, 1)
        for widgets in (self.error,), (self.waiting,), (self.input, self.button, self.stop):
            lines.addLayout(row(*widgets, x=24))
        self.setCentralWidget(whole)
        self.input.setFocus()

    def add(self, widget: QWidget) -> None:
        self.column.insertWidget(self.column.count() - 1, widget)

    def show_frame(self, frame: Frame[AnyEvent]) -> None:
        for event in frame:
            self.show_event(event)
        if (state := frame.state) is None:
            return
        if state.streaming_message is not None:
            self.show_answer(state.streaming_message.text)  # once a frame, however many pieces came
        self.usage.setText(f"{state.usage.total or 0:,} tokens")
        self.waiting.setText("   ".join(f"↳ {waiting.text}" for waiting in state.steering))
        self.waiting.setVisible(bool(state.steering))
        self.stop.setVisible(state.is_streaming)
        self.button.setText("Steer" if state.is_streaming else "Send")

    def show_event(self, event: AnyEvent) -> None:
        match event:
            case MessageStart(message=UserMessage(text=text)):
                self.hello.hide()
                bubble = QLabel(text, objectName="user", textFormat=Qt.TextFormat.PlainText)
                self.column.insertLayout(self.column.count() - 1, row(QWidget(), bubble))
                bubble.setFixedWidth(min(bubble.sizeHint().width(), 520))
                bubble.setWordWrap(True)
            case MessageStart(message=AssistantMessage()):
                self.error.hide()
                self.answer = QLabel(objectName="answer", wordWrap=True, visible=False, openExternalLinks=True)
                self.answer.setTextInteractionFlags(Qt.TextInteractionFlag.TextBrowserInteraction)
                self.add(self.answer)
            case MessageEnd(message=AssistantMessage() as message) if self.answer is not None:
                self.show_answer(message.text)
                self.answer.setEnabled(message.stop_reason not in ("error", "aborted"))  # cut short: no model sees it again
            case ModelRetry():
                self.show_answer("")  # the attempt is withdrawn, another one follows
            case ToolStart():
                self.add(card := Card(event))
                self.cards[event.call_id] = card
            case ToolUpdate() if event.call_id in self.cards:
                self.cards[event.call_id].note = str(event.partial)
            case ToolEnd() if event.call_id in self.cards:
                card = self.cards.pop(event.call_id)
                card.note = event.result.text
                card.tell("✗" if event.is_error else "✓")
            case AgentEnd() if event.outcome != "completed":
                self.fault.setText(str(event.error or f"The run was {event.outcome}."))
                self.error.show()

    def show_answer(self, text: str) -> None:
        if self.answer is not None:
            self.answer.setText(html(text, self.answer.font()))
            self.answer.setVisible(bool(text))

    def send(self) -> None:
        if text := self.input.text().strip():
            self.input.clear()
            (self.host.steer if self.host.is_running else self.host.prompt)(text)

    def retry(self) -> None:
        self.error.hide()
        self.host.retry()

    def closeEvent(self, event: QCloseEvent) -> None:  # noqa: N802 - Qt's name
        self.host.close()
        super().closeEvent(event)


def html(markdown: str, font: QFont) -> str:
    """Markdown as Qt's rich text, with room between paragraphs and a ground for code."""
    document = QTextDocument(defaultFont=font)
    document.setMarkdown(markdown)
    cursor, block = QTextCursor(document), document.begin()
    while block.isValid():
        look = block.blockFormat()
        code = look.hasProperty(QTextFormat.Property.BlockCodeFence)
        look.setBackground(QColor("#eef1f6" if code else "transparent"))
        look.setTopMargin(0 if code else 4)
        look.setBottomMargin(0 if code else 4)
        cursor.setPosition(block.position())
        cursor.setBlockFormat(look)
        block = block.next()
    return document.toHtml()


def row(*widgets: QWidget, x: int = 0, y: int = 0) -> QBoxLayout:
    line = QBoxLayout(RIGHT, spacing=8, contentsMargins=QMargins(x, y, x, y))
    for n, widget in enumerate(widgets):
        line.addWidget(widget, 1 if n == 0 else 0)
    return line


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="demo")
    application = QApplication([])
    window = ChatWindow(Agent(parser.parse_args().model, tools=[search]))
    window.show()
    application.exec()


if __name__ == "__main__":
    main()
