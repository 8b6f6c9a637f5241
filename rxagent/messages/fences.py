"""JSON in a fence of Markdown, as models of servers that take no schema like to write it."""

import re

_OPENING = re.compile(r"\s*```(?:json)?[ \t]*\n", re.IGNORECASE)
_CLOSING = re.compile(r"\n[ \t]*`{1,3}\s*\Z")


def unfenced(text: str) -> str:
    """What stands within the fence that ``text`` is, be it finished or still being written; any other text as it is."""
    opening = _OPENING.match(text)
    return text if opening is None else _CLOSING.sub("", text[opening.end() :])
