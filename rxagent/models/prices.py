"""What models cost. A table of list prices, to be replaced or extended: ``HttpOptions(prices={**PRICES, …})``.

Prices change and contracts differ: this is an estimate. A model that isn't in the table has no cost, not a cost of zero.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from rxagent.messages import Usage


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars for a million tokens. None: unknown, and so is the cost of a request that has such tokens.

    ``long``: the price of requests whose input has more than ``long_from`` tokens.
    """

    input: float
    output: float
    cache_read: float | None = None
    cache_write: float | None = None
    long_from: int | None = None
    long: "Price | None" = None

    def cost(self, usage: Usage) -> float | None:
        """The cost of one request in US dollars."""
        if usage.input is None or usage.output is None:
            return None
        if self.long is not None and self.long_from is not None and usage.input > self.long_from:
            return self.long.cost(usage)
        read, write = usage.cache_read or 0, usage.cache_write or 0
        if (read and self.cache_read is None) or (write and self.cache_write is None):
            return None
        fresh = max(usage.input - read - write, 0) * self.input
        return (fresh + read * (self.cache_read or 0) + write * (self.cache_write or 0) + usage.output * self.output) / 1e6


# List prices as published by OpenAI, Anthropic, Google, DeepSeek, xAI. Cache writes of Anthropic: five minutes.
PRICES: Mapping[str, Price] = MappingProxyType(
    {
        "gpt-5": Price(1.25, 10, 0.125),
        "gpt-5-mini": Price(0.25, 2, 0.025),
        "gpt-5-nano": Price(0.05, 0.4, 0.005),
        "gpt-4.1": Price(2, 8, 0.5),
        "gpt-4.1-mini": Price(0.4, 1.6, 0.1),
        "gpt-4.1-nano": Price(0.1, 0.4, 0.025),
        "gpt-4o": Price(2.5, 10, 1.25),
        "gpt-4o-mini": Price(0.15, 0.6, 0.075),
        "o3": Price(2, 8, 0.5),
        "o4-mini": Price(1.1, 4.4, 0.275),
        "claude-opus-4-5": Price(5, 25, 0.5, 6.25),
        "claude-opus-4-1": Price(15, 75, 1.5, 18.75),
        "claude-opus-4": Price(15, 75, 1.5, 18.75),
        "claude-sonnet-4-5": Price(3, 15, 0.3, 3.75, 200_000, Price(6, 22.5, 0.6, 7.5)),
        "claude-sonnet-4": Price(3, 15, 0.3, 3.75),
        "claude-haiku-4-5": Price(1, 5, 0.1, 1.25),
        "claude-3-5-haiku": Price(0.8, 4, 0.08, 1),
        "gemini-2.5-pro": Price(1.25, 10, 0.31, None, 200_000, Price(2.5, 15, 0.625)),
        "gemini-2.5-flash": Price(0.3, 2.5, 0.075),
        "gemini-2.5-flash-lite": Price(0.1, 0.4, 0.025),
    }
)


def price_of(model: str, provider: str, prices: Mapping[str, Price]) -> Price | None:
    """A model's price: by ``provider:model``, by its name, or by its name without a date (``gpt-4o-2024-08-06``)."""
    for name in (f"{provider}:{model}", model, f"{provider}:{_undated(model)}", _undated(model)):
        if name in prices:
            return prices[name]
    return None


def _undated(model: str) -> str:
    parts = model.split("-")
    while len(parts) > 1 and (parts[-1] == "latest" or (parts[-1].isdigit() and len(parts[-1]) in (2, 4, 8) and len(parts) > 2)):
        if len(parts[-1]) == 2 and not (parts[-2].isdigit() and len(parts[-2]) in (2, 4)):
            break
        parts.pop()
    return "-".join(parts)
