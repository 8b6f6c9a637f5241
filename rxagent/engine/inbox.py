"""`Inbox`: the two queues of messages for a running agent, filled from any thread.

A message is looked at first and leaves only when it is in the transcript, so a crash or an abort
in between never loses it.
"""

import threading
from collections.abc import Callable, Sequence
from typing import Literal

from rxagent.engine.config import one_of
from rxagent.messages import AnyMessage

QueueMode = Literal["one_at_a_time", "all"]


class Inbox:
    """Steering messages (for a running run) and follow-ups (for after it)."""

    def __init__(self, on_change: Callable[[], None] = lambda: None) -> None:
        self._lock = threading.Lock()
        self._on_change = on_change
        self.steering: tuple[AnyMessage, ...] = ()
        self.follow_ups: tuple[AnyMessage, ...] = ()
        self._steering_mode: QueueMode = "one_at_a_time"
        self._follow_up_mode: QueueMode = "one_at_a_time"
        self.on_interrupt: Callable[[], None] | None = None

    @property
    def steering_mode(self) -> QueueMode:
        """How many steering messages a turn takes in."""
        return self._steering_mode

    @steering_mode.setter
    def steering_mode(self, mode: QueueMode) -> None:
        self._steering_mode = one_of(mode, QueueMode, "steering_mode")

    @property
    def follow_up_mode(self) -> QueueMode:
        """How many follow-ups are taken when a run would stop."""
        return self._follow_up_mode

    @follow_up_mode.setter
    def follow_up_mode(self, mode: QueueMode) -> None:
        self._follow_up_mode = one_of(mode, QueueMode, "follow_up_mode")

    def steer(self, messages: Sequence[AnyMessage]) -> None:
        """Queues for the next turn of the running run."""
        with self._lock:
            self.steering = (*self.steering, *messages)
        self._on_change()

    def follow_up(self, messages: Sequence[AnyMessage]) -> None:
        """Queues for when the run would stop."""
        with self._lock:
            self.follow_ups = (*self.follow_ups, *messages)
        self._on_change()

    def clear(self) -> tuple[AnyMessage, ...]:
        """Empties both queues and returns what they held, steering first."""
        with self._lock:
            removed = (*self.steering, *self.follow_ups)
            self.steering = self.follow_ups = ()
        if removed:
            self._on_change()
        return removed

    def next_steering(self) -> tuple[AnyMessage, ...]:
        """What the next turn takes in, by the mode; it stays queued until ``delivered``."""
        return self.steering if self.steering_mode == "all" else self.steering[:1]

    def next_follow_ups(self) -> tuple[AnyMessage, ...]:
        """What goes on when a run would stop, by the mode; it stays queued until ``delivered``."""
        return self.follow_ups if self.follow_up_mode == "all" else self.follow_ups[:1]

    def delivered(self, message_id: str) -> bool:
        """Takes a message off its queue; False if it was on none."""
        with self._lock:
            before = len(self.steering) + len(self.follow_ups)
            self.steering = tuple(m for m in self.steering if m.id != message_id)
            self.follow_ups = tuple(m for m in self.follow_ups if m.id != message_id)
            gone = len(self.steering) + len(self.follow_ups) < before
        if gone:
            self._on_change()
        return gone
