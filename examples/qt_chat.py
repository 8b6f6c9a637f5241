"""A chat window in Qt: answers as they stream, running tools, steering, stop, retry.

pip install 'rxagent[qt]'; then: python qt_chat.py --model openai:gpt-5-mini   (without a model: the built-in demo)
"""

import argparse
import asyncio
import time
from collections.abc import AsyncIterator

from PySide6.QtCore import QMargins, Qt, QTimer
from PySide6.QtGui import QCloseEvent, QColor, QFont, QTextCursor, QTextDocument, QTextFormat
from PySide6.QtWidgets import (
    QApplication,
    QFrame,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QMainWindow,
    QPushButton,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from rxagent import Agent, tool
from rxagent.bridges import AgentHost, Frame, QtPort
from rxagent.events import AgentEnd, AnyEvent, MessageEnd, MessageStart, ModelRetry, ToolEnd, ToolStart, ToolUpdate
from rxagent.messages import AssistantMessage, UserMessage

STYLE = """
QMainWindow, #page { background: #f6f7f9 } QScrollArea { border: none }
QScrollBar:vertical { background: transparent; width: 8px } QScrollBar::handle { background: #c5cbd6; border-radius: 4px }
QScrollBar::add-line, QScrollBar::sub-line { height: 0 } QScrollBar::add-page, QScrollBar::sub-page { background: transparent }
QLabel { color: #1f2430; font-size: 14px }
#title { font-size: 15px; font-weight: 600 } #dim { color: #767d8c; font-size: 12px }
#hello { color: #767d8c; font-size: 15px; padding-top: 150px }
#user { background: #2f6fed; color: white; border-radius: 12px; padding: 9px 13px }
#answer { background: white; border: 1px solid #e3e6ec; border-radius: 12px; padding: 11px 14px }
#answer:disabled { color: #8f97a6 }
#card { background: #eef1f6; border: 1px solid #dfe4ec; border-radius: 8px }
#head { border: none; text-align: left; color: #3c4454; padding: 6px 10px; font-size: 13px }
#body { color: #4a5264; padding: 0 10px 8px 26px; font-family: monospace; font-size: 12px }
#error { background: #fdecec; border: 1px solid #f3c2c2; border-radius: 8px }
QLineEdit { background: white; color: #1f2430; border: 1px solid #cfd5df; border-radius: 9px; padding: 9px 12px; font-size: 14px }
QLineEdit:focus { border-color: #2f6fed }
#send, #stop, #retry { border: none; border-radius: 9px; padding: 10px 18px; font-size: 14px; font-weight: 600; color: white }
#send { background: #2f6fed } #send:disabled { background: #b9c8ea } #stop { background: #3c4454 } #retry { background: #c9403f }
"""


@tool
async def search(query: str) -> AsyncIterator[str]:
    """Searches the library's catalogue."""
    for n in range(1, 4):
        await asyncio.sleep(0.5)
        yield f"{n} of 3 shelves searched"
    yield f"Three books on {query}: Reactive Streams, Flow Control, The Patient Reader."


class Card(QFrame):
    """A tool call: one line with the time it takes; a click unfolds arguments and result."""

    def __init__(self, event: ToolStart) -> None:
        super().__init__(objectName="card")
        values = event.args.values() if isinstance(event.args, dict) else [event.args]
        self.call = f"{event.tool_name}({', '.join(map(repr, values))})"
        self.started, self.took, self.note, self.mark = time.monotonic(), 0.0, "", "●"
        self.head = QPushButton(objectName="head", cursor=Qt.CursorShape.PointingHandCursor)
        self.body = QLabel(str(event.args), objectName="body", wordWrap=True, visible=False)
        self.body.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.head.clicked.connect(self.fold)
        column = QVBoxLayout(self, spacing=0, contentsMargins=QMargins(0, 0, 0, 0))
        column.addWidget(self.head)
        column.addWidget(self.body)
        self.tick()

    def fold(self) -> None:
        self.body.setVisible(self.body.isHidden())
        self.tick()

    def tick(self) -> None:
        seconds = self.took or time.monotonic() - self.started
        note = f"  —  {self.note:.60}" if self.note else ""
        self.head.setText(f"{'▸' if self.body.isHidden() else '▾'} {self.mark} {self.call}   {seconds:.1f} s{note}")

    def end(self, event: ToolEnd) -> None:
        self.took, self.mark = max(event.duration, 0.001), "✗" if event.is_error else "✓"
        self.note = event.result.summary or event.result.text.partition("\n")[0]
        self.body.setText(f"{event.args}\n\n{event.result.text}")
        self.tick()


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
        self.clock.timeout.connect(lambda: [card.tick() for card in self.cards.values()])
        self.host.frames(QtPort(self)).subscribe(self.show_frame)

    def build(self, model: str) -> None:
        page = QWidget(objectName="page")
        self.column = QVBoxLayout(page, spacing=10, contentsMargins=QMargins(24, 12, 24, 12))
        self.column.addStretch()
        self.hello = QLabel("Ask about a book, or tell it to search for something.", objectName="hello")
        self.hello.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.add(self.hello)
        scroll = QScrollArea(widget=page, widgetResizable=True)
        bar = scroll.verticalScrollBar()
        bar.rangeChanged.connect(lambda _low, high: bar.setValue(high))
        self.usage = QLabel(objectName="dim")
        self.waiting = QLabel(objectName="dim", visible=False)
        self.fault, self.error = QLabel(wordWrap=True), QFrame(objectName="error", visible=False)
        self.input = QLineEdit(placeholderText="Ask something", returnPressed=self.send)
        self.button = QPushButton("Send", objectName="send", clicked=self.send)
        self.stop = QPushButton("Stop", objectName="stop", visible=False, clicked=lambda: self.host.abort("stopped"))
        retry = QPushButton("Retry", objectName="retry", clicked=self.retry)
        self.error.setLayout(row(self.fault, retry, margins=(14, 8, 8, 8)))
        whole = QWidget()
        lines = QVBoxLayout(whole, spacing=8, contentsMargins=QMargins(0, 14, 0, 16))
        lines.addLayout(row(QLabel(model, objectName="title"), self.usage, margins=(24, 0, 24, 0)))
        lines.addWidget(scroll, 1)
        lines.addLayout(row(self.error, margins=(24, 0, 24, 0)))
        lines.addLayout(row(self.waiting, margins=(26, 0, 24, 0)))
        lines.addLayout(row(self.input, self.button, self.stop, margins=(24, 0, 24, 0)))
        self.setCentralWidget(whole)
        self.input.setFocus()

    # -- what the agent does

    def show_frame(self, frame: Frame[AnyEvent]) -> None:
        for event in frame:
            self.show_event(event)
        if frame.state is None:
            return
        message = frame.state.streaming_message
        if message is not None and self.answer is not None and message.text:
            self.answer.setText(html(message.text, self.answer.font()))  # once a frame, however many pieces came
            self.answer.show()
        self.usage.setText(f"{frame.state.usage.total or 0:,} tokens")
        self.waiting.setText("   ".join(f"↳ {waiting.text}" for waiting in frame.state.steering))
        self.waiting.setVisible(bool(frame.state.steering))
        self.stop.setVisible(frame.state.is_streaming)
        self.button.setText("Steer" if frame.state.is_streaming else "Send")
        self.input.setPlaceholderText("Steer it while it works" if frame.state.is_streaming else "Ask something")

    def show_event(self, event: AnyEvent) -> None:
        match event:
            case MessageStart(message=UserMessage(text=text)):
                self.hello.hide()
                self.error.hide()
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
                self.answer.setText(html(message.text, self.answer.font()))
                self.answer.setVisible(bool(message.text))
                self.answer.setEnabled(message.stop_reason not in ("error", "aborted"))  # cut short: no model sees it again
            case ModelRetry() if self.answer is not None:
                self.answer.hide()  # the attempt is withdrawn, another one follows
            case ToolStart():
                self.cards[event.call_id] = Card(event)
                self.add(self.cards[event.call_id])
                self.clock.start()
            case ToolUpdate() if event.call_id in self.cards:
                self.cards[event.call_id].note = str(event.partial)
            case ToolEnd() if event.call_id in self.cards:
                self.cards.pop(event.call_id).end(event)
            case AgentEnd() if event.outcome != "completed":
                self.fault.setText(str(event.error or f"The run was {event.outcome}."))
                self.error.show()

    def add(self, widget: QWidget) -> None:
        self.column.insertWidget(self.column.count() - 1, widget)

    # -- what the person does

    def send(self) -> None:
        text = self.input.text().strip()
        if text:
            self.input.clear()
            if self.host.is_running:
                self.host.steer(text)
            else:
                self.host.prompt(text)

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
        code = look.hasProperty(QTextFormat.Property.BlockCodeLanguage) or look.hasProperty(QTextFormat.Property.BlockCodeFence)
        look.setTopMargin(0 if code else 4)
        look.setBottomMargin(0 if code else 4)
        if code:
            look.setBackground(QColor("#eef1f6"))
        cursor.setPosition(block.position())
        cursor.setBlockFormat(look)
        block = block.next()
    return document.toHtml()


def row(*widgets: QWidget, margins: tuple[int, int, int, int] = (0, 0, 0, 0)) -> QHBoxLayout:
    line = QHBoxLayout(spacing=8, contentsMargins=QMargins(*margins))
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
