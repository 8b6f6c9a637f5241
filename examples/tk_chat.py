"""A chat window in Tk: answers as they stream, running tools, steering, stop, retry.

pip install rxagent; then: python tk_chat.py --model openai:gpt-5-mini   (without a model: the built-in demo)
"""

import argparse
import asyncio
import re
import time
import tkinter as tk
from collections.abc import AsyncIterator

from rxagent import Agent, tool
from rxagent.bridges import AgentHost, Frame, TkPort
from rxagent.events import AgentEnd, AnyEvent, MessageEnd, MessageStart, ModelRetry, ToolEnd, ToolStart, ToolUpdate
from rxagent.messages import AssistantMessage, UserMessage

PAGE, INK, DIM, BLUE, CARD, RED, PINK = "#f6f7f9", "#1f2430", "#767d8c", "#2f6fed", "#e9edf4", "#c9403f", "#fdecec"
SANS, MONO = "DejaVu Sans", "DejaVu Sans Mono"
LOOKS = {
    "hello": {"foreground": DIM, "justify": "center", "spacing1": 160},
    "right": {"justify": "right"},
    "failed": {"foreground": "#8f97a6"},
    "bold": {"font": (SANS, 11, "bold")},
    "italic": {"font": (SANS, 11, "italic")},
    "mono": {"font": (MONO, 10)},
    "code": {"font": (MONO, 10), "background": CARD, "lmargin1": 12, "lmargin2": 12},
}
MARKED = re.compile(r"(```.*?(?:```|\Z)|\*\*[^*\n]+\*\*|\*[^*\n]+\*|`[^`\n]+`|^#+ [^\n]*)", re.DOTALL | re.MULTILINE)
TAGS = {"```": "code", "**": "bold", "*": "italic", "`": "mono", "#": "bold"}


@tool
async def search(query: str) -> AsyncIterator[str]:
    """Searches the library's catalogue."""
    for n in range(1, 4):
        await asyncio.sleep(0.5)
        yield f"{n} of 3 shelves searched"
    yield f"Three books on {query}: Reactive Streams, Flow Control, The Patient Reader."


class Card(tk.Label):
    """A tool call: its arguments, the time it takes, and what it says."""

    def __init__(self, parent: tk.Misc, event: ToolStart) -> None:
        super().__init__(parent, bg=CARD, fg="#3c4454", font=(SANS, 10), padx=10, pady=6, justify="left", wraplength=640)
        values = event.args.values() if isinstance(event.args, dict) else [event.args]
        self.call = f"{event.tool_name}({', '.join(map(repr, values))})"
        self.started, self.note = time.monotonic(), ""
        self.tell()

    def tell(self, mark: str = "●") -> None:
        note = f"  —  {self.note}" if self.note else ""
        self.configure(text=f"{mark} {self.call}   {time.monotonic() - self.started:.1f} s{note}")


class ChatWindow:
    """One conversation. Everything it knows comes in ``show_frame``; everything it does goes to the host."""

    def __init__(self, root: tk.Tk, agent: Agent) -> None:
        self.root, self.host = root, AgentHost(agent)
        self.cards: dict[str, Card] = {}
        self.shown = ""
        self.build(agent.model.name)
        root.protocol("WM_DELETE_WINDOW", self.close)
        self.host.frames(TkPort(root)).subscribe(self.show_frame)

    def build(self, model: str) -> None:
        root = self.root
        root.title(f"Chat · {model}")
        root.geometry("760x640")
        root.configure(bg=PAGE)
        top, bottom = tk.Frame(root, bg=PAGE, padx=24, pady=14), tk.Frame(root, bg=PAGE, padx=24, pady=16)
        self.error, self.waiting = tk.Frame(root, bg=PINK, padx=14, pady=8), tk.Label(root, bg=PAGE, fg=DIM, font=(SANS, 9))
        top.pack(fill="x")
        bottom.pack(fill="x", side="bottom")
        tk.Label(top, text=model, bg=PAGE, fg=INK, font=(SANS, 12, "bold")).pack(side="left")
        self.usage = tk.Label(top, bg=PAGE, fg=DIM, font=(SANS, 9))
        self.usage.pack(side="right")
        self.page = tk.Text(root, bg=PAGE, fg=INK, font=(SANS, 11), wrap="word", bd=0, padx=24, highlightthickness=0, spacing2=3)
        self.page.pack(fill="both", expand=True)
        for tag, look in LOOKS.items():
            self.page.tag_configure(tag, **look)
        self.page.insert("end", "Ask about a book, or tell it to search for something.", "hello")
        self.page.configure(state="disabled")
        self.input = tk.Entry(bottom, font=(SANS, 11), bd=9, relief="flat", fg=INK, bg="white", highlightthickness=1)
        self.input.configure(highlightbackground="#cfd5df", highlightcolor=BLUE, insertbackground=INK)
        self.input.pack(side="left", fill="x", expand=True, padx=(0, 8))
        self.input.bind("<Return>", lambda _event: self.send())
        self.button, self.stop = button(bottom, "Send", BLUE, self.send), button(bottom, "Stop", "#3c4454", self.abort)
        self.button.pack(side="left")
        self.fault = tk.Label(self.error, bg=PINK, fg=INK, font=(SANS, 10), anchor="w", justify="left", wraplength=560)
        self.fault.pack(side="left", fill="x", expand=True)
        button(self.error, "Retry", RED, self.retry).pack(side="right")
        self.input.focus_set()

    def show_frame(self, frame: Frame[AnyEvent]) -> None:
        at_end = self.page.yview()[1] > 0.99
        self.page.configure(state="normal")
        for event in frame:
            self.show_event(event)
        state = frame.state
        if state is not None and state.streaming_message is not None:
            self.show_answer(state.streaming_message.text)  # once a frame, however many pieces came
        self.page.configure(state="disabled")
        if at_end:
            self.root.after(20, self.page.see, "end")  # when everything has its place
        if state is not None:
            self.usage.configure(text=f"{state.usage.total or 0:,} tokens")
            self.waiting.configure(text="   ".join(f"↳ {waiting.text}" for waiting in state.steering))
            show(self.waiting, wanted=bool(state.steering), anchor="w", padx=24, before=self.page, side="bottom")
            show(self.stop, wanted=state.is_streaming, side="left", padx=(8, 0))
            self.button.configure(text="Steer" if state.is_streaming else "Send")

    def show_event(self, event: AnyEvent) -> None:
        match event:
            case MessageStart(message=UserMessage(text=text)):
                self.page.delete(*self.page.tag_ranges("hello") or ("end", "end"))
                bubble = tk.Label(self.page, text=text, bg=BLUE, fg="white", font=(SANS, 11), padx=13, pady=8)
                bubble.configure(wraplength=480, justify="left")
                self.add(bubble, "right")
            case MessageStart(message=AssistantMessage()):
                self.error.pack_forget()
                self.page.mark_set("answer", "end-1c")
                self.page.mark_gravity("answer", "left")
                self.shown = ""
            case MessageEnd(message=AssistantMessage() as message):
                self.show_answer(message.text)
                if message.stop_reason in ("error", "aborted"):  # cut short: no model sees it again
                    self.page.tag_add("failed", "answer", "end-1c")
            case ModelRetry():
                self.show_answer("")  # the attempt is withdrawn, another one follows
            case ToolStart():
                card = self.cards[event.call_id] = Card(self.page, event)
                self.add(card)
                self.tick()
            case ToolUpdate() if event.call_id in self.cards:
                self.cards[event.call_id].note = str(event.partial)
            case ToolEnd() if event.call_id in self.cards:
                card = self.cards.pop(event.call_id)
                card.note = event.result.text
                card.tell("✗" if event.is_error else "✓")
            case AgentEnd() if event.outcome != "completed":
                self.fault.configure(text=str(event.error or f"The run was {event.outcome}."))
                show(self.error, wanted=True, fill="x", padx=24, before=self.page, side="bottom")

    def show_answer(self, text: str) -> None:
        if text == self.shown:
            return
        self.shown = text
        self.page.delete("answer", "end-1c")
        for piece in MARKED.split(text.strip()):
            mark = next((mark for mark in TAGS if piece.startswith(mark) and len(piece) > 2), "")
            inner = piece.strip(mark) if mark else piece
            if mark == "```":
                inner = inner.partition("\n")[2].rstrip("\n")  # without the language
            self.page.insert("end", inner, TAGS.get(mark, ""))
        self.page.insert("end", "\n\n")

    def add(self, widget: tk.Widget, tag: str = "") -> None:
        self.page.window_create("end", window=widget)
        self.page.tag_add(tag or "card", "end-2c", "end-1c")
        self.page.insert("end", "\n\n", tag)

    def tick(self) -> None:
        for card in self.cards.values():
            card.tell()
        if self.cards:
            self.root.after(100, self.tick)

    def send(self) -> None:
        if text := self.input.get().strip():
            self.input.delete(0, "end")
            (self.host.steer if self.host.is_running else self.host.prompt)(text)

    def abort(self) -> None:
        self.host.abort("stopped")

    def retry(self) -> None:
        self.error.pack_forget()
        self.host.retry()

    def close(self) -> None:
        self.host.close()
        self.root.destroy()


def button(parent: tk.Misc, text: str, colour: str, command: object) -> tk.Button:
    made = tk.Button(parent, text=text, bg=colour, fg="white", activebackground=colour, activeforeground="white", command=command)
    made.configure(font=(SANS, 11, "bold"), bd=0, padx=18, pady=8, highlightthickness=0, cursor="hand2")
    return made


def show(widget: tk.Widget, *, wanted: bool, **how: object) -> None:
    if wanted and not widget.winfo_manager():
        widget.pack(**how)
    elif not wanted:
        widget.pack_forget()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="demo")
    root = tk.Tk()
    ChatWindow(root, Agent(parser.parse_args().model, tools=[search]))
    root.mainloop()


if __name__ == "__main__":
    main()
