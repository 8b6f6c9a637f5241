"""What servers that speak OpenAI chat completions send, well-formed or not, and what becomes of it."""
# ruff: noqa: E501 - one fault, one line

import json

import model_streams as streams
import pytest

from rxagent.events import model as m
from rxagent.models.openai_chat_stream import ChatDecoder

DONE = "data: [DONE]\n\n"
USAGE = {"prompt_tokens": 20, "completion_tokens": 5, "total_tokens": 25}


def chunk(delta=None, finish=None, **fields):
    return {
        "id": "c1",
        "object": "chat.completion.chunk",
        "model": "test",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
        **fields,
    }


def text(piece, **fields):
    return chunk({"content": piece}, **fields)


def call(index, call_id=None, name=None, args=None, **fields):
    function = {key: value for key, value in (("name", name), ("arguments", args)) if value is not None}
    fragment = {key: value for key, value in (("index", index), ("id", call_id)) if value is not None}
    return {**fragment, "function": function, **fields}


def calls(*fragments, finish=None):
    return chunk({"tool_calls": list(fragments)}, finish)


def end(finish="stop"):
    return chunk({}, finish)


USED = {"id": "c1", "choices": [], "usage": USAGE}
ROME = ("get_weather", {"city": "Rome"})
OSLO = ("get_weather", {"city": "Oslo"})
NAMED = call(0, "call_a", "get_weather", "")
ROME_ARGS = '{"city":"Rome"}'
TOOL = end("tool_calls")

CASES = {
    # text, finish and usage
    "text": ([chunk({"role": "assistant", "content": ""}), text("Hel"), text("lo"), end(), USED, DONE], {"text": "Hello", "stop_reason": "stop", "blocks": ["text"], "usage": {"input": 20, "output": 5, "cache_read": None}}),
    "no usage": ([text("a"), end(), DONE], {"text": "a", "usage": None}),
    "usage null in every chunk": ([text("a", usage=None), end(), DONE], {"text": "a", "usage": None}),
    "usage in every chunk, last wins": ([text("a", usage={"prompt_tokens": 20, "completion_tokens": 1}), text("b", usage={"prompt_tokens": 20, "completion_tokens": 2}), chunk({}, "stop", usage=USAGE), DONE], {"text": "ab", "usage": {"input": 20, "output": 5}}),
    "a later null erases nothing": ([text("a", usage=USAGE), chunk({}, "stop", usage={"prompt_tokens": None, "completion_tokens": None}), DONE], {"usage": {"input": 20, "output": 5}}),
    "usage in the finish chunk": ([text("a"), chunk({}, "stop", usage=USAGE), DONE], {"usage": {"input": 20}}),
    "usage in the choice": ([text("a"), {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop", "usage": USAGE}]}, DONE], {"usage": {"input": 20}}),
    "usage of groq": ([text("a"), chunk({}, "stop", x_groq={"usage": USAGE}), DONE], {"usage": {"input": 20}}),
    "usage in the choice of text": ([text("a"), {"choices": [{"index": 0, "delta": {"content": "b"}, "usage": USAGE}]}, end(), DONE], {"text": "ab", "usage": {"input": 20}}),
    "usage of groq beside text": ([text("a"), text("b", x_groq={"usage": USAGE}), end(), DONE], {"text": "ab", "usage": {"input": 20}}),
    "framed twice, usage after the finish": ([f"data: data: {json.dumps(event)}\n\n" for event in (text("a"), end(), USED)] + ["data: data: [DONE]\n\n"], {"text": "a", "usage": {"input": 20}}),
    "framed again and again": (["data: " + "data:" * 50_000 + json.dumps(text("a")) + "\n\n", end(), DONE], {"text": "a"}),
    "cached and reasoning tokens": ([text("a"), end(), {"choices": [], "usage": {**USAGE, "prompt_tokens_details": {"cached_tokens": 8}, "completion_tokens_details": {"reasoning_tokens": 3}}}, DONE], {"usage": {"input": 20, "cache_read": 8, "output": 5, "reasoning": 3}}),
    "cached tokens of deepseek": ([text("a"), end(), {"choices": [], "usage": {**USAGE, "prompt_cache_hit_tokens": 8, "prompt_cache_miss_tokens": 12}}, DONE], {"usage": {"input": 20, "cache_read": 8}}),
    "reasoning counted beside the output": ([text("a"), end(), {"choices": [], "usage": {"prompt_tokens": 20, "completion_tokens": 5, "total_tokens": 125, "completion_tokens_details": {"reasoning_tokens": 100}}}, DONE], {"usage": {"output": 105, "reasoning": 100}}),
    "cached tokens counted beside the input": ([text("a"), end(), {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 5, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 20}}, DONE], {"usage": {"input": 129, "cache_read": 100, "cache_write": 20}}),
    "one index, told apart by id": ([calls(call(0, "a", "f", "")), calls(call(0, "b", "g", "")), calls(call(0, "a", args='{"n":1}')), calls(call(0, "b", args='{"n":2}')), end("tool_calls"), DONE], {"calls": [("f", {"n": 1}), ("g", {"n": 2})], "ids": ["a", "b"]}),
    "an empty object before the arguments": ([calls(call(0, "a", "f", {})), calls(call(0, args='{"n":1}')), end("tool_calls"), DONE], {"calls": [("f", {"n": 1})]}),
    **{f"cache writes as {field}": ([text("a"), end(), {"choices": [], "usage": {**USAGE, "prompt_tokens_details": {field: 8}}}, DONE], {"usage": {"input": 20, "cache_write": 8}}) for field in ("cache_write_tokens", "cache_creation_input_tokens")},
    "counts as text": ([text("a"), end(), {"choices": [], "usage": {"prompt_tokens": "20", "completion_tokens": "5"}}, DONE], {"usage": {"input": 20, "output": 5}}),
    **{f"reasoning as {field}": ([chunk({field: "h"}), chunk({field: "m"}), text("a"), end(), DONE], {"thinking": "hm", "text": "a"}) for field in ("thinking_content", "reasoning_summary", "thought", "thoughts")},
    "error in words of its own": ([text("a"), {"error_code": 336501, "error_msg": "Rate limit reached"}], {"kind": "rate_limit", "retryable": True}),
    "details null": ([text("a"), end(), {"choices": [], "usage": {**USAGE, "prompt_tokens_details": None, "completion_tokens_details": None}}, DONE], {"usage": {"input": 20, "cache_read": None}}),
    "usage of odd types": ([text("a"), end(), {"choices": [], "usage": {"prompt_tokens": "x", "completion_tokens": -1}}, DONE], {"text": "a", "usage": {"input": None, "output": None}}),
    "usage is no object": ([text("a"), end(), {"choices": [], "usage": 5}, DONE], {"text": "a", "usage": None}),
    "no [DONE]": ([text("a"), end(), USED], {"text": "a", "stop_reason": "stop", "usage": {"input": 20}}),
    "no finish reason but [DONE]": ([text("a"), DONE], {"text": "a", "stop_reason": "stop"}),
    "neither": ([text("a")], {"text": "a", "stop_reason": "error", "kind": "protocol", "retryable": True}),
    "nothing": ([], {"stop_reason": "error", "retryable": True}),
    "only [DONE]": ([DONE], {"stop_reason": "error", "retryable": True}),
    "only a role": ([chunk({"role": "assistant"}), DONE], {"text": "", "stop_reason": "stop"}),
    "an empty answer": ([chunk({"role": "assistant", "content": ""}), end(), DONE], {"text": "", "blocks": [], "stop_reason": "stop"}),
    "finish twice": ([text("a"), end(), end(), DONE], {"text": "a", "stop_reason": "stop"}),
    "finish empty in every chunk": ([text("a", finish=""), text("b", finish=""), end(), DONE], {"text": "ab", "stop_reason": "stop"}),
    "finish with the last piece": ([text("a"), text("b", finish="stop"), DONE], {"text": "ab", "stop_reason": "stop"}),
    "finish in the middle": ([text("a", finish="stop"), text("b"), end("length"), DONE], {"text": "ab", "stop_reason": "length"}),
    "finish stop on every chunk": ([text("a", finish="stop"), text("b", finish="stop"), DONE], {"text": "ab", "stop_reason": "stop"}),
    "length then stop": ([text("a", finish="length"), end("stop"), DONE], {"stop_reason": "length"}),
    "finish in capitals": ([text("a"), end("MAX_TOKENS"), DONE], {"stop_reason": "length"}),
    "content filter": ([text("a"), end("content_filter"), DONE], {"stop_reason": "content_filter"}),
    "content filter with a call": ([calls(call(0, "a", "f", "{}")), end("content_filter"), DONE], {"stop_reason": "content_filter"}),
    "eos": ([text("a"), end("eos"), DONE], {"stop_reason": "stop"}),
    "an unknown finish reason": ([text("a"), end("because"), DONE], {"stop_reason": "stop"}),
    "finish error": ([text("a"), end("error"), DONE], {"text": "a", "stop_reason": "error", "retryable": True}),
    "tool_calls without a call": ([text("a"), TOOL, DONE], {"text": "a", "stop_reason": "stop"}),
    "stop with a call": ([calls(call(0, "a", "get_weather", ROME_ARGS)), end("stop"), DONE], {"calls": [ROME], "stop_reason": "tool_use"}),
    "length with a call": ([calls(call(0, "a", "get_weather", ROME_ARGS)), end("length"), DONE], {"stop_reason": "length"}),
    # choices and deltas of odd shapes
    "choices null": ([text("a"), {"id": "c1", "choices": None}, end(), DONE], {"text": "a", "stop_reason": "stop"}),
    "choices missing": ([text("a"), {"id": "c1"}, end(), DONE], {"text": "a"}),
    "azure's filter results first": ([{"choices": [], "model": "", "prompt_filter_results": [{"prompt_index": 0}]}, text("a"), {"choices": [{"index": 0, "finish_reason": None, "content_filter_results": {}}]}, end(), DONE], {"text": "a", "stop_reason": "stop"}),
    "delta null": ([chunk(None), text("a"), chunk(None, "stop"), DONE], {"text": "a", "stop_reason": "stop"}),
    "a second choice": ([text("a"), {"choices": [{"index": 1, "delta": {"content": "x"}}]}, {"choices": [{"index": 0, "delta": {"content": "b"}}, {"index": 1, "delta": {"content": "y"}}]}, end(), DONE], {"text": "ab"}),
    "no index of the choice": ([{"choices": [{"delta": {"content": "a"}}]}, end(), DONE], {"text": "a"}),
    "content as parts": ([chunk({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}), end(), DONE], {"text": "ab", "blocks": ["text"]}),
    "mistral's thinking": ([chunk({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}]}), text("a"), end(), DONE], {"thinking": "hm", "text": "a", "blocks": ["thinking", "text"]}),
    "a message at the end repeats it": ([text("a"), {"choices": [{"index": 0, "message": {"content": "a"}, "finish_reason": "stop"}]}, DONE], {"text": "a"}),
    "message beside delta": ([{"choices": [{"index": 0, "delta": {"content": "a"}, "message": {"content": "a"}, "finish_reason": None}]}, {"choices": [{"index": 0, "delta": {"content": "b"}, "message": {"content": "ab"}, "finish_reason": "stop"}]}, DONE], {"text": "ab"}),
    "only a message": ([{"choices": [{"index": 0, "message": {"role": "assistant", "content": "all"}, "finish_reason": "stop"}]}, DONE], {"text": "all", "stop_reason": "stop"}),
    "refusal": ([chunk({"refusal": "I can't."}), end(), DONE], {"text": "I can't."}),
    "logprobs and nulls": ([{"choices": [{"index": 0, "delta": {"role": None, "content": "a", "tool_calls": None, "function_call": None, "refusal": None, "audio": None}, "logprobs": None, "finish_reason": None}]}, end(), DONE], {"text": "a", "blocks": ["text"]}),
    "tool_calls empty": ([chunk({"content": "a", "tool_calls": []}), end(), DONE], {"text": "a", "blocks": ["text"], "stop_reason": "stop"}),
    "think tags stay text": ([text("<think>hm</think>a"), end(), DONE], {"text": "<think>hm</think>a", "thinking": ""}),
    "odd types": ([{"choices": [5, None, {"index": 0, "delta": [], "finish_reason": 7}]}, {"choices": {"a": 1}}, text("a"), chunk({"content": 5, "tool_calls": "x", "reasoning": 7}), end(), DONE], {"text": "a", "stop_reason": "stop"}),
    # reasoning
    "reasoning_content": ([chunk({"reasoning_content": "h"}), chunk({"reasoning_content": "m", "content": None}), text("a"), end(), DONE], {"thinking": "hm", "text": "a", "blocks": ["thinking", "text"]}),
    "reasoning": ([chunk({"reasoning": "hm", "content": ""}), text("a"), end(), DONE], {"thinking": "hm", "blocks": ["thinking", "text"]}),
    "the same reasoning in two fields": ([chunk({"reasoning": "hm", "reasoning_content": "hm"}), text("a"), end(), DONE], {"thinking": "hm"}),
    "reasoning with its details": ([chunk({"reasoning": "hm", "reasoning_details": [{"type": "reasoning.text", "text": "hm", "index": 0}]}), text("a"), end(), DONE], {"thinking": "hm", "replay": {"thinking_signatures": [], "reasoning_details": [{"type": "reasoning.text", "text": "hm", "index": 0}]}}),
    "reasoning only in details": ([chunk({"reasoning_details": [{"type": "reasoning.summary", "summary": "hm"}]}), text("a"), end(), DONE], {"thinking": "hm"}),
    "details in pieces with a signature": ([chunk({"reasoning_details": [{"type": "reasoning.text", "text": "h", "index": 0}]}), chunk({"reasoning_details": [{"type": "reasoning.text", "text": "m", "index": 0}]}), chunk({"reasoning_details": [{"type": "reasoning.text", "signature": "sig", "index": 0}]}), text("a"), end(), DONE], {"thinking": "hm", "replay": {"thinking_signatures": [], "reasoning_details": [{"type": "reasoning.text", "text": "hm", "index": 0, "signature": "sig"}]}}),
    "encrypted reasoning": ([chunk({"reasoning_details": [{"type": "reasoning.encrypted", "data": "E"}]}), calls(call(0, "a", "get_weather", ROME_ARGS)), TOOL, DONE], {"thinking": "", "calls": [ROME], "replay": {"thinking_signatures": [], "reasoning_details": [{"type": "reasoning.encrypted", "data": "E"}]}}),
    "reasoning and text by turns": ([chunk({"reasoning": "1"}), text("a"), chunk({"reasoning": "2"}), text("b"), end(), DONE], {"thinking": "12", "text": "ab", "blocks": ["thinking", "text", "thinking", "text"]}),
    # calls: whose a fragment is
    "a call in pieces": ([calls(NAMED), calls(call(0, args='{"city":')), calls(call(0, args='"Rome"}')), TOOL, DONE], {"calls": [ROME], "ids": ["call_a"], "stop_reason": "tool_use", "blocks": ["toolcall"]}),
    "two, interleaved": ([calls(NAMED), calls(call(1, "call_b", "get_weather", "")), calls(call(0, args='{"city":'), call(1, args='{"city":')), calls(call(1, args='"Oslo"}')), calls(call(0, args='"Rome"}')), TOOL, DONE], {"calls": [ROME, OSLO], "ids": ["call_a", "call_b"]}),
    "index as text": ([calls(call("0", "call_a", "get_weather", "")), calls(call("0", args=ROME_ARGS)), TOOL, DONE], {"calls": [ROME]}),
    "indices from 1": ([calls(call(1, "a", "get_weather", ROME_ARGS)), calls(call(2, "b", "get_weather", '{"city":"Oslo"}')), TOOL, DONE], {"calls": [ROME, OSLO]}),
    "all at index 0 with new ids": ([calls(call(0, "a", "get_weather", ROME_ARGS)), calls(call(0, "b", "get_weather", '{"city":"Oslo"}')), TOOL, DONE], {"calls": [ROME, OSLO], "ids": ["a", "b"]}),
    "all at index 0 in pieces": ([calls(call(0, "a", "get_weather", "")), calls(call(0, args=ROME_ARGS)), calls(call(0, "b", "get_weather", "")), calls(call(0, args='{"city":"Oslo"}')), TOOL, DONE], {"calls": [ROME, OSLO], "ids": ["a", "b"]}),
    "all at index 0 without ids": ([calls(call(0, None, "get_weather", ROME_ARGS)), calls(call(0, None, "get_weather", '{"city":"Oslo"}')), TOOL, DONE], {"calls": [ROME, OSLO]}),
    "all at index 0 with one id": ([calls(call(0, "a", "get_weather", ROME_ARGS)), calls(call(0, "a", "get_time", "{}")), TOOL, DONE], {"calls": [ROME, ("get_time", {})]}),
    "two with one id": ([calls(call(0, "a", "get_weather", ROME_ARGS)), calls(call(1, "a", "get_weather", '{"city":"Oslo"}')), TOOL, DONE], {"calls": [ROME, OSLO], "ids": ["a", "a_1"]}),
    "two with one id in pieces": ([calls(call(0, "a", "get_weather", "")), calls(call(1, "a", "get_weather", "")), calls(call(0, "a", "get_weather", ROME_ARGS)), calls(call(1, "a", "get_weather", '{"city":"Oslo"}')), TOOL, DONE], {"calls": [ROME, OSLO]}),
    "an index for each fragment, one id": ([calls(call(0, "a", "get_weather", "")), calls(call(1, "a", None, '{"city":')), calls(call(2, "a", None, '"Rome"}')), TOOL, DONE], {"calls": [ROME]}),
    "the id changes": ([calls(call(0, "a", "get_weather", "")), calls(call(0, "b", None, '{"city":')), calls(call(0, "c", "", '"Rome"}')), TOOL, DONE], {"calls": [ROME], "ids": ["a"]}),
    "the id changes, no index": ([calls(call(None, "a", "get_weather", "")), calls(call(None, "b", None, '{"city":')), calls(call(None, "c", "", '"Rome"}')), TOOL, DONE], {"calls": [ROME], "ids": ["a"]}),
    "no index, ids": ([calls(call(None, "a", "get_weather", "")), calls(call(None, "b", "get_weather", "")), calls(call(None, "a", args=ROME_ARGS)), calls(call(None, "b", args='{"city":"Oslo"}')), TOOL, DONE], {"calls": [ROME, OSLO]}),
    "no index, no ids": ([calls(call(None, None, "get_weather", '{"city":')), calls(call(None, args='"Rome"}')), calls(call(None, None, "get_weather", '{"city":"Oslo"}')), TOOL, DONE], {"calls": [ROME, OSLO]}),
    "id and name in every piece": ([calls(call(0, "a", "get_weather", "")), calls(call(0, "a", "get_weather", '{"city":')), calls(call(0, "a", "get_weather", '"Rome"}')), TOOL, DONE], {"calls": [ROME], "ids": ["a"]}),
    "name in every piece, no ids": ([calls(call(0, None, "get_weather", "")), calls(call(0, None, "get_weather", '{"city":')), calls(call(0, None, "get_weather", '"Rome"}')), TOOL, DONE], {"calls": [ROME]}),
    "name empty later": ([calls(NAMED), calls(call(0, "", "", ROME_ARGS)), TOOL, DONE], {"calls": [ROME], "ids": ["call_a"]}),
    "name after the arguments": ([calls(call(0, "a", None, '{"city":')), calls(call(0, None, "get_weather", '"Rome"}')), TOOL, DONE], {"calls": [ROME], "ids": ["a"]}),
    "name after whole arguments": ([calls(call(0, "a", None, ROME_ARGS)), calls(call(0, None, "get_weather")), TOOL, DONE], {"calls": [ROME], "ids": ["a"]}),
    "name in pieces": ([calls(call(0, "a", "get_", "")), calls(call(0, None, "weather", ROME_ARGS)), TOOL, DONE], {"calls": [ROME]}),
    "id after the name": ([calls(call(0, None, "get_weather", "")), calls(call(0, "late", None, ROME_ARGS)), TOOL, DONE], {"calls": [ROME], "ids": ["late"]}),
    "no ids": ([calls(call(0, None, "get_weather", ROME_ARGS)), calls(call(1, "", "get_weather", '{"city":"Oslo"}')), TOOL, DONE], {"calls": [ROME, OSLO], "ids": ["call_0", "call_1"]}),
    "ids null": ([calls({"index": 0, "id": None, "type": "function", "function": {"name": "get_weather", "arguments": ROME_ARGS}}), TOOL, DONE], {"calls": [ROME], "ids": ["call_0"]}),
    "several in one chunk": ([calls(call(0, "a", "get_weather", ROME_ARGS), call(1, "b", "get_weather", '{"city":"Oslo"}'), finish="tool_calls"), DONE], {"calls": [ROME, OSLO]}),
    "tool_calls as an object": ([chunk({"tool_calls": call(0, "a", "get_weather", ROME_ARGS)}), TOOL, DONE], {"calls": [ROME]}),
    "text, call, text": ([text("a"), calls(call(0, "a", "get_weather", ROME_ARGS)), text("b"), TOOL, DONE], {"text": "ab", "calls": [ROME], "blocks": ["text", "toolcall", "text"], "stop_reason": "tool_use"}),
    "a call without arguments, then text": ([calls(call(0, "a", "now", "")), text("b"), TOOL, DONE], {"calls": [("now", {})], "blocks": ["toolcall", "text"]}),
    "calls without arguments keep their order": ([calls(call(0, "a", "now", "")), calls(call(1, "b", "get_weather", ROME_ARGS)), TOOL, DONE], {"calls": [("now", {}), ROME]}),
    "function_call": ([chunk({"function_call": {"name": "get_weather", "arguments": ""}}), chunk({"function_call": {"arguments": ROME_ARGS}}), end("function_call"), DONE], {"calls": [ROME], "ids": ["call_0"], "stop_reason": "tool_use"}),
    "an empty function_call": ([chunk({"content": "a", "function_call": {"name": "", "arguments": ""}}), end(), DONE], {"text": "a", "calls": [], "stop_reason": "stop"}),
    "an empty call": ([text("a"), calls(call(0, "", "", "")), end(), DONE], {"text": "a", "calls": [], "stop_reason": "stop"}),
    "a call beside text in one delta": ([chunk({"content": "a", "tool_calls": [call(0, "a", "get_weather", ROME_ARGS)]}), TOOL, DONE], {"text": "a", "calls": [ROME], "blocks": ["text", "toolcall"]}),
    # calls: what the arguments are
    "arguments blank": ([calls(call(0, "a", "now", " ")), TOOL, DONE], {"calls": [("now", {})]}),
    "arguments null": ([calls({"index": 0, "id": "a", "function": {"name": "now", "arguments": None}}), TOOL, DONE], {"calls": [("now", {})]}),
    "arguments the text null": ([calls(call(0, "a", "now", "null")), TOOL, DONE], {"calls": [("now", {})]}),
    "arguments an object": ([calls(call(0, "a", "get_weather", {"city": "Rome"})), TOOL, DONE], {"calls": [ROME]}),
    "arguments an empty object": ([calls(call(0, "a", "now", {})), TOOL, DONE], {"calls": [("now", {})]}),
    "arguments encoded twice": ([calls(call(0, "a", "get_weather", json.dumps(ROME_ARGS))), TOOL, DONE], {"calls": [ROME]}),
    "arguments no JSON": ([calls(call(0, "a", "f", "{'city'")), TOOL, DONE], {"calls": [], "stop_reason": "tool_use", "invalid_tool_calls": [{"id": "a", "name": "f", "raw": "{'city'"}]}),
    "arguments cut": ([calls(call(0, "a", "f", '{"city":"Ro')), TOOL, DONE], {"calls": [], "invalid_tool_calls": [{"id": "a", "name": "f", "raw": '{"city":"Ro'}]}),
    "arguments an array": ([calls(call(0, "a", "f", "[1]")), TOOL, DONE], {"calls": [], "invalid_tool_calls": [{"id": "a", "name": "f", "raw": "[1]"}]}),
    "arguments a list value": ([calls(call(0, "a", "f", [1])), TOOL, DONE], {"calls": [], "invalid_tool_calls": [{"id": "a", "name": "f", "raw": "[1]"}]}),
    "a placeholder before the arguments": ([calls(call(0, "a", "get_weather", "{}")), calls(call(0, args='{"city":')), calls(call(0, args='"Rome"}')), TOOL, DONE], {"calls": [ROME]}),
    "a placeholder alone": ([calls(call(0, "a", "now", "{}")), TOOL, DONE], {"calls": [("now", {})]}),
    "arguments grow in each piece": ([calls(call(0, "a", "get_weather", '{"ci')), calls(call(0, args='{"city":"Ro')), calls(call(0, args=ROME_ARGS)), TOOL, DONE], {"calls": [ROME]}),
    "arguments whole after their pieces": ([calls(call(0, "a", "get_weather", '{"city":')), calls(call(0, args='"Rome"}')), calls(call(0, args=ROME_ARGS), finish="tool_calls"), DONE], {"calls": [ROME]}),
    "arguments sent twice": ([calls(call(0, "a", "get_weather", ROME_ARGS)), calls(call(0, args=ROME_ARGS)), TOOL, DONE], {"calls": [ROME]}),
    "two different objects are no arguments": ([calls(call(0, "a", "f", '{"a":1}')), calls(call(0, args='{"b":2}')), TOOL, DONE], {"calls": [], "stop_reason": "tool_use", "invalid_tool_calls": [{"id": "a", "name": "f", "raw": '{"a":1}{"b":2}'}]}),
    "nested objects in pieces": ([calls(call(0, "a", "f", '{"x":')), calls(call(0, args='{"y":')), calls(call(0, args='{"z":1}}}')), TOOL, DONE], {"calls": [("f", {"x": {"y": {"z": 1}}})]}),
    "arguments beside the function": ([calls({"index": 0, "id": "a", "name": "get_weather", "arguments": ROME_ARGS}), TOOL, DONE], {"calls": [ROME]}),
    # errors
    "an error object": ([text("a"), {"error": {"message": "worker died", "type": "server_error"}}], {"text": "a", "stop_reason": "error", "error": "worker died", "kind": "server", "retryable": True}),
    "an error text": ([text("a"), {"error": "overloaded"}, DONE], {"text": "a", "error": "overloaded", "kind": "overloaded"}),
    "an error list": ([text("a"), {"error": [{"message": "boom"}]}], {"error": "boom"}),
    "an error beside choices": ([text("a"), {"error": {"code": 502, "message": "Provider disconnected"}, "choices": [{"index": 0, "delta": {"content": ""}, "finish_reason": "error"}]}], {"text": "a", "error": "Provider disconnected", "retryable": True}),
    "an error in the choice": ([text("a"), {"choices": [{"index": 0, "delta": {}, "finish_reason": "error", "error": {"code": 429, "message": "slow down"}}]}], {"error": "slow down", "kind": "rate_limit"}),
    "error null": ([text("a", error=None), end(), DONE], {"text": "a", "stop_reason": "stop"}),
    "an error of vllm": ([text("a"), {"object": "error", "message": "boom", "type": "BadRequestError", "code": 400}], {"error": "boom", "kind": "invalid_request"}),
    "an error of fastapi": ([{"detail": "Not Found"}], {"error": "Not Found", "stop_reason": "error"}),
    "an error event": ([text("a"), 'event: error\ndata: {"message": "boom", "code": 500}\n\n'], {"text": "a", "error": "boom", "kind": "server"}),
    "an error event in words": ([text("a"), "event: error\ndata: upstream is gone\n\n"], {"text": "a", "error": "upstream is gone"}),
    "an overflow in the stream": ([{"error": {"message": "maximum context length is 4096 tokens", "code": 400}}], {"kind": "context_overflow", "retryable": False}),
    "an error after a call": ([calls(call(0, "a", "f", "{}")), {"error": {"message": "boom"}}], {"stop_reason": "error"}),
    "an error after [DONE] is not read": ([text("a"), end(), DONE, {"error": "late"}], {"text": "a", "stop_reason": "stop"}),
    # framing
    "bom": (["\ufeff", text("a"), end(), DONE], {"text": "a"}),
    "many data lines": (['data: {"choices":[{"index":0,\ndata: "delta":{"content":"a"}}]}\n\n', end(), DONE], {"text": "a"}),
    "pretty JSON": (["".join(f"data: {line}\n" for line in json.dumps(text("a"), indent=1).splitlines()) + "\n", end(), DONE], {"text": "a"}),
    "one newline between events": ([f"data: {json.dumps(text('a'))}\n", f"data: {json.dumps(end())}\n", "data: [DONE]\n"], {"text": "a", "stop_reason": "stop"}),
    "carriage returns": ([f"data: {json.dumps(text('a'))}\r\r", f"data: {json.dumps(end())}\r\r", "data: [DONE]\r\r"], {"text": "a"}),
    "mixed line ends": ([f"data: {json.dumps(text('a'))}\r\n\r\n", f"data: {json.dumps(text('b'))}\n\n", f"data: {json.dumps(end())}\r\r", DONE], {"text": "ab"}),
    "event, id and retry lines": ([f"id: 1\nevent: message\nretry: 100\ndata: {json.dumps(text('a'))}\n\n", end(), DONE], {"text": "a"}),
    "empty data lines": (["data:\n\n", "data: \n\n", text("a"), end(), DONE], {"text": "a"}),
    "pings": (["event: ping\ndata: {}\n\n", "data: ping\n\n", ": keep-alive\n\n", text("a"), end(), DONE], {"text": "a"}),
    "data twice": ([f"data: data: {json.dumps(text('a'))}\n\n", end(), "data: data: [DONE]\n\n"], {"text": "a", "stop_reason": "stop"}),
    "bare JSON lines": ([json.dumps(text("a")) + "\n", json.dumps(end()) + "\n"], {"text": "a", "stop_reason": "stop"}),
    "bare JSON lines after a comment": ([": hi\n\n", json.dumps(text("a")) + "\n\n", json.dumps(end()) + "\n\n"], {"text": "a", "stop_reason": "stop"}),
    "a JSON array": (["[" + json.dumps(text("a")) + ",\n" + json.dumps(end()) + "]"], {"text": "a", "stop_reason": "stop"}),
    "[DONE] in quotes": ([text("a"), end(), 'data: "[DONE]"\n\n'], {"text": "a", "stop_reason": "stop"}),
    "[DONE] with spaces": ([text("a"), end(), "data:  [DONE] \n\n"], {"text": "a"}),
    "[DONE] without a newline": ([text("a"), end(), "data: [DONE]"], {"text": "a"}),
    "an event is no JSON": ([text("a"), 'data: {"choices": [{"ind\n\n', end(), DONE], {"text": "a", "stop_reason": "error", "kind": "protocol", "retryable": True}),
    "a damaged field name": ([text("a"), f"dta: {json.dumps(text('b'))}\n\n", end(), DONE], {"text": "a", "stop_reason": "error", "retryable": True}),
    "the usage is cut": ([text("a"), end(), 'data: {"choices":[],"usage":{"prom'], {"text": "a", "stop_reason": "stop"}),
    "junk after the finish reason": ([text("a"), end(), "data: bye\n\n"], {"text": "a", "stop_reason": "stop"}),
    "an error after the finish reason": ([text("a"), end(), {"error": {"message": "boom"}}], {"text": "a", "stop_reason": "error"}),
    "a space before data": ([f" data: {json.dumps(text('a'))}\n\n", f"DATA: {json.dumps(end())}\n\n", DONE], {"text": "a", "stop_reason": "stop"}),
    "events encoded twice": ([f"data: {json.dumps(json.dumps(text('a')))}\n\n", f"data: {json.dumps(json.dumps(end()))}\n\n", DONE], {"text": "a", "stop_reason": "stop"}),
    "a newline in a text": (['data: {"choices":[{"index":0,"delta":{"content":"a\ndata: b"}}]}\n\n', end(), DONE], {"text": "a\nb"}),
    "nested too deep": ([text("a"), "data: " + "[" * 100_000 + "\n\n", end(), DONE], {"text": "a", "stop_reason": "error"}),
    "arguments nested too deep": ([calls(call(0, "a", "f", '{"a":' * 5000)), TOOL, DONE], {"calls": [], "stop_reason": "tool_use"}),
    "an HTML page": (["<html><head><title>Oops</title></head></html>"], {"stop_reason": "error", "error": "Oops"}),
    "plain words": (["upstream connect error or disconnect"], {"stop_reason": "error", "error": "upstream connect error"}),
    "an emoji cut in two": (['data: {"choices":[{"index":0,"delta":{"content":"a\\ud83d"}}]}\n\n', 'data: {"choices":[{"index":0,"delta":{"content":"\\ude00b"}}]}\n\n', end(), DONE], {"text": "a\U0001f600b"}),
    "half an emoji": (['data: {"choices":[{"index":0,"delta":{"content":"a\\ud83d"}}]}\n\n', end(), DONE], {"stop_reason": "stop"}),
    "the second half alone": (['data: {"choices":[{"index":0,"delta":{"content":"\\ude00b"}}]}\n\n', end(), DONE], {"text": "\ufffdb"}),
    "control characters": (['data: {"choices":[{"index":0,"delta":{"content":"a\tb"}}]}\n\n', end(), DONE], {"text": "a\tb"}),
}  # fmt: skip


@pytest.mark.parametrize("cut", streams.CUTS)
@pytest.mark.parametrize("case", CASES)
def test_stream(case, cut):
    events, expected = CASES[case]
    assert streams.differences(expected, streams.answer(ChatDecoder, streams.sse(*events), cut)) == {}


@pytest.mark.parametrize("cut", streams.CUTS)
@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"id": "c", "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hello", "reasoning_content": "hm"}, "finish_reason": "stop"}], "usage": USAGE}, {"text": "Hello", "thinking": "hm", "stop_reason": "stop", "usage": {"input": 20}}),
        ({"choices": [{"message": {"content": None, "tool_calls": [{"id": "a", "type": "function", "function": {"name": "get_weather", "arguments": ROME_ARGS}}]}, "finish_reason": "tool_calls"}]}, {"calls": [ROME], "stop_reason": "tool_use"}),
        ({"choices": [{"message": {"content": "Hello"}}]}, {"text": "Hello", "stop_reason": "stop"}),
        ({"choices": [{"message": {"content": "Hello"}, "finish_reason": "length"}]}, {"stop_reason": "length"}),
        ({"error": {"message": "bad", "code": "context_length_exceeded"}}, {"kind": "context_overflow"}),
        ({"error": "bad"}, {"stop_reason": "error", "error": "bad"}),
        ({"choices": []}, {"stop_reason": "error", "kind": "protocol"}),
        ({"hello": 1}, {"stop_reason": "error", "kind": "protocol"}),
    ],
)  # fmt: skip
def test_an_answer_in_one_piece(body, expected, cut):
    chunks = [b"\n \n", json.dumps(body, indent=2).encode()]
    assert streams.differences(expected, streams.answer(ChatDecoder, chunks, cut)) == {}


@pytest.mark.parametrize("failure", [None, m.ModelError("transport", "reset", retryable=True)])
def test_a_break_keeps_what_came_and_runs_no_call(failure):
    chunks = streams.sse(text("a"), calls(call(0, "a", "f", "{}")))
    events = streams.events_of(ChatDecoder, chunks, failure=failure)
    assert [e.text for e in events if isinstance(e, m.TextDelta)] == ["a"]
    assert events[-1].retryable
    assert events[-1].kind == ("protocol" if failure is None else "transport")


def test_a_break_after_the_finish_reason_loses_nothing():
    events = streams.events_of(
        ChatDecoder, streams.sse(text("a"), end()), failure=m.ModelError("transport", "reset", retryable=True)
    )
    assert events[-1] == m.ResponseEnd("stop")


def raw(delta):
    return b'data: {"choices":[{"index":0,"delta":' + delta + b"}]}\n\n"


@pytest.mark.parametrize("cut", streams.CUTS)
def test_bytes_that_are_no_utf8_are_replaced_in_text_and_trusted_in_no_call(cut):
    tail = streams.sse(TOOL, DONE)
    said = streams.answer(ChatDecoder, [raw(b'{"content":"a\xffb"}'), raw(b'{"content":"c"}'), *tail], cut)
    assert (said["text"], said["stop_reason"]) == ("a\ufffdbc", "stop")
    call_ = b'{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\\"x\\":\\"\xff\\"}"}}]}'
    broken = streams.answer(ChatDecoder, [raw(call_), *tail], cut)
    assert (broken["stop_reason"], broken["error"]["retryable"]) == ("error", True)


def test_gemini_signatures_of_calls_are_kept():
    extra = {"google": {"thought_signature": "sig"}}
    events = streams.events_of(ChatDecoder, streams.sse(calls(call(0, "a", "f", "{}", extra_content=extra)), TOOL, DONE))
    assert next(e for e in events if isinstance(e, m.ToolCallEnd)).replay == {"wire": "openai-chat", "extra_content": extra}


def test_each_delta_is_passed_on_as_it_comes():
    events = streams.events_of(
        ChatDecoder, streams.sse(calls(NAMED), calls(call(0, args='{"a"')), calls(call(0, args=":1}")), TOOL, DONE)
    )
    assert [e.arguments for e in events if isinstance(e, m.ToolCallDelta)] == ['{"a"', ":1}"]
    assert [type(e) for e in events] == [
        m.ResponseStart,
        m.ToolCallStart,
        m.ToolCallDelta,
        m.ToolCallDelta,
        m.ToolCallEnd,
        m.ResponseEnd,
    ]


def test_the_model_names_itself():
    events = streams.events_of(ChatDecoder, streams.sse(text("a"), end(), DONE))
    assert events[0] == m.ResponseStart("test", "c1")


@pytest.mark.parametrize("cut", streams.CUTS)
def test_a_whole_answer_that_strict_parsers_refuse(cut):
    body = b'{"choices": [{"index": 0, "message": {"role": "assistant", "content": "a\\ud83d\tb"}, "finish_reason": "stop"}]}'
    assert streams.differences({"text": "a\ufffd\tb", "stop_reason": "stop"}, streams.answer(ChatDecoder, [body], cut)) == {}
