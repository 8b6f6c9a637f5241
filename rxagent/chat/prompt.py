"""`Prompt`: where a person writes. Enter sends, ctrl+j breaks the line, up and down go through what was sent before."""

from textual import events
from textual.message import Message
from textual.widgets import TextArea

from rxagent.chat.text import clean

APP_KEYS = {
    "pageup": "page(-1)",
    "pagedown": "page(1)",
    "ctrl+home": "edge(-1)",
    "ctrl+end": "edge(1)",
    "ctrl+up": "line(-1)",
    "ctrl+down": "line(1)",
    "escape": "stop",
    "ctrl+c": "interrupt",
    "ctrl+r": "retry",
    "ctrl+t": "thoughts",
    "ctrl+o": "results",
    "ctrl+l": "models",
    "ctrl+p": "history",
    "ctrl+n": "new",
    "ctrl+g": "theme",
    "ctrl+q": "leave",
    "f1": "keys",
}
"""Keys that mean the same wherever the focus is, and the app's actions."""

REMEMBERED = 200  # prompts to go back to
LONG_PASTE = 3_000  # characters, from which on a name stands for what is pasted, until it is sent


class Prompt(TextArea):
    """A text box of one to eight lines."""

    DEFAULT_CSS = """
    Prompt {
        height: auto;
        min-height: 3;
        max-height: 10;
        padding: 0 1;
        background: $background;
        border: round $border;
        scrollbar-size-vertical: 1;
    }
    Prompt:focus { border: round $accent; }
    Prompt .text-area--placeholder { color: $muted; }
    Prompt .text-area--cursor-line { background: transparent; }
    """

    class Sent(Message):
        """A prompt; ``how``: ``now`` by enter, ``later`` by tab, ``cut`` by ctrl+x."""

        def __init__(self, text: str, how: str) -> None:
            super().__init__()
            self.text = text
            self.how = how

    class TakeBack(Message):
        """What is queued is wanted back for editing."""

    class Outward(Message):
        """The focus is to go to the transcript."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id, soft_wrap=True, show_line_numbers=False, tab_behavior="focus", highlight_cursor_line=False)
        self.has_queue = False  # whether up in an empty box takes back what waits
        self._sent: list[str] = []
        self._at = 0
        self._draft = ""
        self._pasted: dict[str, str] = {}  # by what stands for it

    async def _on_key(self, event: events.Key) -> None:
        if await self._own_key(event.key):
            event.stop()
            event.prevent_default()
            return
        await super()._on_key(event)

    async def _own_key(self, key: str) -> bool:
        """Does what a key means here; False: it is the text box's."""
        match key:
            case "enter":
                self._send("now")
            case "tab" if self.text.strip():
                self._send("later")
            case "tab" | "shift+tab":
                self.post_message(self.Outward())
            case "ctrl+x":
                self._send("cut")
            case "ctrl+j" | "shift+enter":
                self.insert("\n")
            case "up" if self._on_first_line():
                self._older()
            case "down" if self._on_last_line() and self._at < len(self._sent):
                self._newer()
            case "question_mark" if not self.text:
                await self.run_action("app.keys")
            case "ctrl+d" if not self.text:
                await self.run_action("app.leave")
            case _ if key in APP_KEYS:
                await self.run_action(f"app.{APP_KEYS[key]}")
            case _:
                return False
        return True

    async def _on_paste(self, event: events.Paste) -> None:
        event.stop()
        event.prevent_default()
        text = clean(event.text)
        if len(text) > LONG_PASTE:
            name = f"[pasted {len(self._pasted) + 1}: {len(text):,} characters]"
            self._pasted[name] = text
            text = name
        result = self.replace(text, *self.selection, maintain_selection_offset=False)
        self.move_cursor(result.end_location)
        self.focus()

    def put(self, text: str) -> None:
        """Text to edit, the cursor behind it."""
        self.text = text
        self.move_cursor(self.document.end)

    def _send(self, how: str) -> None:
        text = self.text.strip()
        if not text:
            return
        if not self._sent or self._sent[-1] != text:
            self._sent = [*self._sent[-REMEMBERED:], text]
        self._at, self._draft = len(self._sent), ""
        self.text = ""
        for name, pasted in self._pasted.items():
            text = text.replace(name, pasted)
        self.post_message(self.Sent(text, how))

    def _on_first_line(self) -> bool:
        return self.cursor_location[0] == 0 and self.get_cursor_up_location()[0] == 0 and self._wrapped_row() == 0

    def _on_last_line(self) -> bool:
        return self.cursor_location[0] == self.document.line_count - 1

    def _wrapped_row(self) -> int:
        return self.wrapped_document.location_to_offset(self.cursor_location).y

    def _older(self) -> None:
        if not self.text and self.has_queue:
            self.post_message(self.TakeBack())
        elif self._at > 0:
            if self._at == len(self._sent):
                self._draft = self.text
            self._at -= 1
            self.put(self._sent[self._at])

    def _newer(self) -> None:
        self._at += 1
        self.put(self._sent[self._at] if self._at < len(self._sent) else self._draft)
