"""`"demo"`: the built-in offline model. Its answers are scripted and it says so; nothing is asked of any server.

It thinks a little, calls a tool that the prompt names, tells what came of it, writes Markdown when asked to, and
fails when asked to, once.
"""

import re
from collections.abc import AsyncIterator, Mapping
from itertools import takewhile

from pydantic import JsonValue
from pydantic_core import to_json

from rxagent.events.model import ModelError, ModelEvent, ResponseEnd
from rxagent.messages import (
    CustomMessage,
    JsonObject,
    TextPart,
    ThinkingPart,
    ToolCall,
    ToolDeclaration,
    ToolResultMessage,
    Usage,
    UserMessage,
)
from rxagent.models.base import ModelRequest
from rxagent.models.fields import as_list, as_object, as_text
from rxagent.models.scripted import ScriptedModel, ScriptedPart

_FAILURE = ModelError("server", "the demo model fails when it is asked to; the next try will go well")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_QUOTED = re.compile(r"[\"'“‘`]([^\"'”’`]+)[\"'”’`]")
_LONG = ("markdown", "essay", "story", "long", "sample", "explain", "list", "table", "code")
_SYMBOLS = {"add": "+", "sum": "+", "plus": "+", "subtract": "-", "multiply": "*", "times": "*", "divide": "/"}
_SAMPLE = """# A sample of Markdown

The demo model writes this text whenever a longer answer is wanted. It comes in **small pieces**, so that a \
program can show it *while it grows*.

## What can be in it

1. Paragraphs with `code`, **bold** and [links](https://example.org).
2. Lists, of which this is one.
3. Code:

```python
from rxagent import Agent

run = Agent("demo").prompt("add 2 and 2")
```

| event | what it tells |
|---|---|
| `MessageUpdate` | the answer grew |
| `ToolStart` | a tool begins |
| `AgentEnd` | the run is over |

> A run is an Observable: everything that can be done with a stream can be done with it.

For a real model give another name, such as `openai:gpt-5-mini` or `ollama:llama3.2`.
"""


class DemoModel:
    """Answers offline, by rule.

    Args:
        delay: seconds between the pieces of an answer, so that it can be watched.

    """

    name = "demo"
    provider = "demo"

    def __init__(self, *, delay: float = 0.008) -> None:
        self._model = ScriptedModel(self._answer, name="demo", delay=delay)
        self._failed = ""  # the prompt that failed last: asked again, it is answered

    def __repr__(self) -> str:
        return "DemoModel()"

    def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Plays the answer."""
        self._model.requests.clear()  # a long-lived agent is not to be remembered here as well
        return self._model.stream(request)

    def _answer(self, request: ModelRequest) -> list[ScriptedPart]:
        asked = next((m for m in reversed(request.messages) if isinstance(m, UserMessage)), None)
        prompt = asked.text if asked is not None else ""
        if "fail" in re.findall(r"[a-z]+", prompt.lower()) and self._failed != prompt:
            self._failed = prompt
            return [TextPart("This answer will not come to"), _FAILURE]
        self._failed = ""
        parts = answer(request)
        written = sum(len(part.text) for part in parts if isinstance(part, TextPart | ThinkingPart))
        read = len(request.system_prompt) + sum(len(m.text) for m in request.messages if not isinstance(m, CustomMessage))
        return [*parts, _end(read // 4 + 1, written // 4 + 1, calls=any(isinstance(part, ToolCall) for part in parts))]


def _end(read: int, written: int, *, calls: bool) -> ResponseEnd:
    """The end of an answer, with tokens as they are commonly estimated: four characters each."""
    return ResponseEnd("tool_use" if calls else "stop", Usage(read, written, cost=0.0))


def answer(request: ModelRequest) -> list[ScriptedPart]:
    """What the demo model says to a request."""
    results = list(takewhile(lambda m: isinstance(m, ToolResultMessage), reversed(request.messages)))
    asked = next((m for m in reversed(request.messages) if isinstance(m, UserMessage)), None)
    prompt = asked.text if asked is not None else ""
    if request.output_schema is not None and not (results == [] and _called(request.tools, prompt)):
        return [TextPart(to_json(_example(request.output_schema, prompt, request.output_schema)).decode())]
    if results:
        return [TextPart(_report([m for m in reversed(results) if isinstance(m, ToolResultMessage)]))]
    tools = _called(request.tools, prompt)
    if tools:
        names = " and ".join(tool.name for tool in tools)
        thought = ThinkingPart(f"The prompt asks for something that {names} can do, so I call it.")
        calls = [ToolCall(f"demo_{n}", tool.name, _arguments(tool, prompt)) for n, tool in enumerate(tools)]
        return [thought, TextPart(f"Let me use {names}."), *calls]
    thought = ThinkingPart("No tool is named in the prompt, so I answer in words.")
    return [thought, TextPart(_SAMPLE if _wants_more(prompt) else _short(request, prompt))]


def _wants_more(prompt: str) -> bool:
    return any(word in prompt.lower() for word in _LONG)


def _short(request: ModelRequest, prompt: str) -> str:
    said = f" You said “{prompt.strip()[:200]}”." if prompt.strip() else ""
    names = ", ".join(tool.name for tool in request.tools)
    more = f" I can call {names}: name one in the prompt." if names else ' Ask for "a long answer" to see Markdown.'
    return f"This is the demo model: its answers are scripted and no model is asked.{said}{more}"


def _report(results: list[ToolResultMessage]) -> str:
    told: list[str] = []
    for r in results:
        text = r.text.strip()
        if not r.is_error:
            told.append(f"{r.tool_name} says {text[:500] or 'nothing'}")
        elif r.tool_name in text:  # it says itself whose failure it is
            told.append(text[:200])
        else:
            told.append(f"{r.tool_name} failed: {text[:200]}")
    return "; ".join(told) + ". (Told by the demo model, which is scripted.)"


def _called(tools: tuple[ToolDeclaration, ...], prompt: str) -> list[ToolDeclaration]:
    words = set(re.findall(r"[a-z0-9_]+", prompt.lower()))
    return [tool for tool in tools if _named(tool.name.lower(), words, prompt)]


def _named(name: str, words: set[str], prompt: str) -> bool:
    parts = [part for part in re.split(r"[_\W]+", name) if part]
    if name in words or (parts and all(part in words for part in parts)):
        return True
    symbol = _SYMBOLS.get(parts[0]) if parts else None
    return symbol is not None and re.search(rf"\d\s*{re.escape(symbol)}\s*\d", prompt) is not None


def _arguments(tool: ToolDeclaration, prompt: str) -> JsonObject:
    """Numbers and quoted words of the prompt, in order, for the parameters that want such; those after its name, if there are."""
    after = prompt[max(0, prompt.lower().find(tool.name.lower())) :]
    properties = as_object(tool.parameters.get("properties"))
    required = as_list(tool.parameters.get("required"))
    numbers: list[JsonValue] = [float(n) if "." in n else int(n) for n in _NUMBER.findall(after) or _NUMBER.findall(prompt)]
    texts = _QUOTED.findall(after) or _QUOTED.findall(prompt)
    made: JsonObject = {}
    for name, schema in properties.items():
        kind = _kind(as_object(schema))
        if kind in ("integer", "number") and numbers:
            made[name] = numbers.pop(0)
        elif kind == "string" and texts:
            made[name] = texts.pop(0)
        elif kind == "array" and numbers:
            made[name], numbers = list(numbers), []
        elif name in required:
            made[name] = _example(as_object(schema), prompt, tool.parameters)
    return made


def _kind(schema: Mapping[str, JsonValue]) -> str:
    """The type that a schema asks for; of several, the first."""
    several = [as_text(as_object(each).get("type")) for each in as_list(schema.get("anyOf"))]
    return as_text(schema.get("type")) or next((each for each in several if each), "")


def _example(schema: object, prompt: str, root: JsonObject, depth: int = 0) -> JsonValue:
    """The smallest value that a schema allows; text is taken from the prompt."""
    value = as_object(schema)
    if depth > 8:
        return None
    if reference := as_text(value.get("$ref")):
        found: object = root
        for step in reference.removeprefix("#/").split("/"):
            found = as_object(found).get(step)
        return _example(found, prompt, root, depth + 1)
    for key in ("const", "default"):
        if key in value:
            return value[key]
    choices = as_list(value.get("enum")) or [_example(c, prompt, root, depth + 1) for c in as_list(value.get("anyOf"))[:1]]
    if choices:
        return choices[0]
    return _of_type(value, prompt, root, depth)


def _of_type(value: object, prompt: str, root: JsonObject, depth: int) -> JsonValue:
    schema = as_object(value)
    match schema.get("type"):
        case "object":
            properties = as_object(schema.get("properties"))
            return {name: _example(inner, prompt, root, depth + 1) for name, inner in properties.items()}
        case "array":
            least = schema.get("minItems")
            count = least if isinstance(least, int) else 0
            return [_example(schema.get("items"), prompt, root, depth + 1)] * count
        case "integer" | "number":
            found = _NUMBER.search(prompt)
            number = float(found[0]) if found else 0.0
            return int(number) if schema.get("type") == "integer" else number
        case "boolean":
            return True
        case "null":
            return None
        case _:
            return prompt.strip()[:200] or "demo"
