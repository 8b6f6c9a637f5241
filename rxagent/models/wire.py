"""The shape all wires share: an endpoint as data, a request to send, and a decoder of the answer. No I/O here.

A wire is one file with a `Wire` and a `Decoder`; it imports no other wire. Everything about HTTP is in `transport`.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol, cast

from pydantic import JsonValue
from pydantic_core import from_json

from rxagent.events.model import ModelError, ResponseEnd
from rxagent.messages import JsonObject, StopReason, Usage
from rxagent.models.base import ModelRequest
from rxagent.models.classify import error_of
from rxagent.models.deltas import Deltas, MakeDelta, Out
from rxagent.models.mend import Surrogates
from rxagent.models.prices import Price
from rxagent.models.recording import SHORTEST_SECRET
from rxagent.models.sse import FRAMED_AGAIN, KEEP_ALIVES, SseEvents
from rxagent.models.stencil import Stencil


@dataclass(frozen=True, slots=True, kw_only=True)
class Switches:
    """Where servers of one wire differ in what they take. A server's row says so; no code asks for its name.

    Args:
        include_usage: ask for usage in the stream (chat: ``stream_options``).
        max_tokens: the field that caps the answer.
        max_tokens_default: sent where a cap is demanded and the request has none.
        system_role: the role of the system prompt.
        reasoning_field: the field in which a message's reasoning goes back, or None: it does not.
        reasoning_effort: how a thinking level is asked for; ``openai``: by OpenAI's own table of models.
        strict_schemas: tools may be declared ``strict``.
        parallel_tool_calls: the field is understood.
        images: images in user messages are understood.
        images_in_results: images in tool results are understood.
        structured_output: how a schema for the answer is asked for.
        thinking: the wire's own word for how thinking is asked for, where models differ (``adaptive``, ``budget``).
        cache: prompt caching has to be asked for with marks.
        call_id_longest: characters that a tool call's id may have.
        call_id_exact: it must have just that many, letters and digits only.

    """

    include_usage: bool = True
    max_tokens: str = "max_tokens"
    max_tokens_default: int | None = None
    system_role: Literal["system", "developer"] = "system"
    reasoning_field: str | None = None
    reasoning_effort: Literal["none", "openai", "reasoning_effort", "reasoning", "thinking"] = "none"
    strict_schemas: bool = False
    parallel_tool_calls: bool = True
    images: bool = True
    images_in_results: bool = False
    structured_output: Literal["none", "json_object", "json_schema"] = "json_schema"
    thinking: str | None = None
    cache: bool = True
    call_id_longest: int = 40
    call_id_exact: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """One server: a row of data.

    Args:
        provider: its prefix in model names.
        wire: the wire's name.
        base_url: without a trailing slash.
        version_path: appended to a base URL that has no path of its own (``http://localhost:8000``).
        base_env: environment variables that may hold another base URL.
        key_env: environment variables that may hold the key, in order; none: it needs no key.
        key_header: header and prefix of the key's value.
        headers: sent with every request.
        query: sent with every request.

    """

    provider: str
    wire: str
    base_url: str
    version_path: str = ""
    base_env: tuple[str, ...] = ()
    key_env: tuple[str, ...] = ()
    key_header: tuple[str, str] = ("Authorization", "Bearer ")
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    query: Mapping[str, str] = field(default_factory=dict[str, str])
    switches: Switches = field(default_factory=Switches)


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A model at an endpoint. ``name`` is what messages call it; ``model`` is the provider's own name of it."""

    name: str
    model: str
    endpoint: Endpoint

    @property
    def switches(self) -> Switches:
        """The endpoint's."""
        return self.endpoint.switches


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpCall:
    """One POST: ``path`` is appended to the base URL; the key is added by the transport."""

    path: str
    body: JsonObject
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    query: Mapping[str, str] = field(default_factory=dict[str, str])


Heard = Callable[[list[str]], None]


class Decoder:
    """Turns one answer into events, appended to ``out``. Wires derive from it.

    A wire overrides `chunk` (one JSON object of the stream), `whole` (an unstreamed answer) and
    `eof` (only if bytes may end without a terminal), and ends the answer with `end` or `fail`, after
    which nothing is read any more.
    """

    def __init__(self) -> None:
        self.out: Out = []
        self.done = False
        self.has_calls = False  # set by the wire; decides the stop reason
        self.damaged = False
        self.secret = ""  # the key: not to be shown where the server repeats it
        self.price: Price | None = None
        self._call_ids: set[str] = set()
        self._surrogates = Surrogates()
        self._stencil = Stencil()
        self._same: list[tuple[re.Pattern[bytes], MakeDelta, int, str]] = []
        self._heard: Heard | None = None

    @property
    def complete(self) -> bool:
        """The answer is whole, though more may follow (usage); the transport then waits only a moment for it."""
        return False

    def feed(self, received: list[SseEvents]) -> None:
        """Reads events of the stream in order; stops at the terminal one."""
        if self.done:
            return
        stencil = self._stencil
        for name, data, between in received:
            at, size = 0, len(data)
            while True:
                if (make := stencil.make) is not None:
                    index = stencil.index
                    texts, at = stencil.read(name, data, at, between)
                    if texts:
                        if self._heard is not None:
                            self._heard(texts)
                        self.out.append(Deltas(make, index, texts))
                        if at >= size:
                            break
                        continue
                    stencil.make = None
                if self.done:
                    return
                end = data.find(between, at) if between else -1
                self._parse(name, data[at : end if end >= 0 else size])
                if end < 0:
                    break
                at = end + len(between)

    def _parse(self, name: str, data: bytes) -> None:
        self._same.clear()
        self._heard = None
        try:
            value: JsonValue = from_json(data)
        except ValueError:
            value = self._odd(name, data)
        if isinstance(value, dict):
            self.chunk(name, value)
        elif isinstance(value, list):
            self.chunks(value)
        elif isinstance(value, str) and value.lstrip().startswith("{"):
            self.feed([SseEvents(name, value.encode())])  # encoded twice
        if self._same:
            key, make, index, text = self._same.pop()
            if self._stencil.learn(name, data, key, text):
                self._stencil.make, self._stencil.index = make, index

    def same(self, key: re.Pattern[bytes], make: MakeDelta, index: int, text: str, heard: Heard | None = None) -> None:
        """Says that the chunk just read was nothing but more text, and would be so with any other text in it.

        Args:
            key: finds the text in the chunk's bytes; it ends with the opening quote.
            make: makes the event of the text and ``index``, when it is taken; a pure function.
            index: of the block.
            text: what the chunk held.
            heard: is told the texts of the next ones when they are read.

        """
        self._heard = heard
        self._same.append((key, make, index, text))

    def chunks(self, values: list[JsonValue]) -> None:
        """Reads a stream that came as one JSON array."""
        for value in values:
            if isinstance(value, dict) and not self.done:
                self.chunk("", value)
        if len(values) > 1:
            self._same.clear()  # the others would go unread

    def chunk(self, name: str, value: JsonObject) -> None:
        """Reads one event: ``name`` is that of its ``event:`` line, or empty."""
        raise NotImplementedError

    def whole(self, value: JsonObject) -> None:
        """Reads an answer that came in one piece."""
        raise NotImplementedError

    def sentinel(self) -> None:
        """``[DONE]`` came. It ends the protocols that have it; the others ignore it."""

    def eof(self, failure: ModelError) -> None:
        """The bytes ended, or the connection broke, before the answer's own end: ``failure`` says how.

        A wire whose answer was complete nevertheless ends it here with `end`.
        """
        self.fail(failure)

    def end(self, stop: StopReason | None, usage: Usage | None = None, replay: JsonObject | None = None) -> None:
        """Ends the answer. ``stop``: what the server said; calls mean ``tool_use`` unless it was cut or filtered."""
        if self.damaged and self.has_calls:
            self.fail(
                ModelError(
                    "protocol", "the stream was damaged (invalid UTF-8), so its tool calls can't be trusted", retryable=True
                )
            )
            return
        if stop not in ("length", "content_filter"):
            stop = "tool_use" if self.has_calls else "stop"
        if usage is not None and usage.cost is None and self.price is not None:
            usage = replace(usage, cost=self.price.cost(usage))
        self.done = True
        self.out.append(ResponseEnd(stop, usage, replay))

    def call_id(self, said: str, index: int) -> str:
        """The id of a new call: what the server said, with the block's index where that is another call's, or is nothing."""
        made = said or f"call_{index}"
        while made in self._call_ids:
            made = f"{made}_{index}"
        self._call_ids.add(made)
        return made

    def fail(self, error: ModelError) -> None:
        """Ends the answer with an error."""
        self.done = True
        if len(self.secret) >= SHORTEST_SECRET and self.secret in error.message:
            error = replace(error, message=error.message.replace(self.secret, "***"))
        self.out.append(error)

    def fail_with(self, body: object, status: int | None = None) -> None:
        """Ends the answer with the error that a body describes, in whatever shape."""
        self.fail(error_of(body, status))

    def _odd(self, name: str, data: bytes) -> JsonValue:
        text = data.strip()
        if frames := FRAMED_AGAIN.match(text):
            self._parse(name, text[frames.end() :])
        elif text == b"[DONE]" or self.complete:
            self.sentinel()  # after a whole answer nothing that can't be read matters
        elif name == "error" and text[:1] != b"{":
            self.fail_with(text.decode("utf-8", "replace"))
        elif text and text.strip(b'":').lower() not in KEEP_ALIVES:
            value, replaced = self._surrogates.parse(data)
            self.damaged = self.damaged or replaced
            if value is not None:
                return cast("JsonValue", value)
            shown = data[:120].decode("utf-8", "replace")
            self.fail(ModelError("protocol", f"the stream holds an event that is no JSON: {shown!r}", retryable=True))
        return None


class Wire(Protocol):
    """One protocol: how a request is written and how its answer is read. Stateless."""

    @property
    def name(self) -> str:
        """What endpoints call it."""
        ...

    def call(self, request: ModelRequest, target: Target) -> HttpCall:
        """Writes the request."""
        ...

    def decoder(self, request: ModelRequest, target: Target) -> Decoder:
        """Makes a reader for one answer."""
        ...
