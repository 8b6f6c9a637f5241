"""What a user may put inside the loop: `Hooks`, the verdicts of ``before_tool``, and what hooks are told.

1. Each hook is a function or a list of them, sync or async.
2. First registered is outermost: it sees first what goes in, and last what comes out.
3. A raising ``before_tool`` or ``after_tool`` gives that call's error result; any other ends the run as failed.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TypeVar

from pydantic import JsonValue
from pydantic_core import to_json

from rxagent.errors import InvalidOption
from rxagent.events import Interrupt
from rxagent.messages import AnyMessage, AssistantMessage, JsonObject, ThinkingLevel, ToolResult, ToolResultMessage
from rxagent.models.base import Model
from rxagent.signals import Signal
from rxagent.tools import Told, Tool

T = TypeVar("T")
Maybe = T | Awaitable[T]


@dataclass(frozen=True, slots=True)
class Allow:
    """Let the call run as it is."""


@dataclass(frozen=True, slots=True)
class Edit:
    """Let the call run with other arguments; they are validated again."""

    args: JsonObject


@dataclass(frozen=True, slots=True)
class Block:
    """Don't run the call; the model is told why."""

    reason: str


@dataclass(frozen=True, slots=True)
class Ask:
    """Ask a person: the run is interrupted, and in the resumed run the hook finds the answer in ``call.answer``.

    A hook that doesn't look there and asks again gets what an approval would: allowed, or denied.
    """

    question: str
    schema: JsonObject | None = None


@dataclass(frozen=True, slots=True)
class Stop:
    """From ``after_turn``: end the run here, as completed."""


Verdict = Allow | Edit | Block | Ask


@dataclass(frozen=True, slots=True)
class HookContext:
    """Where a hook is called from. ``emit(name, data)`` puts a `Custom` event into the stream.

    ``settled``: the questions of this run that were answered, those of the runs it resumes included.
    """

    agent: str
    path: tuple[str, ...]
    run_id: str
    signal: Signal
    emit: Callable[[str, object], Told]
    deps: object = None
    settled: tuple[tuple[Interrupt, JsonValue], ...] = ()


@dataclass(frozen=True, slots=True)
class HookCall:
    """A tool call as ``before_tool`` and ``after_tool`` see it.

    ``answered`` and ``answer``: in a resumed run, whether and what a person answered to this hook's `Ask`.
    """

    id: str
    name: str
    args: JsonObject
    context: HookContext
    answered: bool = False
    answer: JsonValue = None


@dataclass(frozen=True, slots=True)
class HookTurn:
    """A finished turn as ``after_turn`` sees it."""

    turn: int
    message: AssistantMessage
    tool_results: tuple[ToolResultMessage, ...]
    messages: Sequence[AnyMessage]
    context: HookContext


@dataclass(frozen=True, slots=True, kw_only=True)
class HookRequest:
    """The next request, as ``prepare_request`` may change it (``dataclasses.replace``).

    ``messages`` and what stands below them hold for this request; a changed ``model``, ``tools``,
    ``thinking_level`` or ``system_prompt`` holds from here on and shows as `ConfigChanged`.
    """

    model: Model | str
    system_prompt: str
    thinking_level: ThinkingLevel
    tools: tuple[Tool, ...]
    messages: tuple[AnyMessage, ...]
    max_tokens: int | None = None
    temperature: float | None = None
    parallel_tool_calls: bool | None = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    options: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    turn: int = 0
    context: HookContext


TransformContext = Callable[[Sequence[AnyMessage]], Maybe[Sequence[AnyMessage]]]
ConvertToModel = Callable[[Sequence[AnyMessage]], Maybe[Sequence[AnyMessage]]]
PrepareRequest = Callable[[HookRequest], Maybe[HookRequest | None]]
BeforeTool = Callable[[HookCall], Maybe[Verdict | None]]
AfterTool = Callable[[HookCall, ToolResult], Maybe[ToolResult | None]]
AfterTurn = Callable[[HookTurn], Maybe[Stop | None]]
GetApiKey = Callable[[str], Maybe[str | None]]
F = TypeVar("F", bound=Callable[..., object])


def _several(hooks: F | Sequence[F] | None) -> tuple[F, ...]:
    if hooks is None:
        return ()
    if callable(hooks):
        return (hooks,)
    for hook in hooks if isinstance(hooks, Sequence) else (hooks,):  # pyright: ignore[reportUnnecessaryIsInstance] callers without a type checker
        if not callable(hook):
            raise InvalidOption(f"a hook is a function or a list of functions, not {hook!r:.80}")
    return tuple(hooks)


@dataclass(frozen=True, slots=True, init=False)
class Hooks:
    """Functions the loop calls; each argument is one or a list. ``a | b`` runs a's outside of b's.

    Args:
        transform_context: messages before every request, to prune or add; the transcript stays as it is.
        convert_to_model: messages after that, to turn custom kinds into ones a model knows.
        prepare_request: the request, to swap model, tools, thinking level or prompt.
        before_tool: allow, edit, block, or ask a person. None allows.
        after_tool: the result, to override fields (``dataclasses.replace``). None leaves it.
        after_turn: stop or go on.
        get_api_key: a key for a provider, asked before every request.
    """

    transform_context: tuple[TransformContext, ...]
    convert_to_model: tuple[ConvertToModel, ...]
    prepare_request: tuple[PrepareRequest, ...]
    before_tool: tuple[BeforeTool, ...]
    after_tool: tuple[AfterTool, ...]
    after_turn: tuple[AfterTurn, ...]
    get_api_key: tuple[GetApiKey, ...]

    def __init__(  # noqa: PLR0913 - one argument per hook, all by name
        self,
        *,
        transform_context: TransformContext | Sequence[TransformContext] | None = None,
        convert_to_model: ConvertToModel | Sequence[ConvertToModel] | None = None,
        prepare_request: PrepareRequest | Sequence[PrepareRequest] | None = None,
        before_tool: BeforeTool | Sequence[BeforeTool] | None = None,
        after_tool: AfterTool | Sequence[AfterTool] | None = None,
        after_turn: AfterTurn | Sequence[AfterTurn] | None = None,
        get_api_key: GetApiKey | Sequence[GetApiKey] | None = None,
    ) -> None:
        put = object.__setattr__
        put(self, "transform_context", _several(transform_context))
        put(self, "convert_to_model", _several(convert_to_model))
        put(self, "prepare_request", _several(prepare_request))
        put(self, "before_tool", _several(before_tool))
        put(self, "after_tool", _several(after_tool))
        put(self, "after_turn", _several(after_turn))
        put(self, "get_api_key", _several(get_api_key))

    def __or__(self, other: "Hooks") -> "Hooks":
        return Hooks(**{f.name: (*getattr(self, f.name), *getattr(other, f.name)) for f in fields(self)})


APPROVAL: JsonObject = {
    "anyOf": [
        {"enum": ["allow", "deny", True, False]},
        {
            "type": "object",
            "properties": {
                "decision": {"enum": ["allow", "deny", True, False]},
                "reason": {"type": ["string", "null"], "description": "Told to the model with a denial."},
                "args": {"type": ["object", "null"], "description": "Run it with these arguments instead."},
                "remember": {"type": "boolean", "description": "The same for further calls of this tool in this run."},
            },
            "required": ["decision"],
            "additionalProperties": False,
        },
    ]
}


class Approval(Hooks):
    """The hook that `approve` makes: usable as ``hooks=…`` or as one ``before_tool`` among others."""

    __slots__ = ("_wanted",)

    def __init__(self, wanted: Callable[[HookCall], bool]) -> None:
        object.__setattr__(self, "_wanted", wanted)
        super().__init__(before_tool=self.__call__)

    def __call__(self, call: HookCall) -> Verdict:
        """The verdict about one call."""
        if not self._wanted(call):
            return Allow()
        if call.answered:
            return decision_of(call.answer)
        for question, answer in reversed(call.context.settled):
            same = question.tool_name == call.name and ":hook" in question.id
            if same and isinstance(answer, dict) and answer.get("remember") is True:
                return decision_of({**answer, "args": None})
        return Ask(f"Run {call.name} with {to_json(call.args).decode()}?", APPROVAL)


def decision_of(answer: JsonValue) -> Verdict:
    """What an answer to a request for approval means: ``"allow"``, True, ``"deny"``, False, or an object; see `approve`.

    Raises:
        ValueError: it is none of these.
    """
    given = answer if isinstance(answer, dict) else {"decision": answer}
    decision, args = given.get("decision"), given.get("args")
    if decision in ("allow", True):
        return Edit(args) if isinstance(args, dict) else Allow()
    if decision in ("deny", False):
        reason = given.get("reason")
        return Block(f"denied: {reason}" if reason else "denied by the user")
    raise ValueError(f"an approval is answered with 'allow', 'deny' or {{'decision': …}}, not {answer!r:.100}")


def approve(
    tools: Sequence[Tool | Callable[..., object] | str] | Tool | str | Callable[[HookCall], bool] | None = None,
) -> Approval:
    """Makes a hook that asks a person before calls run: ``Agent(…, hooks=approve(tools=["delete"]))``.

    Each call becomes an interrupt. It is answered with ``"allow"``, ``"deny"``, or an object: ``decision``, with
    ``reason`` (told to the model), ``args`` (to run it with), ``remember`` (the same for further calls of the tool in
    this run, and in those that resume it). Any other answer is refused by `InterruptError`; cancelling is an error result.

    Args:
        tools: names or tools that need approval (one or several), or a function of the call that says so; None: all.

    Raises:
        InvalidOption: it is none of these.
    """
    if tools is None:
        return Approval(lambda _: True)
    if isinstance(tools, str | Tool):  # before what is callable: a tool is that, too, and would run here
        names = {_name_of(tools)}
    elif callable(tools):
        return Approval(tools)
    elif isinstance(tools, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance] callers aren't all typed
        names = {_name_of(item) for item in tools}
    else:
        raise InvalidOption(f"approve takes tools, their names, or a function of the call, not {tools!r:.80}")
    return Approval(lambda call: call.name in names)


def _name_of(item: Tool | Callable[..., object] | str) -> str:
    if isinstance(item, str):
        return item
    name = item.declaration.name if isinstance(item, Tool) else getattr(item, "__name__", None)
    if not isinstance(name, str):
        raise InvalidOption(f"approve takes tools or their names, not {item!r:.80}")
    return name
