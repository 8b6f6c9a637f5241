"""`rxagent models`: what ``--model`` understands."""

import os
import sys
from argparse import Namespace

from rxagent.models.endpoints import ENDPOINTS
from rxagent.models.wire import Endpoint


def start(arguments: Namespace) -> int:
    """Lists the providers, and whether their keys are there; never the keys."""
    rows = [
        ("demo", "built in: offline, its answers are scripted", ""),
        ("local", "the first compatible server on this machine's usual ports", ""),
        *((f"{name}:NAME", endpoint.base_url or "--base-url", _key(endpoint)) for name, endpoint in ENDPOINTS.items()),
    ]
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    for name, place, key in rows:
        sys.stdout.write(f"{name:<{widths[0]}}  {place:<{widths[1]}}  {key}".rstrip() + "\n")
    return 0


def _key(endpoint: Endpoint) -> str:
    if not endpoint.key_env:
        return "no key"
    found = next((name for name in endpoint.key_env if os.environ.get(name, "").strip()), None)
    return f"{found} is set" if found else f"needs {' or '.join(endpoint.key_env)}"
