"""The names that the expressions of marble blocks can use."""

import asyncio

import reactivex as rx
from reactivex import operators as rxops

from rxagent import events, flow, messages


def world() -> dict[str, object]:
    """A fresh namespace for one block."""
    names: dict[str, object] = {"asyncio": asyncio, "rx": rx, "rxops": rxops}
    names.update(events=events, messages=messages, flow=flow)
    names.update({name: getattr(flow, name) for name in flow.__all__})
    return names
