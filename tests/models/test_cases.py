"""Every shared case of every wire, at each of its cuts."""

import asyncio

import pytest
import shared_cases as shared

from rxagent.messages import UserMessage
from rxagent.models import ModelRequest, resolve

WIRES = {
    "openai-chat": ("openai", "/v1"),
    "openai-responses": ("openai-responses", "/v1"),
    "anthropic": ("anthropic", ""),
    "gemini": ("gemini", "/v1beta"),
}
CASES = shared.all_cases()
pytestmark = pytest.mark.filterwarnings("ignore::aiohttp.web_exceptions.NotAppKeyWarning")  # the replay server's own
REQUEST = ModelRequest(messages=(UserMessage("hi"),))


def test_the_shared_cases_are_there():
    shared.require_cases()
    assert len(CASES) >= 25


@pytest.mark.parametrize("cut", shared.CUTS, ids=lambda cut: cut or "own")
@pytest.mark.parametrize("case_id", CASES)
def test_case(case_id, cut):
    serve, check = shared.module("serve"), shared.module("check")
    case = CASES[case_id]
    prefix, path = WIRES[case["api"]]

    async def play():
        async with shared.serving(serve.make_app(max_stall=5)) as server:
            model = resolve(f"{prefix}:test-model", base_url=f"{server}/case/{case_id}{cut}{path}", api_key="k")
            return await shared.events_of(model, REQUEST)

    actual = shared.as_actual(asyncio.run(play()))
    assert check.match(case["expect"], actual) == []
