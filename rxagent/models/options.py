"""How a model's requests are sent, as data."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from pydantic import JsonValue

from rxagent.messages import JsonObject
from rxagent.models.prices import PRICES, Price

KeySource = str | Callable[[], str | Awaitable[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpOptions:
    """How requests are sent.

    Args:
        headers: sent with every request, over those of the wire.
        body: merged into every request's body, over the wire's fields.
        query: appended to every request's URL.
        proxy: URL of a proxy; without it the usual environment variables are heeded.
        connect_timeout: seconds for making a connection.
        max_event: bytes that one event of a stream, or an unstreamed answer, may have.
        on_payload: sees each body before it is sent; what it returns, if anything, is sent instead.
        on_response: sees status and headers of each answer.
        prices: what models cost, by name; see `Price`.
        record: a directory in which the raw traffic of each request is stored as a case file, without secrets.

    """

    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    body: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    query: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    proxy: str | None = field(default=None, repr=False)
    connect_timeout: float = 15.0
    max_event: int = 32 << 20
    on_payload: Callable[[JsonObject], JsonObject | None] | None = None
    on_response: Callable[[int, Mapping[str, str]], None] | None = None
    prices: Mapping[str, Price] = field(default_factory=lambda: PRICES, repr=False)
    record: str | None = None
