"""Tools that go with the demo model, so that a call is seen without anything to set up."""

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated

from pydantic import Field

from rxagent.tools import Tool, tool

Number = int | float  # not float alone: whole numbers stay whole


@tool
def add(a: Number, b: Number) -> str:
    """Adds two numbers."""
    return f"{a + b:g}"


@tool
def multiply(a: Number, b: Number) -> str:
    """Multiplies two numbers."""
    return f"{a * b:g}"


@tool
async def count(to: Annotated[int, Field(ge=1, le=100)] = 5) -> AsyncIterator[str]:
    """Counts, five steps a second, and tells how far it is."""
    for number in range(1, to + 1):
        await asyncio.sleep(0.2)
        yield f"{number} of {to}"


@tool
def publish(text: str) -> str:
    """Pretends to publish a text."""
    return f"published, so to speak: {text}"


DEMO_TOOLS: tuple[Tool, ...] = (add, multiply, count, publish)
ASKING = ("publish",)  # those that ask a person first, where one can be asked
