"""`QuestionPanel`: what a tool or a hook wants to know, in the prompt's place: by one key where that is enough, else by text."""

from dataclasses import dataclass, field

from pydantic import JsonValue
from pydantic_core import from_json, to_json
from rich.console import Group
from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.message import Message
from textual.widgets import Input, Static

from rxagent.chat.look import Palette
from rxagent.chat.prompt import APP_KEYS
from rxagent.chat.text import clean
from rxagent.events import Interrupt
from rxagent.hooks import APPROVAL
from rxagent.messages import JsonObject


@dataclass(frozen=True, slots=True)
class Choice:
    """An answer that takes one key. ``text``: it takes a text as well, under this name of the answer."""

    key: str
    word: str
    answer: JsonValue = None
    text: str = ""


@dataclass(frozen=True, slots=True)
class Asked:
    """A question with the call it is about, if there is one."""

    interrupt: Interrupt
    args: JsonObject | str | None = None
    choices: tuple[Choice, ...] = field(default_factory=tuple[Choice, ...])


_APPROVAL = (
    Choice("y", "yes", "allow"),
    Choice("a", "always here", "allow"),
    Choice("n", "no", "deny"),
    Choice("r", "no, because…", {"decision": "deny"}, "reason"),
    Choice("e", "edit first", {"decision": "allow"}, "args"),
)
ALWAYS = _APPROVAL[1]


def asked(interrupt: Interrupt, args: JsonObject | str | None) -> Asked:
    """The question as it is put: an approval, a choice of values, or free text."""
    schema = interrupt.schema
    if schema == APPROVAL:
        return Asked(interrupt, args, _APPROVAL)
    return Asked(interrupt, args, _choices(schema or {}))


def _choices(schema: JsonObject) -> tuple[Choice, ...]:
    if schema.get("type") == "boolean":
        return (Choice("y", "yes", True), Choice("n", "no", False))
    values = schema.get("enum")
    several = schema.get("anyOf")
    if isinstance(several, list) and not isinstance(values, list):
        values = [value for option in several if isinstance(option, dict) for value in _as_list(option.get("enum"))]
    values = _as_list(values)
    return tuple(Choice(str(n), clean(_word(value)), value) for n, value in enumerate(values[:9], 1))


def _as_list(value: JsonValue) -> list[JsonValue]:
    return value if isinstance(value, list) else []


def _word(value: JsonValue) -> str:
    return value if isinstance(value, str) else to_json(value).decode()


def read_answer(text: str, schema: JsonObject | None) -> JsonValue:
    """A typed answer as the schema wants it: text where text will do, JSON otherwise.

    Raises:
        ValueError: JSON is wanted, and it is none.
    """
    wanted = (schema or {}).get("type")
    if wanted in (None, "string"):
        return text
    return from_json(text)


class QuestionPanel(Vertical, can_focus=True):
    """Puts one question after the other and gives the answers at once."""

    DEFAULT_CSS = """
    QuestionPanel {
        height: auto;
        max-height: 60%;
        display: none;
        padding: 0 1;
        background: $background;
        border: round $warning;
        border-title-color: $warning;
        border-title-style: bold;
    }
    QuestionPanel.open { display: block; }
    QuestionPanel VerticalScroll { height: auto; max-height: 8; scrollbar-size-vertical: 1; background: $background; }
    QuestionPanel Static { height: auto; background: $background; }
    QuestionPanel #keys { margin-top: 1; }
    QuestionPanel Input {
        display: none; height: 3; border: round $border; background: $background;
    }
    QuestionPanel Input:focus { border: round $accent; }
    QuestionPanel.typing Input { display: block; }
    """

    class Answered(Message):
        """All questions have their answers, by interrupt id. ``always``: tools that need no approval from here on."""

        def __init__(self, answers: dict[str, JsonValue], always: tuple[str, ...]) -> None:
            super().__init__()
            self.answers = answers
            self.always = always

    class Put(Message):
        """The questions are put off."""

    def __init__(self, palette: Palette, *, id: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self.palette = palette
        self._asked: list[Asked] = []
        self._answers: dict[str, JsonValue] = {}
        self._always: list[str] = []
        self._choice: Choice | None = None  # the one that a text is being written for

    def compose(self) -> ComposeResult:
        """The question, a line to type in, the keys."""
        with VerticalScroll(can_focus=False):
            yield Static(id="what")
        yield Input(id="answer")
        yield Static(id="keys")

    @property
    def is_open(self) -> bool:
        """Whether a question is put."""
        return self.has_class("open")

    def ask(self, questions: list[Asked]) -> None:
        """Puts questions."""
        self._asked, self._answers, self._always = questions, {}, []
        self.add_class("open")
        self._show()

    def close(self) -> None:
        """Goes away."""
        self._asked = []
        self.remove_class("open", "typing")

    @property
    def _now(self) -> Asked:
        return self._asked[len(self._answers)]

    def _show(self) -> None:
        now, count = self._now, len(self._asked)
        which = f" ({len(self._answers) + 1} of {count})" if count > 1 else ""
        is_approval = now.choices == _APPROVAL
        self.border_title = f"{'Approve' if is_approval else 'Question'}{which}"
        palette = self.palette
        if is_approval:
            head = Text.assemble("Run ", (now.interrupt.tool_name, f"bold {palette.accent}"), "?")
        else:
            head = Text(clean(now.interrupt.question), f"bold {palette.text}")
        parts = [head]
        if now.args:
            parts.append(_arguments(now.args, palette))
        self.query_one("#what", Static).update(Group(*parts))
        self._choice = None
        if now.choices:
            self.remove_class("typing")
            self.focus()
        else:
            self._type("", "your answer")
        self._show_keys()

    def _show_keys(self) -> None:
        keys = [(choice.key, choice.word) for choice in self._now.choices]
        if self._choice is not None or not keys:
            keys = [("enter", "answer")]
        keys.append(("esc", "back" if self._choice is not None else "later"))
        text = Text()
        for key, word in keys:
            text.append(f"{key} ", f"bold {self.palette.accent}")
            text.append(f"{word}   ", self.palette.muted)
        self.query_one("#keys", Static).update(text)

    def _type(self, value: str, placeholder: str) -> None:
        field_ = self.query_one(Input)
        field_.value, field_.placeholder = value, placeholder
        self.add_class("typing")
        field_.focus()

    async def on_key(self, event: events.Key) -> None:
        """A choice by its key."""
        if not self._asked:
            return
        typing = self.has_class("typing")
        if event.key == "escape":
            if self._choice is not None:
                self._show()
            else:
                self.post_message(self.Put())
        elif not typing and (choice := next((c for c in self._now.choices if c.key == event.key), None)):
            self._take(choice)
        elif event.key in APP_KEYS:
            await self.run_action(f"app.{APP_KEYS[event.key]}")
        else:
            return
        event.stop()
        event.prevent_default()

    def _take(self, choice: Choice) -> None:
        if choice.text:
            self._choice = choice
            value = to_json(self._now.args).decode() if choice.text == "args" else ""
            self._type(value, "why not; told to the model")
            self._show_keys()
            return
        if choice is ALWAYS:
            self._always.append(self._now.interrupt.tool_name)
        self._answer(choice.answer)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """A typed answer."""
        event.stop()
        choice, field_ = self._choice, self.query_one(Input)
        try:
            if choice is None:
                answer = read_answer(event.value, self._now.interrupt.schema)
            else:
                value: JsonValue = _object(event.value) if choice.text == "args" else event.value
                base = choice.answer if isinstance(choice.answer, dict) else {}
                answer = {**base, choice.text: value}
        except ValueError as error:
            field_.border_title = f"no JSON: {error}"
            return
        field_.border_title = ""
        self._answer(answer)

    def _answer(self, answer: JsonValue) -> None:
        self._answers[self._now.interrupt.id] = answer
        if len(self._answers) < len(self._asked):
            self._show()
            return
        message = self.Answered(dict(self._answers), tuple(self._always))
        self.close()
        self.post_message(message)


def _arguments(args: JsonObject | str, palette: Palette) -> Text:
    """Each argument by its name; texts as they are, line by line."""
    if isinstance(args, str):
        return Text(clean(args), palette.muted)
    lines: list[Text] = []
    for name, value in args.items():
        shown = clean(value if isinstance(value, str) and "\n" in value else to_json(value).decode())
        joint = "\n" if "\n" in shown else " "
        lines.append(Text.assemble((f"{clean(name)}:", palette.muted), joint, (shown, palette.text)))
    return Text("\n").join(lines)


def _object(text: str) -> JsonValue:
    value: JsonValue = from_json(text)
    if not isinstance(value, dict):
        raise ValueError('arguments are an object, as in {"name": 1}')  # noqa: TRY004 - it is about the text
    return value
