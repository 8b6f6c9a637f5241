"""Testing aids: virtual time, the pytest plugin for marble files, and what their expressions can use (`world`)."""

from rxagent.marble.loop import VirtualLoop, run_virtual

__all__ = ["VirtualLoop", "run_virtual"]
