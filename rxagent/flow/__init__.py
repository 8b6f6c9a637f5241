"""The Rx kit that reactivex lacks, knowing nothing of agents.

- Every operator here keeps back-pressure: a consumer that holds slows the source, losslessly.
- Time is the running loop's; nothing here makes a thread or a timer while idle.
- Loss is always something the user asked for by name.
"""

from rxagent.flow.clock import LoopClock
from rxagent.flow.emission import Gate, Pending, emit, publish, start_budget
from rxagent.flow.faults import Fault, OnFault, print_fault
from rxagent.flow.holds import Release, held_here, hold
from rxagent.flow.hub import Hub
from rxagent.flow.listener import Listener, subscribe_async
from rxagent.flow.replay import Replay

__all__ = [
    "Fault",
    "Gate",
    "Hub",
    "Listener",
    "LoopClock",
    "OnFault",
    "Pending",
    "Release",
    "Replay",
    "emit",
    "held_here",
    "hold",
    "print_fault",
    "publish",
    "start_budget",
    "subscribe_async",
]
