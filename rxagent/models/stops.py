"""Which of two stop reasons counts, where a server says several."""

from collections.abc import Mapping
from types import MappingProxyType

from rxagent.messages import StopReason

_GRAVITY: Mapping[StopReason, int] = MappingProxyType({"error": 3, "content_filter": 2, "length": 2, "tool_use": 1})


def graver(said: StopReason, before: StopReason | None) -> bool:
    """Whether the reason counts more than the one before: errors most, then what cut the answer, calls, and the rest."""
    return before is None or _GRAVITY.get(said, 0) > _GRAVITY.get(before, 0)
