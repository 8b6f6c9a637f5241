"""From the transcript to one model request: context hooks, conversion, the request hook, the key."""

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

from rxagent.engine.config import as_models, one_of, prompt_text
from rxagent.engine.scope import HookFailed, Scope
from rxagent.errors import InvalidMessage
from rxagent.events import ConfigChanged
from rxagent.hooks import HookRequest
from rxagent.messages import AnyMessage, AssistantMessage, CustomMessage, ThinkingLevel, ToolResultMessage, as_messages
from rxagent.models.base import Model, ModelRequest
from rxagent.tools import as_tools


def sendable(messages: Sequence[AnyMessage]) -> tuple[AnyMessage, ...]:
    """What a model may see: no custom messages, no failed or aborted answers, nor results of their calls."""
    dropped: set[str] = set()
    kept: list[AnyMessage] = []
    for message in messages:
        if isinstance(message, AssistantMessage) and message.stop_reason in ("error", "aborted"):
            dropped.update(call.id for call in message.tool_calls)
        elif isinstance(message, CustomMessage) or (isinstance(message, ToolResultMessage) and message.call_id in dropped):
            continue
        else:
            kept.append(message)
    return tuple(kept)


async def prepare(scope: Scope, turn: int) -> ModelRequest:
    """Makes the next request. Changes a hook made to model, tools, level or prompt hold from here on.

    Raises:
        HookFailed: a hook raised or gave something that can't be used.
    """
    config, setup = scope.config, scope.setup
    messages: Sequence[AnyMessage] = scope.session.state.messages
    for hook in config.hooks.transform_context:
        messages = _messages("transform_context", await scope.call("transform_context", hook, messages))
    for hook in config.hooks.convert_to_model:
        messages = _messages("convert_to_model", await scope.call("convert_to_model", hook, messages))
    request = ModelRequest(
        messages=sendable(messages),
        system_prompt=setup.system_prompt,
        tools=tuple(tool.declaration for tool in setup.tools),
        thinking_level=setup.thinking_level,
        streaming=config.streaming,
        output_schema=scope.output.schema if scope.output else None,
        session_id=scope.session.id,
    )
    return await _hooked(scope, request, turn) if config.hooks.prepare_request else request


async def _hooked(scope: Scope, request: ModelRequest, turn: int) -> ModelRequest:
    setup = scope.setup
    wanted = HookRequest(
        model=setup.models[0],
        system_prompt=request.system_prompt,
        thinking_level=request.thinking_level,
        tools=setup.tools,
        messages=request.messages,
        turn=turn,
        context=scope.hook_context(),
    )
    for hook in scope.config.hooks.prepare_request:
        changed = await scope.call("prepare_request", hook, wanted)
        if changed is not None:
            wanted = _checked(changed)
    await _adopt(scope, wanted)
    return replace(
        request,
        messages=sendable(_messages("prepare_request", wanted.messages)),
        system_prompt=wanted.system_prompt,
        tools=tuple(tool.declaration for tool in setup.tools),
        thinking_level=wanted.thinking_level,
        parallel_tool_calls=wanted.parallel_tool_calls,
        max_tokens=wanted.max_tokens,
        temperature=wanted.temperature,
        headers=wanted.headers,
        options=wanted.options,
    )


def _messages(hook: str, value: object) -> tuple[AnyMessage, ...]:
    if not isinstance(value, Sequence) or isinstance(value, str | bytes):
        raise HookFailed(hook, TypeError(f"expected a list of messages, got {value!r:.100}"))
    try:
        return as_messages(cast("Sequence[object]", value))
    except InvalidMessage as error:
        raise HookFailed(hook, error) from error


def _checked(value: object) -> HookRequest:
    if isinstance(value, HookRequest):
        return value
    error = TypeError(f"expected the request, changed by dataclasses.replace, or None; got {value!r:.100}")
    raise HookFailed("prepare_request", error)


async def _adopt(scope: Scope, wanted: HookRequest) -> None:
    setup = scope.setup
    before = setup.config()
    try:
        models = setup.models if wanted.model is setup.models[0] else as_models(wanted.model)
        tools = setup.tools if wanted.tools is setup.tools else as_tools(wanted.tools)
        prompt_text(wanted.system_prompt)
        one_of(wanted.thinking_level, ThinkingLevel, "thinking_level")
    except Exception as error:
        raise HookFailed("prepare_request", error) from error
    setup.models, setup.tools = models, tools
    setup.system_prompt, setup.thinking_level = wanted.system_prompt, wanted.thinking_level
    after = setup.config()
    if after != before:
        await scope.emit(ConfigChanged(after, origin=scope.origin))


async def with_key(scope: Scope, model: Model, request: ModelRequest) -> ModelRequest:
    """The request with the key that ``get_api_key`` gives for the model's provider, if any."""
    for hook in scope.config.hooks.get_api_key:
        key = await scope.call("get_api_key", hook, model.provider)
        if key is not None:
            if not isinstance(key, str):
                raise HookFailed("get_api_key", TypeError(f"expected a key as text, or None; got a {type(key).__name__}"))
            return replace(request, api_key=key)
    return request
