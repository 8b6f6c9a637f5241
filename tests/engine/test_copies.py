"""Events and states can be copied and pickled at any moment, those of a stream that goes on included."""

import copy
import dataclasses
import pickle
from collections.abc import Callable

import pytest

from rxagent import Agent, AgentState
from rxagent.events import AnyEvent, MessageUpdate, to_json
from rxagent.messages import TextPart, ThinkingPart, ToolCall
from rxagent.models import ScriptedModel


def _pickled(value: object) -> object:
    return pickle.loads(pickle.dumps(value))


def _run() -> tuple[list[AnyEvent], list[AgentState]]:
    answer = [ThinkingPart("let me see"), TextPart("hello there"), ToolCall("1", "missing", {"x": 1})]
    agent = Agent(ScriptedModel([answer, "done"]))
    events: list[AnyEvent] = []
    states: list[AgentState] = []
    agent.events.subscribe(events.append)
    agent.states.subscribe(states.append)
    agent.prompt_sync("hi")
    return events, states


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, _pickled])
def test_a_copy_of_an_event_or_a_state_equals_it(again: Callable[[object], object]) -> None:
    events, states = _run()
    assert [again(event) for event in events] == events
    assert [again(state) for state in states] == states
    assert [to_json(again(event)) for event in events] == [to_json(event) for event in events]


def test_a_copied_transcript_grows_by_itself() -> None:
    _, states = _run()
    twin = copy.copy(states[-1].messages)
    assert len(twin.append(twin[0])) == len(states[-1].messages) + 1
    assert len(states[-1].messages.append(twin[1])) == len(twin) + 1
    assert twin == states[-1].messages


def test_a_message_so_far_can_be_changed_by_replace() -> None:
    events, _ = _run()
    update = next(e for e in events if isinstance(e, MessageUpdate) and e.message.text)
    changed = dataclasses.replace(update.message, stop_reason="aborted")
    assert (changed.stop_reason, changed.text, changed.id) == ("aborted", update.message.text, update.message.id)
    assert update.message.stop_reason is None
    assert dataclasses.asdict(update)["message"]["id"] == changed.id
