"""What servers that speak Anthropic Messages send, well-formed or not, and what becomes of it."""
# ruff: noqa: E501 - one fault, one line

import model_streams as streams
import pytest

from rxagent.models.anthropic_stream import AnthropicDecoder


def start(**usage):
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-test", "content": [], "stop_reason": None}
    return {"type": "message_start", "message": {**message, "usage": usage or {"input_tokens": 12, "output_tokens": 1}}}


def block(index, **content):
    return {"type": "content_block_start", "index": index, "content_block": content}


def delta(index, **content):
    kind = {
        "text": "text_delta",
        "thinking": "thinking_delta",
        "partial_json": "input_json_delta",
        "signature": "signature_delta",
    }
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind[next(iter(content))], **content}}


def stop(index):
    return {"type": "content_block_stop", "index": index}


def ended(reason="end_turn", **usage):
    fields = {"stop_reason": reason, "stop_sequence": None}
    return {"type": "message_delta", "delta": fields, "usage": usage or {"output_tokens": 9}}


END = {"type": "message_stop"}
TEXT = (block(0, type="text", text=""), delta(0, text="Hel"), delta(0, text="lo"), stop(0))
CALL = (
    block(1, type="tool_use", id="toolu_1", name="read", input={}),
    delta(1, partial_json='{"path":'),
    delta(1, partial_json='"a"}'),
    stop(1),
)
PING = {"type": "ping"}

CASES = {
    "text": ([start(), *TEXT, ended(), END], {"text": "Hello", "stop_reason": "stop", "blocks": ["text"], "usage": {"input": 12, "output": 9}}),
    "text and call": ([start(), *TEXT, *CALL, ended("tool_use"), END], {"calls": [("read", {"path": "a"})], "ids": ["toolu_1"], "stop_reason": "tool_use", "blocks": ["text", "toolcall"]}),
    "pings and unknown events": ([PING, start(), PING, *TEXT, {"type": "shiny_new_thing", "index": 0}, ": comment\n\n", ended(), END], {"text": "Hello", "stop_reason": "stop"}),
    "no message_start": ([*TEXT, ended(), END], {"text": "Hello", "stop_reason": "stop"}),
    "no content_block_start": ([start(), delta(0, text="Hi"), stop(0), ended(), END], {"text": "Hi", "blocks": ["text"]}),
    "no content_block_stop": ([start(), *TEXT[:-1], *CALL[:-1], ended("tool_use"), END], {"text": "Hello", "calls": [("read", {"path": "a"})], "stop_reason": "tool_use"}),
    "no message_delta": ([start(), *TEXT, *CALL, END], {"stop_reason": "tool_use", "calls": [("read", {"path": "a"})]}),
    "no message_stop": ([start(), *TEXT, *CALL, ended("tool_use")], {"stop_reason": "error", "text": "Hello", "retryable": True, "error": "before its end"}),
    "nothing at all": ([], {"stop_reason": "error", "retryable": True}),
    "cut in arguments": ([start(), *CALL[:-2]], {"stop_reason": "error", "retryable": True}),
    "blank content blocks": ([start(), block(0, type="text", text=""), stop(0), block(1, type="thinking", thinking="", signature=""), delta(1, thinking=""), stop(1), block(2, type="text", text=""), delta(2, text="x"), stop(2), ended(), END], {"blocks": ["text"], "text": "x"}),
    "text in the start": ([start(), block(0, type="text", text="He"), delta(0, text="y"), stop(0), ended(), END], {"text": "Hey"}),
    "interleaved": ([start(), TEXT[0], CALL[0], delta(0, text="a"), CALL[1], delta(0, text="b"), CALL[2], stop(1), stop(0), ended("tool_use"), END], {"text": "ab", "calls": [("read", {"path": "a"})]}),
    "thinking after text at one index": ([start(), delta(0, thinking="hm"), delta(0, text="a"), delta(0, text="b"), ended(), END], {"blocks": ["thinking", "text"], "text": "ab", "thinking": "hm"}),
    "text at the index of a call": ([start(), CALL[0], delta(1, text="So "), CALL[1], delta(1, text="be it"), CALL[2], stop(1), ended("tool_use"), END], {"text": "So be it", "calls": [("read", {"path": "a"})], "blocks": ["toolcall", "text"]}),
    "indexes with gaps": ([start(), block(0, type="thinking", thinking=""), delta(0, thinking="a"), stop(0), block(5, type="text", text=""), delta(5, text="b"), stop(5), ended(), END], {"thinking": "a", "text": "b"}),
    "thinking after text": ([start(), *TEXT, block(1, type="thinking", thinking=""), delta(1, thinking="hm"), stop(1), ended(), END], {"blocks": ["text", "thinking"]}),
    "arguments of two calls in one block": ([start(), block(0, type="tool_use", id="t", name="f", input={}), delta(0, partial_json='{"a": 1}'), delta(0, partial_json='{"b": 2}'), stop(0), ended("tool_use"), END], {"calls": [], "stop_reason": "tool_use", "invalid_tool_calls": [{"id": "t", "name": "f", "raw": '{"a": 1}{"b": 2}'}]}),
    "every block at index 0": ([start(), *TEXT, block(0, type="tool_use", id="t1", name="f", input={}), delta(0, partial_json='{"n":1}'), stop(0), block(0, type="tool_use", id="t2", name="f", input={}), delta(0, partial_json='{"n":2}'), stop(0), ended("tool_use"), END], {"calls": [("f", {"n": 1}), ("f", {"n": 2})], "ids": ["t1", "t2"], "text": "Hello"}),
    "no stop between calls of one index": ([start(), block(0, type="tool_use", id="t1", name="f", input={}), delta(0, partial_json='{"n":1}'), block(0, type="tool_use", id="t2", name="g", input={}), delta(0, partial_json='{"n":2}'), ended("tool_use"), END], {"calls": [("f", {"n": 1}), ("g", {"n": 2})]}),
    "no index": ([start(), {"type": "content_block_start", "content_block": {"type": "text", "text": ""}}, {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "x"}}, {"type": "content_block_stop"}, ended(), END], {"text": "x"}),
    "no delta type": ([start(), {"type": "content_block_delta", "index": 0, "delta": {"text": "x"}}, ended(), END], {"text": "x"}),
    "input in the start": ([start(), block(0, type="tool_use", id="t", name="f", input={"a": 1}), stop(0), ended("tool_use"), END], {"calls": [("f", {"a": 1})], "stop_reason": "tool_use"}),
    "input in the start and streamed": ([start(), block(0, type="tool_use", id="t", name="f", input={"a": 1}), delta(0, partial_json='{"a": 1}'), stop(0), ended("tool_use"), END], {"calls": [("f", {"a": 1})]}),
    "input as text": ([start(), block(0, type="tool_use", id="t", name="f", input='{"a": 1}'), stop(0), ended("tool_use"), END], {"calls": [("f", {"a": 1})]}),
    "input null": ([start(), block(0, type="tool_use", id="t", name="f", input=None), stop(0), ended("tool_use"), END], {"calls": [("f", {})], "stop_reason": "tool_use"}),
    "no input at all": ([start(), block(0, type="tool_use", id="t", name="f"), stop(0), ended("tool_use"), END], {"calls": [("f", {})]}),
    "empty input deltas": ([start(), block(0, type="tool_use", id="t", name="f", input={}), delta(0, partial_json=""), delta(0, partial_json=" "), stop(0), ended("tool_use"), END], {"calls": [("f", {})]}),
    "an empty object before the real input": ([start(), block(0, type="tool_use", id="t", name="f", input={}), delta(0, partial_json="{}"), delta(0, partial_json='{"a": 1}'), stop(0), ended("tool_use"), END], {"calls": [("f", {"a": 1})]}),
    "nothing but an empty object": ([start(), block(0, type="tool_use", id="t", name="f", input={}), delta(0, partial_json="{}"), stop(0), ended("tool_use"), END], {"calls": [("f", {})], "stop_reason": "tool_use"}),
    "delta is an object": ([start(), block(0, type="tool_use", id="t", name="f", input={}), delta(0, partial_json={"a": 1}), stop(0), ended("tool_use"), END], {"calls": [("f", {"a": 1})]}),
    "doubly encoded": ([start(), block(0, type="tool_use", id="t", name="f", input={}), delta(0, partial_json='"{\\"a\\": 1}"'), stop(0), ended("tool_use"), END], {"calls": [("f", {"a": 1})]}),
    "arguments that are no JSON": ([start(), block(0, type="tool_use", id="t", name="f", input={}), delta(0, partial_json='{"a": '), stop(0), ended("tool_use"), END], {"calls": [], "invalid_tool_calls": [{"id": "t", "name": "f", "raw": '{"a": '}], "stop_reason": "tool_use"}),
    "no id": ([start(), block(0, type="tool_use", id="", name="f", input={}), stop(0), block(1, type="tool_use", name="g", input={}), stop(1), ended("tool_use"), END], {"ids": ["call_0", "call_1"]}),
    "arguments of no call": ([start(), delta(3, partial_json='{"a": 1}'), stop(3), ended("tool_use"), END], {"stop_reason": "error", "retryable": True, "error": "never began"}),
    "calls, but end_turn": ([start(), *CALL, ended("end_turn"), END], {"stop_reason": "tool_use"}),
    "tool_use, but no call": ([start(), *TEXT, ended("tool_use"), END], {"stop_reason": "stop"}),
    "stop reason null": ([start(), *TEXT, ended(None), END], {"stop_reason": "stop"}),
    "stop reason unknown": ([start(), *TEXT, ended("compaction"), END], {"stop_reason": "stop"}),
    "stop reason first, then null": ([start(), *TEXT, ended("max_tokens"), ended(None), END], {"stop_reason": "length"}),
    "max_tokens": ([start(), *TEXT, ended("max_tokens"), END], {"stop_reason": "length"}),
    "max_tokens, then end_turn": ([start(), *TEXT, ended("max_tokens"), ended("end_turn"), END], {"stop_reason": "length"}),
    "max_tokens in a call": ([start(), *CALL[:2], ended("max_tokens"), END], {"stop_reason": "length"}),
    "context window full": ([start(), *TEXT, ended("model_context_window_exceeded"), END], {"stop_reason": "length"}),
    "stop_sequence": ([start(), *TEXT, ended("stop_sequence"), END], {"stop_reason": "stop"}),
    "pause_turn": ([start(), *TEXT, ended("pause_turn"), END], {"stop_reason": "stop"}),
    "refusal": ([start(), *TEXT, {"type": "message_delta", "delta": {"stop_reason": "refusal", "stop_details": {"type": "refusal", "category": "bio"}}, "usage": {"output_tokens": 1}}, END], {"stop_reason": "content_filter"}),
    "refusal after a call": ([start(), *CALL, ended("refusal"), END], {"stop_reason": "content_filter"}),
    "stop reason of another protocol": ([start(), *TEXT, ended("length"), END], {"stop_reason": "length"}),
    "stop reason error": ([start(), *TEXT, ended("error"), END], {"stop_reason": "error", "text": "Hello", "retryable": True}),
    "cache counted in": ([start(input_tokens=9, cache_read_input_tokens=100, cache_creation_input_tokens=20, output_tokens=1), *TEXT, ended(output_tokens=16), END], {"usage": {"input": 129, "cache_read": 100, "cache_write": 20, "output": 16, "reasoning": None}}),
    "null erases nothing": ([start(input_tokens=9, cache_read_input_tokens=4, output_tokens=1), *TEXT, ended(input_tokens=None, cache_read_input_tokens=None, output_tokens=5), END], {"usage": {"input": 13, "cache_read": 4, "output": 5}}),
    "input only at the end": ([start(input_tokens=0, output_tokens=0), *TEXT, ended(input_tokens=33, output_tokens=5), END], {"usage": {"input": 33, "output": 5, "cache_read": None}}),
    "several message_deltas": ([start(), *TEXT, ended(None, output_tokens=5), ended("end_turn", output_tokens=7), END], {"usage": {"output": 7}}),
    "cache writes by lifetime": ([start(input_tokens=1, cache_creation={"ephemeral_5m_input_tokens": 3, "ephemeral_1h_input_tokens": 4}), *TEXT, ended(), END], {"usage": {"input": 8, "cache_write": 7}}),
    "thinking tokens": ([start(), *TEXT, ended(output_tokens=50, output_tokens_details={"thinking_tokens": 40}), END], {"usage": {"output": 50, "reasoning": 40}}),
    "no usage": ([{"type": "message_start", "message": {"id": "m"}}, *TEXT, {"type": "message_delta", "delta": {"stop_reason": "end_turn"}}, END], {"usage": None, "text": "Hello"}),
    "no index, two calls": ([start(), *[{key: field for key, field in event.items() if key != "index"} for name in "fg" for event in (block(0, type="tool_use", id=name, name=name, input={}), delta(0, partial_json='{"a"'), delta(0, partial_json=":1}"), stop(0))], ended("tool_use"), END], {"calls": [("f", {"a": 1}), ("g", {"a": 1})]}),
    "index as text": ([start(), *[{**block(0, type="tool_use", id=i, name="f", input={}), "index": i} for i in "01"], *[{**delta(0, partial_json=f'{{"n":{i}}}'), "index": i} for i in "01"], ended("tool_use"), END], {"calls": [("f", {"n": 0}), ("f", {"n": 1})]}),
    "usage as text": ([start(input_tokens="9", output_tokens="1"), *TEXT, ended(output_tokens="7"), END], {"usage": {"input": 9, "output": 7}}),
    "one id for two calls": ([start(), block(0, type="tool_use", id="t", name="f", input={}), block(1, type="tool_use", id="t", name="g", input={}), ended("tool_use"), END], {"ids": ["t", "t_1"]}),
    "usage of wrong types": ([start(input_tokens="many", output_tokens=-3), *TEXT, ended(output_tokens=True), END], {"text": "Hello", "usage": {"input": None, "output": None}}),
    "overloaded": ([start(), *TEXT[:2], {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}], {"text": "Hel", "stop_reason": "error", "kind": "overloaded", "retryable": True}),
    "rate limit in the stream": ([start(), {"type": "error", "error": {"type": "rate_limit_error", "message": "This request would exceed your rate limit"}}], {"kind": "rate_limit", "retryable": True}),
    "error without a type": ([start(), *TEXT[:2], {"error": {"type": "api_error", "message": "Internal server error"}}], {"kind": "server", "retryable": True, "text": "Hel"}),
    "error as text": (['event: error\ndata: {"error": "upstream died"}\n\n'], {"error": "upstream died", "stop_reason": "error"}),
    "error that is no JSON": (['event: error\ndata: upstream died\n\n'], {"error": "upstream died", "stop_reason": "error"}),
    "context overflow in the stream": ([{"type": "error", "error": {"type": "invalid_request_error", "message": "prompt is too long: 210000 tokens > 200000 maximum"}}], {"kind": "context_overflow", "retryable": False}),
    "an error after a call": ([start(), *CALL, {"type": "error", "error": {"type": "api_error", "message": "x"}}], {"stop_reason": "error"}),
    "nothing after the end counts": ([start(), *TEXT, ended(), END, *CALL, {"type": "error", "error": {"message": "late"}}], {"stop_reason": "stop", "calls": []}),
    "[DONE] is no end": ([start(), *TEXT, "data: [DONE]\n\n"], {"stop_reason": "error"}),
    "[DONE] in place of message_stop": ([start(), *TEXT, ended(), "data: [DONE]\n\n"], {"stop_reason": "stop", "text": "Hello"}),
    "stop reason in capitals": ([start(), *TEXT, ended("MAX_TOKENS"), END], {"stop_reason": "length"}),
    "[DONE] after the end": ([start(), *TEXT, ended(), END, "data: [DONE]\n\n"], {"stop_reason": "stop"}),
    "a whole message as one event": ([{"type": "message", "id": "m", "model": "c", "content": [{"type": "text", "text": "Hi"}], "stop_reason": "end_turn", "usage": {"input_tokens": 3, "output_tokens": 4}}], {"text": "Hi", "stop_reason": "stop", "usage": {"input": 3, "output": 4}}),
    "tools at the server's side": ([start(), block(0, type="server_tool_use", id="srv", name="web_search", input={}), delta(0, partial_json='{"q":"x"}'), stop(0), block(1, type="web_search_tool_result", tool_use_id="srv", content=[]), stop(1), block(2, type="text", text=""), delta(2, text="Found."), stop(2), ended(), END], {"text": "Found.", "calls": [], "stop_reason": "stop"}),
    "citations": ([start(), TEXT[0], {"type": "content_block_delta", "index": 0, "delta": {"type": "citations_delta", "citation": {"type": "char_location"}}}, *TEXT[1:], ended(), END], {"text": "Hello"}),
    "half characters": ([start(), TEXT[0], 'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a\\ud83d"}}\n\n', 'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"\\ude00b"}}\n\n', stop(0), ended(), END], {"text": "a😀b"}),
    "odd types everywhere": ([{"type": "message_start", "message": 3}, {"type": "content_block_start", "index": {}, "content_block": []}, {"type": "content_block_delta", "index": [], "delta": "x"}, {"type": "content_block_stop", "index": {}}, {"type": "message_delta", "delta": 7, "usage": 8}, *TEXT, [], 5, None, "data: \n\n", END], {"text": "Hello", "stop_reason": "stop"}),
}  # fmt: skip


@pytest.mark.parametrize("cut", streams.CUTS)
@pytest.mark.parametrize("case", CASES)
def test_stream(case, cut):
    events, expected = CASES[case]
    assert streams.differences(expected, streams.answer(AnthropicDecoder, streams.sse(*events), cut)) == {}


def test_event_names_stand_in_for_missing_types():
    lines = [
        'event: content_block_delta\ndata: {"index":0,"delta":{"type":"text_delta","text":"x"}}\n\n',
        "event: message_stop\ndata: {}\n\n",
    ]
    assert streams.answer(AnthropicDecoder, streams.sse(*lines))["text"] == "x"


def replays(*events):
    return [
        e.replay
        for e in streams.events_of(lambda: AnthropicDecoder("claude-x"), streams.sse(*events))
        if e.type == "thinking_end"
    ]


def test_a_signature_in_pieces_is_joined_and_names_its_model():
    thinking = (
        block(0, type="thinking", thinking="", signature=""),
        delta(0, thinking="hm"),
        delta(0, signature="AB"),
        delta(0, signature="C="),
        stop(0),
    )
    assert replays(start(), *thinking, ended(), END) == [{"wire": "anthropic", "model": "claude-x", "signature": "ABC="}]


def test_a_signature_without_thinking_is_kept():
    hidden = (block(0, type="thinking", thinking="", signature=""), delta(0, signature="S"), stop(0))
    assert replays(start(), *hidden, *CALL, ended("tool_use"), END)[0]["signature"] == "S"


def test_redacted_thinking_is_kept_in_its_place():
    events = (
        start(),
        block(0, type="redacted_thinking", data="enc"),
        stop(0),
        block(1, type="thinking", thinking="a", signature="s"),
        stop(1),
        ended(),
        END,
    )
    assert [r.get("data") or r.get("signature") for r in replays(*events)] == ["enc", "s"]


def test_thinking_without_a_signature_is_kept_as_unsigned():
    assert replays(start(), delta(0, thinking="hm"), ended(), END) == [
        {"wire": "anthropic", "model": "claude-x", "unsigned": True}
    ]


WHOLE = b'{"id":"m","type":"message","role":"assistant","model":"c","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","text":"Hi"},{"type":"tool_use","id":"t","name":"f","input":{"a":1}}],"stop_reason":"tool_use","usage":{"input_tokens":3,"output_tokens":4}}'


@pytest.mark.parametrize("cut", streams.CUTS)
def test_an_answer_in_one_piece(cut):
    expected = {
        "thinking": "hm",
        "text": "Hi",
        "calls": [("f", {"a": 1})],
        "stop_reason": "tool_use",
        "blocks": ["thinking", "text", "toolcall"],
    }
    assert streams.differences(expected, streams.answer(AnthropicDecoder, [WHOLE], cut)) == {}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (
            b'{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}',
            {"kind": "overloaded", "retryable": True},
        ),
        (
            b'{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}',
            {"kind": "auth", "retryable": False},
        ),
        (b'{"ok": true}', {"kind": "protocol"}),
        (b"<html><title>502 Bad Gateway</title></html>", {"error": "502 Bad Gateway", "retryable": True}),
        (b'{"type":"message","content":"plain","stop_reason":"end_turn"}', {"text": "plain", "stop_reason": "stop"}),
    ],
)
def test_other_bodies(body, expected):
    assert streams.differences(expected, streams.answer(AnthropicDecoder, [body])) == {}


def test_blocks_of_the_servers_own_tools_are_kept_whole_with_their_place():
    use = {"type": "server_tool_use", "id": "srv", "name": "web_search", "input": {"q": "x"}}
    result = {"type": "web_search_tool_result", "tool_use_id": "srv", "content": [{"url": "u", "encrypted_content": "E"}]}
    broken = [block(5, type="server_tool_use", id="s2", name="web_search", input={}), delta(5, partial_json='{"q"'), stop(5)]
    searched = [block(1, **{**use, "input": {}}), delta(1, partial_json='{"q":'), delta(1, partial_json='"x"}'), stop(1)]
    chunks = streams.sse(start(), *TEXT, *searched, block(2, **result), stop(2), *CALL, *broken, ended("tool_use"), END)
    for cut in streams.CUTS:
        extras = streams.events_of(lambda: AnthropicDecoder("m"), chunks, cut)[-1].replay
        assert extras == {"wire": "anthropic", "model": "m", "extras": [{"at": 1, "item": use}, {"at": 1, "item": result}]}
