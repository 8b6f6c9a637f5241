"""What servers that speak OpenAI Responses send, well-formed or not, and what becomes of it."""
# ruff: noqa: E501 - one fault, one line

import model_streams as streams
import pytest

from rxagent.models.openai_responses_stream import ResponsesDecoder

USAGE = {
    "input_tokens": 20,
    "input_tokens_details": {"cached_tokens": 8, "cache_write_tokens": 2},
    "output_tokens": 5,
    "output_tokens_details": {"reasoning_tokens": 3},
    "total_tokens": 25,
}


def response(status="completed", output=(), **fields):
    return {
        "id": "resp_1",
        "object": "response",
        "status": status,
        "model": "gpt-test",
        "output": [*output],
        "error": None,
        "incomplete_details": None,
        "usage": USAGE,
        **fields,
    }


def completed(*output, **fields):
    return {"type": "response.completed", "response": response(output=output, **fields)}


def added(index, **item):
    return {"type": "response.output_item.added", "output_index": index, "item": item}


def done(index, **item):
    return {"type": "response.output_item.done", "output_index": index, "item": item}


def text(piece, index=0, item="msg_1", part=0):
    return {"type": "response.output_text.delta", "item_id": item, "output_index": index, "content_index": part, "delta": piece}


def summary(piece, index=0, item="rs_1", part=0):
    return {
        "type": "response.reasoning_summary_text.delta",
        "item_id": item,
        "output_index": index,
        "summary_index": part,
        "delta": piece,
    }


def args(piece, index=0, item="fc_1"):
    return {"type": "response.function_call_arguments.delta", "item_id": item, "output_index": index, "delta": piece}


def args_done(whole, index=0, item="fc_1"):
    return {"type": "response.function_call_arguments.done", "item_id": item, "output_index": index, "arguments": whole}


def message(words="Hello", item="msg_1"):
    return {
        "type": "message",
        "id": item,
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": words, "annotations": []}],
    }


def call(arguments='{"n":1}', item="fc_1", call_id="call_1", name="f"):
    return {"type": "function_call", "id": item, "call_id": call_id, "name": name, "arguments": arguments, "status": "completed"}


def reasoning(*texts, item="rs_1", **fields):
    return {"type": "reasoning", "id": item, "summary": [{"type": "summary_text", "text": t} for t in texts], **fields}


CREATED = {"type": "response.created", "response": response("in_progress", usage=None)}
TEXT = (
    CREATED,
    added(0, **message("")),
    text("Hel"),
    text("lo"),
    {"type": "response.output_text.done", "item_id": "msg_1", "output_index": 0, "content_index": 0, "text": "Hello"},
    done(0, **message()),
)
CALL = (added(1, **call("")), args('{"n"', 1), args(":1}", 1), args_done('{"n":1}', 1), done(1, **call()))
F1 = [("f", {"n": 1})]

CASES = {
    "two calls, told apart by an index that is text": ([*[added(f"{n}", type="function_call", call_id=name, name="f", arguments="") for n, name in enumerate("ab")], *[{"type": "response.function_call_arguments.delta", "output_index": f"{n}", "delta": piece} for n, piece in ((1, '{"n":'), (0, '{"n":'), (1, "2}"), (0, "1}"))], completed()], {"calls": [("f", {"n": 1}), ("f", {"n": 2})], "ids": ["a", "b"]}),
    "text": ([*TEXT, completed(message())], {"text": "Hello", "stop_reason": "stop", "blocks": ["text"], "usage": {"input": 20, "cache_read": 8, "cache_write": 2, "output": 5, "reasoning": 3}}),
    "text and call": ([*TEXT, *CALL, completed(message(), call())], {"text": "Hello", "calls": F1, "ids": ["call_1"], "stop_reason": "tool_use", "blocks": ["text", "toolcall"]}),
    "reasoning and call": ([added(0, **reasoning()), summary("Let me"), summary(" think."), summary("Now.", part=1), done(0, **reasoning("Let me think.", "Now.")), *CALL, completed(reasoning("Let me think.", "Now."), call())], {"thinking": "Let me think.\n\nNow.", "calls": F1, "blocks": ["thinking", "toolcall"]}),
    "deltas without items": ([text("a"), text("b"), completed(message("ab"))], {"text": "ab", "blocks": ["text"], "stop_reason": "stop"}),
    "deltas without item names": ([{"type": "response.output_text.delta", "delta": "a"}, {"type": "response.output_text.delta", "delta": "b"}, completed()], {"text": "ab", "blocks": ["text"]}),
    "text only in output_text.done": ([{"type": "response.output_text.done", "item_id": "m", "output_index": 0, "content_index": 0, "text": "all"}, completed(message("all", "m"))], {"text": "all", "blocks": ["text"]}),
    "text only in content_part.done": ([added(0, **message("")), {"type": "response.content_part.done", "item_id": "msg_1", "output_index": 0, "content_index": 0, "part": {"type": "output_text", "text": "all"}}, completed(message("all"))], {"text": "all"}),
    "text only in output_item.done": ([done(0, **message("all")), completed(message("all"))], {"text": "all", "blocks": ["text"]}),
    "all only in response.completed": ([CREATED, completed(reasoning("hm"), message(), call())], {"thinking": "hm", "text": "Hello", "calls": F1, "stop_reason": "tool_use", "blocks": ["thinking", "text", "toolcall"]}),
    "arguments only in done": ([added(0, **call("")), args_done('{"n":1}'), done(0, **call()), completed(call())], {"calls": F1}),
    "arguments only in output_item.done": ([added(0, **call("")), done(0, **call()), completed(call())], {"calls": F1}),
    "arguments only in response.completed": ([added(0, **call("")), completed(call())], {"calls": F1}),
    "a call only in response.completed": ([*TEXT, completed(message(), call())], {"calls": F1, "text": "Hello", "stop_reason": "tool_use"}),
    "a call only in output_item.done": ([*TEXT, done(1, **call()), completed()], {"calls": F1, "ids": ["call_1"]}),
    "no output_item.done": ([*TEXT[:-1], *CALL[:-1], completed()], {"calls": F1, "text": "Hello", "stop_reason": "tool_use"}),
    "no done at all": ([added(0, **call("")), args('{"n":1}'), completed()], {"calls": F1}),
    "arguments.done empty after deltas": ([added(0, **call("")), args('{"n":1}'), args_done(""), completed()], {"calls": F1}),
    "arguments as an object": ([added(0, **call("")), args_done({"n": 1}), done(0, **call({"n": 1})), completed()], {"calls": F1}),
    "arguments null": ([added(0, **call(None)), args_done(None), done(0, **call(None)), completed()], {"calls": [("f", {})], "stop_reason": "tool_use"}),
    "arguments doubly encoded": ([done(0, **call('"{\\"n\\":1}"')), completed()], {"calls": F1}),
    "arguments that are no JSON": ([done(0, **call('{"n":')), completed()], {"calls": [], "stop_reason": "tool_use", "invalid_tool_calls": [{"id": "call_1", "name": "f", "raw": '{"n":'}]}),
    "arguments already in added": ([added(0, **call('{"n":1}')), completed()], {"calls": F1}),
    "deltas and the done repeat": ([*CALL, done(1, **call()), completed(call())], {"calls": F1}),
    "item ids differ in every event": ([added(0, **message("", "a")), text("x", item="b"), text("y", item="c"), done(0, **message("xy", "d")), added(1, **call("", "e")), args('{"n":1}', 1, "f"), args_done('{"n":1}', 1, "g"), done(1, **call(item="h")), completed(message("xy", "i"), call(item="j"))], {"text": "xy", "calls": F1, "blocks": ["text", "toolcall"]}),
    "every index is 0": ([added(0, **call("", "a", "c1")), args('{"n":1}', 0, "a"), done(0, **call(item="a", call_id="c1")), added(0, **call("", "b", "c2", "g")), args('{"n":2}', 0, "b"), done(0, **call('{"n":2}', "b", "c2", "g")), completed()], {"calls": [("f", {"n": 1}), ("g", {"n": 2})], "ids": ["c1", "c2"]}),
    "every index is 0, done only": ([done(0, **call(item="a", call_id="c1")), done(0, **call('{"n":2}', "b", "c2", "g")), completed()], {"calls": [("f", {"n": 1}), ("g", {"n": 2})]}),
    "two calls interleaved": ([added(0, **call("", "a", "c1")), added(1, **call("", "b", "c2", "g")), args('{"n"', 0, "a"), args('{"m"', 1, "b"), args(":1}", 0, "a"), args(":2}", 1, "b"), done(1, **call('{"m":2}', "b", "c2", "g")), done(0, **call(item="a", call_id="c1")), completed()], {"calls": [("f", {"n": 1}), ("g", {"m": 2})]}),
    "no output_index": ([{"type": "response.output_item.added", "item": call("")}, {"type": "response.function_call_arguments.delta", "item_id": "fc_1", "delta": '{"n":1}'}, {"type": "response.output_item.done", "item": call()}, completed()], {"calls": F1}),
    "no call_id": ([done(0, **call(call_id=None)), completed()], {"ids": ["fc_1"], "calls": F1}),
    "no id of any kind": ([done(0, **call(call_id=None, item=None)), completed()], {"calls": F1, "ids": ["call_0"]}),
    "the name comes with the done": ([added(0, **call("", name="")), args('{"n":1}'), done(0, **call("")), completed()], {"calls": F1, "stop_reason": "tool_use"}),
    "the name never comes": ([added(0, **call("", name="")), args('{"n":1}'), completed()], {"stop_reason": "error", "retryable": True, "error": "no name"}),
    "arguments of no item": ([args('{"n":1}'), completed()], {"stop_reason": "error", "retryable": True}),
    "arguments before their item": ([args('{"n":1}'), done(0, **call()), completed()], {"calls": F1, "stop_reason": "tool_use"}),
    "items the client does not know": ([added(0, type="web_search_call", id="ws_1", status="in_progress"), {"type": "response.web_search_call.searching", "item_id": "ws_1", "output_index": 0}, done(0, type="web_search_call", id="ws_1", status="completed"), added(1, **message("")), text("x", 1), completed(message("x"))], {"text": "x", "calls": [], "stop_reason": "stop"}),
    "null item": ([{"type": "response.output_item.added", "output_index": 0, "item": None}, added(1, **message("")), text("x", 1), completed()], {"text": "x"}),
    "several content parts": ([added(0, **message("")), text("a"), text("b", part=1), completed()], {"text": "ab", "blocks": ["text"]}),
    "two messages": ([added(0, **message("")), text("a"), done(0, **message("a")), added(1, **message("", "msg_2")), text("b", 1, "msg_2"), done(1, **message("b", "msg_2")), completed()], {"text": "ab", "blocks": ["text", "text"]}),
    "empty deltas open nothing": ([text(""), summary(""), completed(message("", "m"))], {"blocks": [], "stop_reason": "stop", "text": ""}),
    "raw reasoning": ([{"type": "response.reasoning_text.delta", "item_id": "rs", "output_index": 0, "content_index": 0, "delta": "hm"}, {"type": "response.reasoning_text.done", "item_id": "rs", "output_index": 0, "content_index": 0, "text": "hm"}, done(0, type="reasoning", id="rs", summary=[], content=[{"type": "reasoning_text", "text": "hm"}]), completed()], {"thinking": "hm"}),
    "raw reasoning and its summary": ([{"type": "response.reasoning_text.delta", "item_id": "rs", "output_index": 0, "content_index": 0, "delta": "hm"}, summary("hm", item="rs"), done(0, **reasoning("hm", item="rs")), completed()], {"thinking": "hm", "blocks": ["thinking"]}),
    "reasoning ids differ in every event": ([summary("a", item="r1"), summary("b", item="r2"), completed()], {"thinking": "ab", "blocks": ["thinking"]}),
    "reasoning only in output_item.done": ([done(0, **reasoning("one", "two")), completed()], {"thinking": "one\n\ntwo"}),
    "refusal": ([added(0, **message("")), {"type": "response.refusal.delta", "item_id": "msg_1", "output_index": 0, "content_index": 0, "delta": "I can't."}, {"type": "response.refusal.done", "item_id": "msg_1", "output_index": 0, "content_index": 0, "refusal": "I can't."}, done(0, type="message", id="msg_1", content=[{"type": "refusal", "refusal": "I can't."}]), completed()], {"text": "I can't.", "stop_reason": "stop"}),
    "refusal in the item alone": ([done(0, type="message", id="m", content=[{"type": "refusal", "refusal": "No."}]), completed()], {"text": "No."}),
    "incomplete": ([*TEXT, {"type": "response.incomplete", "response": response("incomplete", incomplete_details={"reason": "max_output_tokens"})}], {"stop_reason": "length", "text": "Hello", "usage": {"output": 5}}),
    "incomplete in a call": ([added(0, **call("")), args('{"n":'), {"type": "response.incomplete", "response": response("incomplete", [call('{"n":')], incomplete_details={"reason": "max_output_tokens"})}], {"stop_reason": "length"}),
    "filtered": ([*TEXT, *CALL, {"type": "response.incomplete", "response": response("incomplete", incomplete_details={"reason": "content_filter"})}], {"stop_reason": "content_filter"}),
    "completed, but its status says incomplete": ([*TEXT, {"type": "response.completed", "response": response("incomplete", incomplete_details={"reason": "max_output_tokens"})}], {"stop_reason": "length"}),
    "failed": ([*TEXT, {"type": "response.failed", "response": response("failed", error={"code": "server_error", "message": "The model crashed"})}], {"stop_reason": "error", "error": "The model crashed", "kind": "server", "retryable": True, "text": "Hello"}),
    "failed for its rate": ([{"type": "response.failed", "response": response("failed", error={"code": "rate_limit_exceeded", "message": "Please try again in 2s"})}], {"kind": "rate_limit", "retryable": True}),
    "failed for its length": ([{"type": "response.failed", "response": response("failed", error={"code": "context_length_exceeded", "message": "Your input exceeds the context window"})}], {"kind": "context_overflow", "retryable": False}),
    "failed without a reason": ([{"type": "response.failed", "response": response("failed")}], {"stop_reason": "error", "error": "does not say why"}),
    "cancelled": ([*TEXT, {"type": "response.cancelled", "response": response("cancelled")}], {"stop_reason": "error", "retryable": True}),
    "response.done": ([*TEXT, {"type": "response.done", "response": response()}], {"stop_reason": "stop", "text": "Hello"}),
    "error event, flat": ([*TEXT[:3], {"type": "error", "code": "server_error", "message": "Oh no", "param": None, "sequence_number": 3}], {"stop_reason": "error", "error": "Oh no", "text": "Hel"}),
    "error event, nested": ([{"type": "error", "error": {"type": "invalid_request_error", "code": "context_length_exceeded", "message": "too long"}}], {"kind": "context_overflow"}),
    "error object alone": ([*TEXT[:3], {"error": {"message": "upstream", "code": 502}}], {"stop_reason": "error", "error": "upstream", "retryable": True}),
    "quota": ([{"type": "error", "error": {"type": "insufficient_quota", "code": "insufficient_quota", "message": "You exceeded your current quota"}}], {"kind": "rate_limit", "retryable": False}),
    "no terminal event": ([*TEXT, *CALL], {"stop_reason": "error", "retryable": True, "text": "Hello"}),
    "only [DONE]": ([*TEXT, *CALL, "data: [DONE]\n\n"], {"stop_reason": "error", "retryable": True}),
    "[DONE] after the end": ([*TEXT, completed(), "data: [DONE]\n\n"], {"stop_reason": "stop"}),
    "nothing after the end counts": ([*TEXT, completed(), text("more")], {"text": "Hello"}),
    "no usage": ([*TEXT, completed(usage=None)], {"usage": None}),
    "items named by call ids": ([CREATED, *[{"type": "response.output_item.added", "item": {"type": "function_call", "id": f"fc_{n}", "call_id": f"c_{n}", "name": "f", "arguments": ""}} for n in "12"], *[{"type": "response.function_call_arguments.delta", "item_id": f"c_{n}", "delta": f'{{"n":{n}}}'} for n in "12"], completed()], {"calls": [("f", {"n": 1}), ("f", {"n": 2})]}),
    "usage in the words of chat": ([*TEXT, completed(usage={"prompt_tokens": 1, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 1}})], {"usage": {"input": 1, "output": 2, "cache_read": 1}}),
    "usage without details": ([*TEXT, completed(usage={"input_tokens": 1, "output_tokens": 2})], {"usage": {"input": 1, "output": 2, "cache_read": None, "reasoning": None}}),
    "a whole response as one event": ([response(output=[message(), call()])], {"text": "Hello", "calls": F1}),
    "terminal without a response": ([*TEXT, {"type": "response.completed"}], {"text": "Hello", "stop_reason": "stop"}),
    "fewer items at the end than streamed": ([*TEXT, *CALL, completed(call(item="other"))], {"text": "Hello", "calls": F1}),
    "another message id at the end": ([*TEXT, completed(message(item="msg_other"))], {"text": "Hello", "blocks": ["text"]}),
    "half characters": (['data: {"type":"response.output_text.delta","item_id":"m","output_index":0,"content_index":0,"delta":"\\ud83d"}\n\n', 'data: {"type":"response.output_text.delta","item_id":"m","output_index":0,"content_index":0,"delta":"\\ude00"}\n\n', completed()], {"text": "😀"}),
    "odd types everywhere": ([{"type": "response.created", "response": 3}, {"type": "response.output_item.added", "item": []}, {"type": "response.output_text.delta", "delta": {"text": "x"}, "item_id": {}, "output_index": []}, {"type": "response.output_text.delta", "delta": 5}, {"type": "response.output_text.done", "text": {}}, {"type": [1]}, {"type": {"a": 1}}, completed(3, None, "x")], {"text": "x", "stop_reason": "stop"}),
}  # fmt: skip


@pytest.mark.parametrize("cut", streams.CUTS)
@pytest.mark.parametrize("case", CASES)
def test_stream(case, cut):
    events, expected = CASES[case]
    assert streams.differences(expected, streams.answer(ResponsesDecoder, streams.sse(*events), cut)) == {}


def parts_of(*events):
    found = streams.events_of(lambda: ResponsesDecoder("gpt-x"), streams.sse(*events))
    return [(e.type, e.replay) for e in found if getattr(e, "replay", None)]


OWN = {"wire": "openai-responses", "model": "gpt-x"}


def test_encrypted_reasoning_is_kept_from_the_done_item_not_from_the_added_one():
    whole = reasoning("hm", encrypted_content="FULL", status="completed")
    kept = {key: value for key, value in whole.items() if key != "status"}
    assert parts_of(added(0, **reasoning(encrypted_content="PART")), summary("hm"), done(0, **whole), completed()) == [
        ("thinking_end", {**OWN, "item": kept})
    ]


def test_encrypted_reasoning_without_a_summary_is_kept():
    assert parts_of(done(0, **reasoning(encrypted_content="E")), completed())[0][1]["item"]["encrypted_content"] == "E"


def test_encrypted_reasoning_that_only_the_end_tells_is_kept():
    assert (
        parts_of(added(0, **reasoning()), summary("hm"), completed(reasoning("hm", encrypted_content="E")))[0][1]["item"][
            "encrypted_content"
        ]
        == "E"
    )


def test_reasoning_that_can_not_be_sent_back_has_no_replay():
    assert parts_of(done(0, **reasoning("hm")), completed()) == []


def test_ids_and_phase_are_kept():
    found = parts_of(done(0, **message(), phase="commentary"), done(1, **call()), completed())
    assert found == [("text_end", {**OWN, "id": "msg_1", "phase": "commentary"}), ("tool_call_end", {**OWN, "id": "fc_1"})]


def test_items_of_the_servers_own_tools_are_kept_with_their_place():
    search = {"type": "web_search_call", "id": "ws_1", "status": "completed"}
    found = parts_of(done(0, **reasoning("hm", encrypted_content="E")), done(1, **search), done(2, **message()), completed())
    assert found[-1] == ("response_end", {**OWN, "extras": [{"at": 1, "item": search}]})


@pytest.mark.parametrize("cut", streams.CUTS)
def test_an_answer_in_one_piece(cut):
    body = b" " + streams.sse(response(output=[reasoning("hm"), message(), call()]))[0].removeprefix(b"data: ").strip()
    expected = {"thinking": "hm", "text": "Hello", "calls": F1, "stop_reason": "tool_use", "usage": {"input": 20}}
    assert streams.differences(expected, streams.answer(ResponsesDecoder, [body], cut)) == {}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (
            b'{"error":{"message":"bad key","type":"invalid_request_error","code":"invalid_api_key"}}',
            {"stop_reason": "error", "error": "bad key"},
        ),
        (
            b'{"id":"r","object":"response","status":"failed","output":[],"error":{"code":"server_error","message":"boom"}}',
            {"error": "boom", "retryable": True},
        ),
        (b'{"hello": 1}', {"kind": "protocol"}),
    ],
)
def test_other_bodies(body, expected):
    assert streams.differences(expected, streams.answer(ResponsesDecoder, [body])) == {}
