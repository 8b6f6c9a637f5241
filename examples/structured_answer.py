"""An answer that has a type, and its values while they are being written.

Prints::

    so far: A
    so far: Ada
    so far: Ada, 36
    Person(name='Ada', age=36)
"""

import asyncio

from pydantic import BaseModel

from rxagent import Agent
from rxagent import operators as ops
from rxagent.models import ScriptedModel


class Person(BaseModel):
    name: str = ""
    age: int | None = None


async def main() -> None:
    model = ScriptedModel([['{"name": "A', 'da", ', '"age": 36}']], delay=0.05)
    agent = Agent(model, output=Person)
    shown: list[str] = []

    def show(person: Person) -> None:
        text = ", ".join(str(value) for value in (person.name, person.age) if value)
        if text and text not in shown:
            shown.append(text)
            print(f"so far: {text}")

    agent.events.pipe(ops.partial_json(Person)).subscribe(show)
    result = await agent.prompt("who is it?")
    print(repr(result.output))


if __name__ == "__main__":
    asyncio.run(main())
