"""An adapter of rxagent for a shared benchmark harness: one Peer, whose `_common` module has to be on the path.

    PYTHONPATH=…/bench/adapters python benchmarks/shared_adapter.py --case '{"scenario": "text-10000-bulk", "port": 1234}'

Each run is a new `Agent` with one observer of its states and one of its events.
"""

import _common as c  # pyright: ignore[reportMissingImports] it comes with the harness

from rxagent import Agent, Limits, tool
from rxagent.events import MessageUpdate, TextDelta, ToolCallDelta, ToolEnd, ToolStart
from rxagent.messages import AssistantMessage, UserMessage
from rxagent.models import resolve


class RxAgent(c.Peer):
    """rxagent on the chat wire."""

    name = "rxagent"
    packages = ("rxagent", "reactivex", "pydantic", "aiohttp")

    async def open(self, case, tools):
        self.model = resolve(f"openai:{c.MODEL}", base_url=case.base_url, api_key="x")

        # coroutine functions, as every other peer has them
        @tool
        async def add(a: int, b: int) -> str:
            """Add."""
            return tools.add(a, b)

        @tool
        async def write(path: str, text: str) -> str:
            """Write."""
            return tools.write(path, text)

        self.tools = [add, write]
        self.history = [
            UserMessage(text) if role == "user" else AssistantMessage(text, stop_reason="stop")
            for role, text in c.scenario.history(case.history)
        ]

    async def run(self, case, sink):
        agent = Agent(self.model, system_prompt=c.SYSTEM, tools=self.tools, messages=self.history, limits=Limits(max_turns=None))
        last = []

        def on_state(state):
            last[:] = (state,)

        def on_event(event):
            kind = type(event)
            if kind is MessageUpdate:
                delta = event.delta
                if type(delta) is TextDelta:
                    sink.delta(delta.text)
                elif type(delta) is ToolCallDelta:
                    sink.arg_delta(delta.arguments)
            elif kind is ToolStart:
                sink.tool_start(event.call_id)
            elif kind is ToolEnd:
                sink.tool_end(event.call_id)

        agent.states.subscribe(on_state)
        agent.events.subscribe(on_event)
        result = await agent.prompt(c.PROMPT)
        sink.final(result.text, len(last[0].messages))


if __name__ == "__main__":
    c.main(RxAgent)
