"""What is no model, tool, message, option or listener is refused at once, by a named error, and changes nothing."""

import pytest

from rxagent import Agent, Hooks, Limits, LoopConfig, Retry, tool
from rxagent.errors import InvalidMessage, InvalidOption, InvalidTool, Unserialisable, UsageError
from rxagent.events import EventReader, SessionStart, to_json
from rxagent.messages import (
    AssistantMessage,
    CustomMessage,
    ImagePart,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from rxagent.models import ScriptedModel


def agent(**options) -> Agent:
    return Agent(ScriptedModel(["hi"]), **options)


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"thinking_level": "huge"}, "'xhigh'"),
        ({"name": ""}, "name"),
        ({"name": 3}, "name"),
        ({"hooks": {"before_tool": print}}, "Hooks"),
        ({"limits": {"max_turns": 3}}, "Limits"),
        ({"retry": 3}, "Retry"),
        ({"output": object()}, "output"),
        ({"tools": 3}, "tools"),
        ({"tools": [3]}, "tool"),
        ({"messages": [{"role": "user"}]}, "input[0]"),
        ({"messages": None}, "input"),
    ],
)
def test_an_agent_is_not_made_of_what_it_cant_be_made_of(options, word):
    with pytest.raises(UsageError) as caught:
        agent(**options)
    assert word in str(caught.value)


@pytest.mark.parametrize("name", ["steering_mode", "follow_up_mode", "tool_mode", "thinking_level"])
def test_an_option_takes_only_its_words_and_keeps_the_last_good_one(name):
    one = agent()
    before = getattr(one, name)
    with pytest.raises(InvalidOption, match=f"{name} is one of '.*', not 'sometimes'"):
        setattr(one, name, "sometimes")
    assert getattr(one, name) == before
    assert one.session.next_seq == 0


@pytest.mark.parametrize(
    "make",
    [
        lambda: Limits(max_turns="5"),
        lambda: Limits(max_parallel_tools=0),
        lambda: Limits(tool_timeout=0),
        lambda: Limits(grace="1"),
        lambda: Limits(max_usage=5),
        lambda: Retry(attempts=0),
        lambda: Retry(base_delay=-1),
        lambda: Hooks(before_tool=3),
        lambda: Hooks(after_turn=[3]),
        lambda: LoopConfig(model="demo", tool_mode="both"),
        lambda: agent().subscribe(3),
        lambda: agent().subscribe(print, capacity=-1),
        lambda: agent(system_prompt=3),
        lambda: setattr(agent(), "system_prompt", None),
    ],
)
def test_options_out_of_bounds_are_named(make):
    with pytest.raises(InvalidOption):
        make()


def test_a_tool_takes_some_time():
    with pytest.raises(InvalidTool, match="timeout"):
        tool(name="quick", timeout=-1)(lambda: 1)


@pytest.mark.parametrize(
    "make",
    [
        lambda: UserMessage(3),
        lambda: UserMessage([3]),
        lambda: UserMessage(TextPart(3)),
        lambda: SystemMessage(3),
        lambda: AssistantMessage(3),
        lambda: AssistantMessage([ImagePart("aaaa")]),
        lambda: ToolCall("c", "name", '{"n": 1}'),
        lambda: CustomMessage(role="user"),
        lambda: CustomMessage(role=""),
        lambda: agent().prompt_sync("look", images=["cat.png"]),
    ],
)
def test_what_is_no_message_is_refused_where_it_is_made(make):
    with pytest.raises(InvalidMessage):
        make()


def test_details_without_a_json_form_are_refused_where_they_are_given():
    with pytest.raises(Unserialisable, match=r"ToolResultMessage\.details"):
        ToolResultMessage("c", "name", "text", details=object())


def test_an_answer_may_be_written_as_text_or_as_a_list_and_survives_json():
    call = ToolCall("c", "add", {"a": 1})
    messages = (AssistantMessage("hello"), AssistantMessage(["so:", call]), AssistantMessage(call))
    assert [m.text for m in messages] == ["hello", "so:", ""]
    event = SessionStart(messages=messages)
    assert EventReader().read(to_json(event)) == event


def test_a_listener_whose_second_parameter_is_the_signal_gets_it_also_with_a_default():
    seen = []
    one = agent()
    one.subscribe(lambda event, signal=None: seen.append(signal))
    one.subscribe(lambda event, count=3: seen.append(count))
    one.prompt_sync("x")
    assert {value for value in seen if value != 3 and value is not None}
    assert seen.count(3) == len(seen) / 2


@pytest.mark.parametrize("capacity", [None, "3", 1.5])
def test_a_capacity_that_is_no_number_is_refused_by_name(capacity: object) -> None:
    with pytest.raises(InvalidOption, match="capacity"):
        agent().subscribe(print, capacity=capacity)


@pytest.mark.parametrize("hook", ["transform_context", "convert_to_model"])
@pytest.mark.parametrize("given", ["text", b"text"])
def test_a_context_hook_that_gives_text_gives_no_messages(hook: str, given: object) -> None:
    tried = agent(hooks=Hooks(**{hook: lambda _messages: given}))
    result = tried.prompt_sync("x")
    assert result.outcome == "failed"
    assert "a list of messages" in result.error.message
    assert tried.model.requests == []
