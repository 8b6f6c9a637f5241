"""The Rx kit that reactivex lacks, knowing nothing of agents.

- Every operator here keeps back-pressure: a consumer that holds slows the source, losslessly.
- Time is the running loop's; nothing here makes a thread, or a timer while idle.
- Loss is always something the user asked for by name.
"""

from rxagent.flow.blocking import emit_blocking
from rxagent.flow.clock import LoopClock
from rxagent.flow.conflate import conflate
from rxagent.flow.debounce import debounce
from rxagent.flow.delay import delay
from rxagent.flow.emission import Gate, Pending, emit, publish, start_budget
from rxagent.flow.faults import Fault, OnFault, print_fault
from rxagent.flow.frames import frames
from rxagent.flow.from_aiter import from_aiter
from rxagent.flow.holds import Release, held_here, hold
from rxagent.flow.hub import Hub
from rxagent.flow.listener import Listener, subscribe_async
from rxagent.flow.offload import offload
from rxagent.flow.overflow import Overflow, OverflowPolicy, overflow
from rxagent.flow.replay import Replay
from rxagent.flow.sample import sample
from rxagent.flow.throttle_first import throttle_first
from rxagent.flow.to_aiter import ObservableIterator, to_aiter

__all__ = [
    "Hub",
    "Replay",
    "Fault",
    "OnFault",
    "print_fault",
    "publish",
    "emit",
    "emit_blocking",
    "hold",
    "held_here",
    "Release",
    "Pending",
    "Gate",
    "start_budget",
    "subscribe_async",
    "Listener",
    "to_aiter",
    "ObservableIterator",
    "from_aiter",
    "offload",
    "frames",
    "conflate",
    "delay",
    "debounce",
    "sample",
    "throttle_first",
    "overflow",
    "Overflow",
    "OverflowPolicy",
    "LoopClock",
]
