"""The models that the app offers to switch to."""

import os

from rxagent.models import PRICES
from rxagent.models.endpoints import ENDPOINTS

_FAMILIES = (("openai", ("gpt-", "o3", "o4")), ("anthropic", ("claude-",)), ("gemini", ("gemini-",)))


def offered_models(present: str) -> list[str]:
    """The present model, those of providers whose key is set, and what needs no key."""
    names = [present]
    for provider, starts in _FAMILIES:
        if any(os.environ.get(variable, "").strip() for variable in ENDPOINTS[provider].key_env):
            names += [f"{provider}:{name}" for name in PRICES if name.startswith(starts)]
    return list(dict.fromkeys([*names, "local", "demo"]))
