"""What Gemini and servers like it send, well-formed or not, and what becomes of it."""
# ruff: noqa: E501 - one fault, one line

import json

import model_streams as streams
import pytest

from rxagent.events.model import ModelError
from rxagent.models.gemini_stream import GeminiDecoder


def chunk(*parts, finish=None, usage=None, **fields):
    candidate = (
        {"index": 0}
        | ({"content": {"role": "model", "parts": [*parts]}} if parts else {})
        | ({"finishReason": finish} if finish else {})
    )
    return (
        {"candidates": [candidate], "modelVersion": "gemini-test", "responseId": "r1"}
        | ({"usageMetadata": usage} if usage else {})
        | fields
    )


def text(words, **fields):
    return {"text": words, **fields}


def thought(words, **fields):
    return {"text": words, "thought": True, **fields}


def call(name="f", args=None, signature=None, **fields):
    return {"functionCall": {"name": name, "args": {"n": 1} if args is None else args, **fields}} | (
        {"thoughtSignature": signature} if signature else {}
    )


STOP = chunk(finish="STOP", usage={"promptTokenCount": 20, "candidatesTokenCount": 5, "totalTokenCount": 25})
F1 = [("f", {"n": 1})]

CASES = {
    "text": ([chunk(text("Hel")), chunk(text("lo"), finish="STOP", usage={"promptTokenCount": 4, "candidatesTokenCount": 2})], {"text": "Hello", "stop_reason": "stop", "blocks": ["text"], "usage": {"input": 4, "output": 2}}),
    "finish apart from the content": ([chunk(call()), STOP], {"calls": F1, "stop_reason": "tool_use", "usage": {"input": 20, "output": 5}}),
    "finish in every chunk": ([chunk(text("a"), finish="STOP"), chunk(text("b"), finish="STOP"), chunk(text("c"), finish="STOP")], {"text": "abc", "stop_reason": "stop"}),
    "content after the finish": ([chunk(text("a"), finish="STOP"), chunk(call())], {"text": "a", "calls": F1, "stop_reason": "tool_use"}),
    "usage after the finish": ([chunk(text("a"), finish="STOP"), {"usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 1}}], {"usage": {"input": 3, "output": 1}}),
    "no finish": ([chunk(text("a"))], {"text": "a", "stop_reason": "error", "retryable": True}),
    "no finish after a call": ([chunk(call())], {"stop_reason": "error", "retryable": True}),
    "nothing at all": ([], {"stop_reason": "error", "retryable": True}),
    "finish unspecified": ([chunk(text("a"), finish="FINISH_REASON_UNSPECIFIED")], {"stop_reason": "error"}),
    "finish unknown": ([chunk(text("a"), finish="BRAND_NEW")], {"stop_reason": "stop", "text": "a"}),
    "thoughts": ([chunk(thought("hm ")), chunk(thought("so")), chunk(text("Yes")), STOP], {"thinking": "hm so", "text": "Yes", "blocks": ["thinking", "text"]}),
    "thought and text in one chunk": ([chunk(thought("hm"), text("Yes")), STOP], {"thinking": "hm", "text": "Yes"}),
    "thought: false": ([chunk(text("Yes", thought=False)), STOP], {"text": "Yes", "thinking": ""}),
    "text, call, text": ([chunk(text("a")), chunk(call()), chunk(text("b")), STOP], {"text": "ab", "blocks": ["text", "toolcall", "text"]}),
    "two calls in one chunk": ([chunk(call(), call("g", {"m": 2})), STOP], {"calls": [("f", {"n": 1}), ("g", {"m": 2})], "ids": ["call_0", "call_1"]}),
    "calls with ids": ([chunk(call(id="a"), call(id="b")), STOP], {"ids": ["a", "b"]}),
    "calls with one id": ([chunk(call(id="a"), call(id="a")), STOP], {"ids": ["a", "a_1"]}),
    "arguments in parts": ([chunk(text("a"), {"functionCall": {"name": "f", "willContinue": True}}), chunk({"functionCall": {"partialArgs": [{"jsonPath": "$.n", "numberValue": 1}]}}), STOP], {"text": "a", "stop_reason": "error", "error": "in parts", "calls": []}),
    "snake case": ([chunk({"function_call": {"name": "f", "args": {"n": 1}}}), STOP], {"calls": F1, "stop_reason": "tool_use"}),
    "call without args": ([chunk({"functionCall": {"name": "now"}}), STOP], {"calls": [("now", {})], "stop_reason": "tool_use"}),
    "args null": ([chunk({"functionCall": {"name": "now", "args": None}}), STOP], {"calls": [("now", {})]}),
    "args as text": ([chunk({"functionCall": {"name": "f", "args": '{"n": 1}'}}), STOP], {"calls": F1}),
    "args as text that is no JSON": ([chunk({"functionCall": {"name": "f", "args": '{"n": '}}), STOP], {"calls": [], "invalid_tool_calls": [{"id": "call_0", "name": "f", "raw": '{"n": '}]}),
    "max tokens": ([chunk(text("a"), finish="MAX_TOKENS")], {"stop_reason": "length", "text": "a"}),
    "max tokens with a call": ([chunk(call(), finish="MAX_TOKENS")], {"stop_reason": "length"}),
    "max tokens, then stop": ([chunk(text("a"), finish="MAX_TOKENS"), STOP], {"stop_reason": "length", "usage": {"input": 20}}),
    "safety, then stop": ([chunk(text("a"), finish="SAFETY"), STOP], {"stop_reason": "content_filter"}),
    "stop, then max tokens": ([chunk(text("a"), finish="STOP"), chunk(finish="MAX_TOKENS")], {"stop_reason": "length"}),
    "malformed call, then stop": ([chunk(text("a"), finish="MALFORMED_FUNCTION_CALL"), STOP], {"stop_reason": "error", "retryable": True}),
    "a second candidate alone": ([chunk(text("a")), {"candidates": [{"index": 1, "content": {"parts": [text("x")]}, "finishReason": "MAX_TOKENS"}]}, chunk(text("b")), STOP], {"text": "ab", "stop_reason": "stop"}),
    "the second candidate first": ([{"candidates": [{"index": 1, "content": {"parts": [text("x")]}}, {"index": 0, "content": {"parts": [text("a")]}, "finishReason": "STOP"}]}], {"text": "a", "stop_reason": "stop"}),
    "a second candidate of the same form": ([{"candidates": [{"index": n, "content": {"parts": [text("a")]}}], "usageMetadata": {"promptTokenCount": 4}} for n in (0, 0, 1, 1, 0)] + [STOP], {"text": "aaa"}),
    "safety": ([chunk(text("a")), chunk(finish="SAFETY")], {"stop_reason": "content_filter", "text": "a"}),
    "safety after a call": ([chunk(call()), chunk(finish="SAFETY")], {"stop_reason": "content_filter"}),
    "recitation": ([chunk(finish="RECITATION")], {"stop_reason": "content_filter"}),
    "prohibited": ([chunk(finish="PROHIBITED_CONTENT")], {"stop_reason": "content_filter"}),
    "malformed call": ([chunk(finish="MALFORMED_FUNCTION_CALL", usage={"promptTokenCount": 9})], {"stop_reason": "error", "retryable": True, "error": "MALFORMED_FUNCTION_CALL"}),
    "malformed call beside a good one": ([chunk(call()), {"candidates": [{"finishReason": "MALFORMED_FUNCTION_CALL", "finishMessage": "Malformed function call: print(x)"}]}], {"stop_reason": "error", "error": "print(x)"}),
    "unexpected tool call": ([chunk(finish="UNEXPECTED_TOOL_CALL")], {"stop_reason": "error", "retryable": True}),
    "other": ([chunk(finish="OTHER")], {"stop_reason": "error", "retryable": True}),
    "prompt blocked": ([{"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, "usageMetadata": {"promptTokenCount": 7}}], {"stop_reason": "content_filter", "text": "", "usage": {"input": 7}}),
    "prompt feedback without a block": ([{"promptFeedback": {"safetyRatings": []}, **chunk(text("a"))}, STOP], {"text": "a", "stop_reason": "stop"}),
    "thoughts counted in": ([chunk(text("a"), finish="STOP", usage={"promptTokenCount": 10, "candidatesTokenCount": 5, "thoughtsTokenCount": 30, "totalTokenCount": 45})], {"usage": {"input": 10, "output": 35, "reasoning": 30}}),
    "thoughts counted twice": ([chunk(text("a"), finish="STOP", usage={"promptTokenCount": 10, "candidatesTokenCount": 35, "thoughtsTokenCount": 30, "totalTokenCount": 45})], {"usage": {"output": 35, "reasoning": 30}}),
    "cached": ([chunk(text("a"), finish="STOP", usage={"promptTokenCount": 100, "cachedContentTokenCount": 80, "candidatesTokenCount": 5})], {"usage": {"input": 100, "cache_read": 80, "cache_write": None}}),
    "tool prompts": ([chunk(text("a"), finish="STOP", usage={"promptTokenCount": 100, "toolUsePromptTokenCount": 7, "candidatesTokenCount": 5})], {"usage": {"input": 107}}),
    "the last usage wins, null erases nothing": ([chunk(text("a"), usage={"promptTokenCount": 10, "candidatesTokenCount": 1}), chunk(text("b"), usage={"promptTokenCount": 10, "candidatesTokenCount": 2}), chunk(finish="STOP", usage={"promptTokenCount": None, "candidatesTokenCount": 3})], {"usage": {"input": 10, "output": 3}}),
    "thoughts without an answer": ([chunk(finish="MAX_TOKENS", usage={"promptTokenCount": 10, "thoughtsTokenCount": 30})], {"usage": {"output": 30, "reasoning": 30}}),
    "no usage": ([chunk(text("a"), finish="STOP")], {"usage": None}),
    "error in the stream": ([chunk(text("a")), {"error": {"code": 503, "message": "The model is overloaded. Please try again later.", "status": "UNAVAILABLE"}}], {"text": "a", "kind": "overloaded", "retryable": True}),
    "quota error in the stream": ([{"error": {"code": 429, "message": "Resource has been exhausted", "status": "RESOURCE_EXHAUSTED", "details": [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "12s"}]}}], {"kind": "rate_limit", "retryable": True}),
    "overflow in the stream": ([{"error": {"code": 400, "message": "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).", "status": "INVALID_ARGUMENT"}}], {"kind": "context_overflow", "retryable": False}),
    "error in a list": ([[{"error": {"code": 500, "message": "Internal error", "status": "INTERNAL"}}]], {"kind": "server", "retryable": True}),
    "wrapped": ([{"response": chunk(text("a"))}, {"response": STOP}], {"text": "a", "stop_reason": "stop", "usage": {"input": 20}}),
    "empty parts": ([chunk(text("")), chunk(thought("")), {"candidates": [{"content": {"role": "model"}}]}, {"candidates": []}, {"candidates": [{"content": {"parts": None}}]}, STOP], {"blocks": [], "text": "", "stop_reason": "stop"}),
    "parts the client does not know": ([chunk({"executableCode": {"code": "1"}}), chunk({"inlineData": {"mimeType": "image/png", "data": "AA"}}), chunk(text("a")), STOP], {"text": "a", "stop_reason": "stop"}),
    "a second candidate": ([{"candidates": [{"content": {"parts": [text("a")]}, "finishReason": "STOP"}, {"index": 1, "content": {"parts": [text("b")]}}]}], {"text": "a"}),
    "[DONE]": ([chunk(text("a")), STOP, "data: [DONE]\n\n"], {"text": "a", "stop_reason": "stop"}),
    "[DONE] without a finish": ([chunk(text("a")), "data: [DONE]\n\n"], {"text": "a", "stop_reason": "error", "retryable": True}),
    "odd types everywhere": ([{"candidates": 3}, {"candidates": [4]}, {"candidates": [{"content": 5, "finishReason": 6}]}, {"candidates": [{"content": {"parts": [7, {"text": 8}, {"functionCall": 9}, {"thoughtSignature": 1}]}}]}, {"usageMetadata": 1, "promptFeedback": 2}, STOP], {"text": "", "calls": [], "stop_reason": "stop"}),
}  # fmt: skip


@pytest.mark.parametrize("cut", streams.CUTS)
@pytest.mark.parametrize("case", CASES)
def test_stream(case, cut):
    events, expected = CASES[case]
    assert streams.differences(expected, streams.answer(GeminiDecoder, streams.sse(*events), cut)) == {}


@pytest.mark.parametrize("cut", streams.CUTS)
def test_a_json_array_in_place_of_an_event_stream(cut):
    body = json.dumps([chunk(thought("hm")), chunk(text("a")), chunk(call()), STOP], indent=1).encode()
    expected = {"thinking": "hm", "text": "a", "calls": F1, "stop_reason": "tool_use", "usage": {"output": 5}}
    assert streams.differences(expected, streams.answer(GeminiDecoder, [body], cut)) == {}


ARRAY = json.dumps([chunk(text("a")), chunk(text("b")), STOP], indent=1).encode()


def test_an_array_that_is_cut_gives_what_is_whole_of_it_and_an_error():
    ends = [at + 3 for at in range(len(ARRAY)) if ARRAY[at : at + 3] == b"\n }"]
    for cut in range(1, len(ARRAY)):
        answer = streams.answer(GeminiDecoder, [ARRAY[:cut]])
        assert answer["text"] == "ab"[: sum(end <= cut for end in ends)]
        assert (answer["stop_reason"], answer["error"]["retryable"]) == ("error", True)


@pytest.mark.parametrize("cut", streams.CUTS)
def test_a_character_cut_in_half_between_values_of_an_array(cut):
    body = json.dumps([chunk(text("a\ud83d")), chunk(text("\ude00 b"), finish="STOP")]).encode()
    assert streams.differences({"text": "a😀 b", "stop_reason": "stop"}, streams.answer(GeminiDecoder, [body], cut)) == {}


@pytest.mark.parametrize("cut", streams.CUTS)
def test_an_answer_in_one_piece(cut):
    body = json.dumps(chunk(text("a"), call(), finish="STOP", usage={"promptTokenCount": 1, "candidatesTokenCount": 2})).encode()
    assert (
        streams.differences({"text": "a", "calls": F1, "stop_reason": "tool_use"}, streams.answer(GeminiDecoder, [body], cut))
        == {}
    )


def test_a_connection_that_breaks_is_no_end_even_after_a_finish_reason():
    broken = ModelError("transport", "reset", retryable=True)
    assert streams.events_of(GeminiDecoder, streams.sse(chunk(call(), finish="STOP")), failure=broken)[-1] == broken


OWN = {"wire": "gemini", "model": "gemini-x"}


def replays(*events):
    found = streams.events_of(lambda: GeminiDecoder("gemini-x"), streams.sse(*events))
    return [(e.type, e.replay) for e in found if getattr(e, "replay", None)]


def test_the_signature_of_a_call_is_kept_with_the_call():
    assert replays(chunk(call(signature="c2ln", id="a"), call("g")), STOP) == [
        ("tool_call_end", {**OWN, "id": "a", "thoughtSignature": "c2ln"}),
        ("tool_call_end", OWN),
    ]


def test_the_signature_of_text_is_kept_with_the_text():
    assert replays(chunk(text("a")), chunk(text("b", thoughtSignature="S")), STOP) == [
        ("text_end", {**OWN, "thoughtSignature": "S"})
    ]


def test_a_signature_on_an_empty_last_part_belongs_to_the_text_before_it():
    assert replays(chunk(text("a")), chunk(text("", thoughtSignature="S"), finish="STOP")) == [
        ("text_end", {**OWN, "thoughtSignature": "S"})
    ]


def test_a_signature_with_nothing_to_belong_to_is_kept_with_the_message():
    assert replays(chunk(call()), chunk(text("", thoughtSignature="S"), finish="STOP"))[-1] == (
        "response_end",
        {**OWN, "thoughtSignature": "S"},
    )


def test_parts_with_signatures_of_their_own_stay_apart():
    found = replays(chunk(text("a", thoughtSignature="S1")), chunk(text("b", thoughtSignature="S2")), STOP)
    assert [replay["thoughtSignature"] for _, replay in found] == ["S1", "S2"]
