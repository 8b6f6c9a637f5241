"""Drives the chat windows of ``examples/`` as a person would: ``python gui_chat.py qt|tk FOLDER`` leaves screenshots there."""

import sys
import time
from pathlib import Path

EXAMPLES = Path(__file__).parent.parent / "examples"
LIMIT = 20.0


class QtChat:
    def __init__(self, agent):
        import qt_chat
        from PySide6.QtWidgets import QApplication

        self.app = QApplication([])
        self.example = qt_chat
        self.window = qt_chat.ChatWindow(agent)
        self.window.show()

    def pump(self):
        self.app.processEvents()

    def type(self, text):
        self.window.input.setText(text)
        self.window.button.click()

    def stop(self):
        self.window.stop.click()

    def retry(self):
        (button,) = [b for b in self.window.error.findChildren(self.example.QPushButton) if b.text() == "Retry"]
        button.click()

    def text(self):
        plain = []
        for label in self.window.findChildren(self.example.QLabel):
            if label.isVisible():
                document = self.example.QTextDocument()
                document.setHtml(label.text())
                plain.append(document.toPlainText() if label.text().startswith("<!DOCTYPE") else label.text())
        return "\n".join(plain)

    def shot(self, path):
        assert self.window.grab().save(str(path))

    def close(self):
        self.window.close()


class TkChat:
    def __init__(self, agent):
        import tkinter as tk

        import tk_chat

        self.tk = tk
        self.root = tk.Tk()
        self.example = tk_chat
        self.window = tk_chat.ChatWindow(self.root, agent)
        self.root.geometry("760x640+0+0")

    def pump(self):
        self.root.update()

    def type(self, text):
        self.window.input.insert(0, text)
        self.window.button.invoke()

    def stop(self):
        self.window.stop.invoke()

    def retry(self):
        (button,) = [child for child in self.window.error.winfo_children() if isinstance(child, self.tk.Button)]
        button.invoke()

    def text(self):
        def labels(widget):
            for child in widget.winfo_children():
                if isinstance(child, self.tk.Label) and child.winfo_manager():
                    yield child.cget("text")
                if child.winfo_manager():
                    yield from labels(child)

        return "\n".join([*labels(self.root), self.window.page.get("1.0", "end")])

    def shot(self, path):
        from PIL import ImageGrab

        self.root.update()
        ImageGrab.grab((0, 0, 760, 640), xdisplay="").save(path)

    def close(self):
        self.window.close()


class Person:
    """Looks at the window until there is what they wait for."""

    def __init__(self, chat, folder):
        self.chat, self.folder = chat, folder

    def sees(self, *texts):
        until = time.monotonic() + LIMIT
        while True:
            self.chat.pump()
            shown = self.chat.text()
            if all(text in shown for text in texts):
                return
            assert time.monotonic() < until, f"expected {texts}, the window shows:\n{shown}"
            time.sleep(0.005)

    def sees_no(self, text):
        until = time.monotonic() + LIMIT
        while text in self.chat.text():
            self.chat.pump()
            assert time.monotonic() < until, f"{text!r} is still there"
            time.sleep(0.005)

    def shot(self, name):
        until = time.monotonic() + 0.15
        while time.monotonic() < until:
            self.chat.pump()
            time.sleep(0.01)
        self.chat.shot(self.folder / f"{name}.png")


def scripted():
    from rxagent import Agent, Retry
    from rxagent.events.model import ModelError
    from rxagent.messages import ToolCall, Usage
    from rxagent.models import ScriptedModel

    module = sys.modules.get("qt_chat") or sys.modules["tk_chat"]
    answer = (
        "The catalogue has **three books** on back-pressure:\n\n1. *Reactive Streams*, the reference\n"
        "2. *Flow Control*, older, with proofs\n3. *The Patient Reader*\n\n```python\nhost.frames(port).subscribe(show)\n```\n\n"
        "The second one is on the shelf now."
    )
    turns = [
        ["I'll look it up in the catalogue.", ToolCall("c1", "search", {"query": "back-pressure"})],
        answer,
        ["Its ", "proofs ", ModelError("overloaded", "the server is overloaded: try again later")],
        "Its proofs are in the second chapter.",
        [f"point {n}, " for n in range(5000)],
        "Welcome back.",
    ]
    model = ScriptedModel(turns, delay=0.01, usage=Usage(input=1200, output=180))
    return Agent(model, tools=[module.search], retry=Retry(attempts=1))


def conversation(chat, folder):
    person = Person(chat, folder)
    person.shot("idle")
    chat.type("Which books do you have on back-pressure?")
    person.sees("I'll look it up in the catalogue.", "● search('back-pressure')", "2 of 3 shelves searched")
    chat.type("Only those on the shelf, please")
    person.sees("↳ Only those on the shelf, please")
    person.shot("tools")
    person.sees("✓ search('back-pressure')", "three books")
    person.sees_no("↳ Only those")
    person.shot("streaming")
    person.sees("The second one is on the shelf now.", "2,760 tokens")
    person.sees("Reactive Streams, Flow Control, The Patient Reader.")
    chat.type("What about its proofs?")
    person.sees("the server is overloaded: try again later")
    person.shot("error")
    chat.retry()
    person.sees("Its proofs are in the second chapter.")
    person.sees_no("overloaded")
    chat.type("Go on")
    person.sees("point 20,")
    chat.stop()
    person.sees("The run was aborted.")
    chat.type("Hello again")
    person.sees("Welcome back.")
    person.shot("done")
    chat.type("One more")  # the script has no more turns: closing while something is shown is no matter
    chat.close()


def main(toolkit, folder):
    sys.path.insert(0, str(EXAMPLES))
    chats = {"qt": QtChat, "tk": TkChat}
    __import__(f"{toolkit}_chat")
    conversation(chats[toolkit](scripted()), Path(folder))
    import threading

    assert not [thread for thread in threading.enumerate() if "rxagent" in thread.name]


if __name__ == "__main__":
    main(*sys.argv[1:])
