"""Raw traffic as case files: the bytes of an answer as they came, so that what a server did once can be played again.

A case holds no secret: request headers are left out, of the response's only harmless ones are kept, and the
key is blotted out of the bodies wherever it stands, as is anything that looks like one.
"""

import asyncio
import base64
import re
import time
from collections.abc import Mapping
from pathlib import Path

from pydantic import JsonValue
from pydantic_core import to_json

from rxagent.messages import JsonObject

_KEPT = {"content-type", "content-encoding", "retry-after", "retry-after-ms", "x-should-retry"}
_KEY_LIKE = re.compile(
    rb"(?:sk|pk|rk|gsk|xai|key|api|tok|hf|nvapi|AIza|ghp|eyJ)[-_]?[A-Za-z0-9_\-\.]{24,}|(?<=[Bb]earer )[A-Za-z0-9_\-\.=]{8,}"
)
_BLOT = b"***"
SHORTEST_SECRET = 8  # characters; what is shorter ("none", "EMPTY", "ollama") keeps no server closed and is in many words


class Recording:
    """One request and its answer, in the making."""

    def __init__(self, api: str, request: JsonObject, secret: str) -> None:
        self._api = api
        self._request = request
        self._secrets = [s for s in {secret.encode(), to_json(secret)[1:-1]} if len(s) >= SHORTEST_SECRET]
        self._status = 0
        self._headers: dict[str, str] = {}
        self._chunks: list[bytes] = []

    def response(self, status: int, headers: Mapping[str, str]) -> None:
        """The answer began."""
        self._status = status
        self._headers = {name: value for name, value in headers.items() if name.lower() in _KEPT}

    def chunk(self, data: bytes) -> None:
        """More of the answer's body, as it was read."""
        self._chunks.append(data)

    def case(self, case_id: str, then: str) -> JsonObject:
        """The case: ``then`` is how the answer ended (close, cut, reset, stall)."""
        http: JsonObject = {"status": self._status, "headers": dict(self._headers), "body_chunks": self._body(), "then": then}
        return {
            "id": case_id,
            "kind": "recorded",
            "api": self._api,
            "title": f"recorded {time.strftime('%Y-%m-%d %H:%M:%S', time.gmtime())} UTC",
            "request": self._clean_json(self._request),
            "http": http,
            "expect": {},
        }

    async def save(self, directory: str, then: str) -> Path:
        """Writes the case into a file of its own and gives its path."""
        return await asyncio.to_thread(self._write, Path(directory), then)

    def _write(self, directory: Path, then: str) -> Path:
        directory = directory.expanduser()
        directory.mkdir(parents=True, exist_ok=True)
        stem = f"rec-{self._api}-{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}"
        number = 0
        while True:
            path = directory / f"{stem}-{number}.json"
            try:
                with path.open("xb") as file:
                    file.write(to_json(self.case(path.stem, then), indent=1))
            except FileExistsError:
                number += 1
            else:
                return path

    def _body(self) -> list[JsonValue]:
        whole = b"".join(self._chunks)
        clean = self._clean(whole)
        # where something was blotted out the cuts are lost: a key may have lain across one
        return [_text_or_base64(chunk) for chunk in (self._chunks if clean == whole else [clean])]

    def _clean(self, data: bytes) -> bytes:
        for secret in self._secrets:
            data = data.replace(secret, _BLOT)
        return _KEY_LIKE.sub(_BLOT, data)

    def _clean_json(self, value: JsonValue) -> JsonValue:
        if isinstance(value, str):
            return self._clean(value.encode("utf-8", "replace")).decode("utf-8", "replace")
        if isinstance(value, list):
            return [self._clean_json(item) for item in value]
        if isinstance(value, dict):
            return {key: self._clean_json(item) for key, item in value.items()}
        return value


def _text_or_base64(chunk: bytes) -> JsonValue:
    try:
        return chunk.decode()
    except UnicodeDecodeError:
        return {"b64": base64.b64encode(chunk).decode()}
