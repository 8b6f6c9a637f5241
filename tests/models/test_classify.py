"""What a failure is called, in the wordings of real servers."""
# ruff: noqa: E501 - one wording, one line

import email.utils
import time

import pytest

from rxagent.models.classify import error_of, error_of_bytes

OVERFLOWS = [
    "This model's maximum context length is 4097 tokens. However, your messages resulted in 5000 tokens. Please reduce the length.",
    "Your input exceeds the context window of this model. Please adjust your input and try again.",
    "prompt is too long: 213462 tokens > 200000 maximum",
    "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease input length or `max_tokens`",
    "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
    "Unable to submit request because the input token count is 40000 but model only supports up to 32768.",
    "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
    "Please reduce the length of the messages or completion. Current length is 10000 while limit is 8192",
    "the request exceeds the available context size. try increasing the context size or enable context shift",
    "The number of tokens to keep from the initial prompt is greater than the context length",
    "Input is too long for requested model.",
    "too many total text bytes: 9437184 > 9000000",
    "The input is longer than the maximum allowed length",
    "Requested token count exceeds the model's maximum context length of 8192 tokens.",
    "The input (9000 tokens) is longer than the model's context length (8192 tokens).",
    "The decoder prompt (length 9000) is longer than the maximum model length of 8192.",
    "Input validation error: `inputs` must have less than 1024 tokens. Given: 5000",
    "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4097. Given: 5000",
    "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
    "Invalid request: Your request exceeded model token limit: 8192",
    "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 30720]",
    "prompt too long; exceeded max context length by 12 tokens",
    "too many tokens: total number of tokens in the prompt cannot exceed 4081",
    "The prompt is too long: 10000, model maximum context length: 8191",
    "litellm.ContextWindowExceededError: the prompt is bigger",
    "context window exceeds limit",
    "prompt token count of 150000 exceeds the limit of 128000",
    "Prompt 超长",
    "输入内容过长",
    "The total number of tokens in your prompt exceeds the limit",
    "Total tokens of image and text exceed max message tokens.",
    "Input tokens exceed the configured limit of 272000 tokens.",
    "You passed 40001 input tokens and requested 0 output tokens. However, the model's context length is only 40000 tokens",
    "number of input tokens (5000) has exceeded max_prompt_tokens (4096) limit",
    "Unable to fit the prompt in context window",
    "The text is too long: exceeds maximum token limit",
    "exceeds maximum number of tokens",
    "Token count exceeds model limit",
    "Invalid 'messages[1].content': string too long. Expected a string with maximum length 10485760, but got one with length 20000000.",
    "Your request contains 5000 tokens which exceeds the model's limit of 4096 tokens",
    "model_max_prompt_tokens_exceeded",
    "The length of input exceeds the model's limit",
]


@pytest.mark.parametrize("words", OVERFLOWS)
@pytest.mark.parametrize("status", [400, None])
def test_every_wording_of_an_overflow_is_one(words, status):
    error = error_of({"error": {"message": words, "type": "invalid_request_error"}}, status)
    assert (error.kind, error.retryable) == ("context_overflow", False)
    assert words in error.message


@pytest.mark.parametrize(
    "words",
    [
        "max_tokens: 100000 > 8192, which is the maximum allowed number of output tokens",
        "Invalid value for 'temperature': must be between 0 and 2",
        "Unknown parameter: 'context'.",
        "Invalid schema for function 'f': exceeds the limit of 100 properties",
        "Invalid 'messages[1].tool_calls[0].id': string too long. Expected a string with maximum length 40, but got one with length 50. string_above_max_length",
        "messages: text content blocks must be non-empty",
        "The model `gpt-9` does not exist or you do not have access to it.",
    ],
)
def test_other_bad_requests_are_no_overflow(words):
    error = error_of({"error": {"message": words, "type": "invalid_request_error"}}, 400)
    assert error.kind in ("invalid_request", "auth")
    assert not error.retryable


@pytest.mark.parametrize(
    ("status", "body", "kind", "retryable"),
    [
        (
            429,
            {"error": {"message": "Rate limit reached for gpt-4o on tokens per min (TPM): Limit 30000, Used 29000"}},
            "rate_limit",
            True,
        ),
        (
            429,
            {"error": {"message": "Request too large for gpt-4o on tokens per min (TPM)", "code": "rate_limit_exceeded"}},
            "rate_limit",
            True,
        ),
        (429, {"message": "Too many tokens, please wait before trying again."}, "rate_limit", True),
        (429, {"error": {"message": "You exceeded your current quota", "code": "insufficient_quota"}}, "rate_limit", False),
        (400, {"error": {"message": "Your credit balance is too low to access the Anthropic API."}}, "rate_limit", False),
        (402, {"error": {"message": "Insufficient Balance"}}, "rate_limit", False),
        (403, {"error": "You have run out of credits"}, "rate_limit", False),
        (401, {"error": {"message": "Incorrect API key provided"}}, "auth", False),
        (403, {"error": {"message": "Country not supported"}}, "auth", False),
        (
            400,
            {"error": {"code": 400, "message": "API key not valid. Please pass a valid API key.", "status": "INVALID_ARGUMENT"}},
            "auth",
            False,
        ),
        (404, {"error": {"message": "model not found"}}, "invalid_request", False),
        (404, "404 page not found", "invalid_request", False),
        (408, "", "timeout", True),
        (409, {"error": "conflict"}, "server", True),
        (413, "", "context_overflow", False),
        (422, {"detail": [{"loc": ["body", "tools"], "msg": "field required"}]}, "invalid_request", False),
        (500, "Internal Server Error", "server", True),
        (502, "<html><head><title>502 Bad Gateway</title></head></html>", "server", True),
        (503, {"error": "no healthy upstream"}, "overloaded", True),
        (503, "", "overloaded", True),
        (504, "<html>gateway</html>", "timeout", True),
        (524, "", "timeout", True),
        (529, {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}, "overloaded", True),
        (500, {"error": {"message": "The engine is currently overloaded, please try again later"}}, "overloaded", True),
        (None, {"error": {"message": "upstream worker died", "type": "server_error", "code": 500}}, "server", True),
        (None, {"error": {"message": "Provider returned error", "code": 429}}, "rate_limit", True),
        (None, {"error": {"message": "x", "type": "overloaded_error"}}, "overloaded", True),
        (None, {"error": {"type": "rate_limit_error", "message": "slow"}}, "rate_limit", True),
        (None, {"error": {"type": "authentication_error", "message": "no"}}, "auth", False),
        (None, {"error": {"type": "invalid_request_error", "message": "no"}}, "invalid_request", False),
        (None, {"error": "boom"}, "server", True),
        (None, {"error": ["boom"]}, "server", True),
        (None, {"error": {}}, "server", True),
        (None, {"object": "error", "message": "bad", "code": 400}, "invalid_request", False),
        (None, {"error": {"message": "Deadline exceeded", "code": 504}}, "timeout", True),
    ],
)
def test_kinds(status, body, kind, retryable):
    error = error_of(body, status)
    assert (error.kind, error.retryable) == (kind, retryable), error
    assert error.message


@pytest.mark.parametrize(
    "body", [None, "", [], {}, 5, True, [[[[[[[[1]]]]]]]], {"error": {"error": {"error": {"error": {"error": {"error": 1}}}}}}]
)
def test_any_shape_gives_a_message(body):
    assert error_of(body).message
    assert error_of(body, 500).status == 500


def test_the_upstreams_own_words_are_shown():
    body = {
        "error": {
            "message": "Provider returned error",
            "code": 400,
            "metadata": {"raw": '{"error":{"message":"prompt is too long"}}'},
        }
    }
    error = error_of(body, 400)
    assert error.kind == "context_overflow"
    assert "prompt is too long" in error.message


def test_an_html_page_is_told_by_its_title():
    error = error_of_bytes(b"<!DOCTYPE html><html><head><title>Just a moment...</title></head><body>x</body></html>", 403, {})
    assert "Just a moment..." in error.message
    assert "<" not in error.message


def test_a_redirect_says_where_to():
    error = error_of_bytes(b"", 301, {"location": "https://example.org/v1?key=secret"})
    assert error.kind == "invalid_request"
    assert "https://example.org/v1" in error.message
    assert "secret" not in error.message


def test_the_servers_hint_about_retries_is_heeded():
    assert not error_of_bytes(b"", 500, {"x-should-retry": "false"}).retryable
    assert error_of_bytes(b"{}", 400, {"x-should-retry": "true"}).retryable


WAITS = [
    ({"retry-after": "7"}, None, 7),
    ({"retry-after": " 7.5 "}, None, 7.5),
    ({"retry-after": "-3"}, None, 0),
    ({"retry-after": "1m30s"}, None, 90),
    ({"retry-after-ms": "1500", "retry-after": "2"}, None, 1.5),
    ({"retry-after": "soon"}, None, None),
    ({"retry-after": "nan"}, None, None),
    ({"retry-after": "inf"}, None, None),
    ({}, {"error": {"code": 429, "details": [{"@type": "x.RetryInfo", "retryDelay": "37s"}]}}, 37),
    ({}, {"error": {"message": "Rate limit reached. Please try again in 20s."}}, 20),
    ({}, {"error": {"message": "Rate limit reached. Please try again in 1.5s. Visit"}}, 1.5),
    ({}, {"error": {"message": "Rate limit reached. Please try again in 120ms."}}, 0.12),
    ({}, {"error": {"message": "Rate limit reached. Please try again in 6m0s."}}, 360),
    ({}, {"error": {"message": "Rate limit reached. Please retry after 2 minutes."}}, 120),
    ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "6m0s"}, None, 360),
    ({"x-ratelimit-remaining-requests": "5", "x-ratelimit-reset-requests": "6m0s"}, None, None),
    ({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "120ms"}, None, 0.12),
    ({}, None, None),
]


@pytest.mark.parametrize(("headers", "body", "seconds"), WAITS)
def test_how_long_to_wait(headers, body, seconds):
    after = error_of(body, 429, headers).retry_after
    assert after == (None if seconds is None else pytest.approx(seconds))


def test_a_date_to_wait_for():
    in_30 = email.utils.formatdate(time.time() + 30, usegmt=True)
    assert 25 < error_of(None, 429, {"retry-after": in_30}).retry_after <= 30
    past = email.utils.formatdate(time.time() - 30, usegmt=True)
    assert error_of(None, 503, {"retry-after": past}).retry_after == 0


def test_a_full_minute_is_retryable_and_a_full_day_is_not():
    def body(quota):
        detail = {"@type": "x.QuotaFailure", "violations": [{"quotaId": quota}]}
        return {"error": {"code": 429, "message": "You exceeded your current quota, please check your plan and billing details.",
                          "status": "RESOURCE_EXHAUSTED", "details": [detail, {"retryDelay": "37s"}]}}  # fmt: skip

    assert error_of(body("GenerateRequestsPerMinutePerProjectPerModel"), 429).retryable
    assert not error_of(body("GenerateRequestsPerDayPerProjectPerModel-FreeTier"), 429).retryable


def test_a_pages_style_is_no_message():
    assert error_of("<html><style>p{x}</style><script>y</script><p>Down</p></html>", 503).message.endswith(": Down")
