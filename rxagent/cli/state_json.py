"""The state of an agent as JSON."""

from pydantic import JsonValue

from rxagent.events import message_adapter
from rxagent.messages import AnyMessage, JsonObject, to_json_value
from rxagent.state import AgentState


def state_object(state: AgentState) -> JsonObject:
    """All fields of a state by their names."""
    made: JsonObject = {
        "path": list(state.path),
        "system_prompt": state.system_prompt,
        "model": state.model,
        "thinking_level": state.thinking_level,
        "tools": to_json_value(state.tools, "tools"),
        "messages": [_message(message) for message in state.messages],
        "is_streaming": state.is_streaming,
        "streaming_message": None if state.streaming_message is None else _message(state.streaming_message),
        "pending_tool_calls": list(state.pending_tool_calls),
        "error_message": state.error_message,
        "run_id": state.run_id,
        "turn": state.turn,
        "usage": to_json_value(state.usage, "usage"),
        "steering": [_message(message) for message in state.steering],
        "follow_ups": [_message(message) for message in state.follow_ups],
        "interrupts": to_json_value(state.interrupts, "interrupts"),
    }
    return made


def _message(message: AnyMessage) -> JsonValue:
    return message_adapter().dump_python(message, mode="json")
