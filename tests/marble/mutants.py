"""Mutants: small lies in flow, operators and engine, each of which some marble block must notice.

A mutant is a text that stands exactly once in a file, and what takes its place. Code that changes takes its
mutant along: the test names the one whose text is gone.
"""

from typing import NamedTuple


class Mutant(NamedTuple):
    name: str
    file: str  # below rxagent/
    old: str
    new: str
    spec: str  # the marble file that is played first


FLOW, OPERATORS, RUNS = "flow.md", "operators.md", "runs.md"

MUTANTS = [
    Mutant(
        "final flush dropped", "flow/pacer.py", "ends = due is None\n", "ends = due is None or self.ending is not None\n", FLOW
    ),
    Mutant(
        "leading frame lost",
        "flow/frames.py",
        "        return self._next\n",
        "        return self.now + self._period if self._next == NOW and self._timer is None else self._next\n",
        FLOW,
    ),
    Mutant(
        "full frame not delivered early",
        "flow/frames.py",
        "        if self.ending is not None or len(self._kept) >= self._max_items:\n            return NOW\n",
        "        if self.ending is not None:\n            return NOW\n",
        FLOW,
    ),
    Mutant(
        "hold released early",
        "flow/holds.py",
        "        if not self.holds:\n            self._fire()\n\n    def drop_all",
        "        self._fire()\n\n    def drop_all",
        FLOW,
    ),
    Mutant(
        "conflate keeps the first", "flow/conflate.py", "self._kept[:] = [value]", "self._kept[:] = self._kept or [value]", FLOW
    ),
    Mutant(
        "debounce not pushed back",
        "flow/debounce.py",
        "self._quiet_at = self.now + self._seconds",
        "self._quiet_at = max(self._quiet_at, NOW) if self._quiet_at > self.now else self.now + self._seconds",
        FLOW,
    ),
    Mutant(
        "delay forgets the end", "flow/delay.py", "self._end_due = self.loop.time() + self._seconds", "self._end_due = NOW", FLOW
    ),
    Mutant("sample a tick late", "flow/sample.py", "/ self._seconds) + 1) *", "/ self._seconds) + 2) *", FLOW),
    Mutant("throttle lets all through", "flow/throttle_first.py", "if now >= open_at:", "if now >= 0:", FLOW),
    Mutant(
        "overflow drops the wrong end", "flow/overflow.py", "oldest = self._queue.popleft()", "oldest = self._queue.pop()", FLOW
    ),
    Mutant(
        "offload without a bound",
        "flow/handover.py",
        "                    self._holds.append(hold())\n",
        "                    pass\n",
        FLOW,
    ),
    Mutant(
        "re-entrant value delivered at once",
        "flow/hub.py",
        "        if self._busy or self._waiting:\n",
        "        if self._waiting:\n",
        FLOW,
    ),
    Mutant(
        "fault of an observer not reported",
        "flow/hub.py",
        "report(self._on_fault, Fault(error, value, str(entry.site)))",
        "pass",
        FLOW,
    ),
    Mutant(
        "replay forgets the first value",
        "flow/replay.py",
        "        self._at = 0\n",
        "        self._at = min(1, len(hub.values))\n",
        FLOW,
    ),
    Mutant("listener not waited for", "flow/listener.py", "crowded = self._unfinished > self._capacity", "crowded = False", FLOW),
    Mutant(
        "iterator without a bound",
        "flow/to_aiter.py",
        "                    self._holds.append(hold())\n",
        "                    pass\n",
        FLOW,
    ),
    Mutant("seq reused", "engine/session.py", "self.next_seq = seq + 1", "self.next_seq = seq", RUNS),
    Mutant(
        "withdrawn attempt kept",
        "engine/answer.py",
        "                if retry.seq >= 0:",
        "                if retry.seq < 0:",
        RUNS,
    ),
    Mutant("all steering at once", "engine/inbox.py", "else self.steering[:1]", "else self.steering", RUNS),
    Mutant("all follow-ups at once", "engine/inbox.py", "else self.follow_ups[:1]", "else self.follow_ups", RUNS),
    Mutant(
        "abort leaves tools running",
        "engine/call.py",
        "            self._signal.cancel(reason)\n            self._task.cancel()\n",
        "            self._signal.cancel(reason)\n",
        RUNS,
    ),
    Mutant("one turn too many", "engine/loop.py", "turn >= limits.max_turns", "turn > limits.max_turns", RUNS),
    Mutant("cut calls run", "engine/loop.py", 'refusals = {"length": LENGTH, ', "refusals = {", RUNS),
    Mutant(
        "tool timeout ignored",
        "engine/call.py",
        "await asyncio.wait((work,), timeout=timeout)",
        "await asyncio.wait((work,))",
        RUNS,
    ),
    Mutant("parallel limit ignored", "engine/batch.py", "else self.scope.config.limits.max_parallel_tools", "else None", RUNS),
    Mutant("updates although unstreamed", "engine/answer.py", "            if not streaming:\n", "            if False:\n", RUNS),
    Mutant(
        "Retry-After ignored",
        "engine/limits.py",
        "        if retry_after is not None:\n",
        "        if retry_after is None:\n            return 0.0\n        if False:\n",
        RUNS,
    ),
    Mutant(
        "interrupting steer does not interrupt",
        "engine/batch.py",
        '        self.cut("interrupted by a new message")\n',
        "        pass\n",
        RUNS,
    ),
    Mutant("withdrawal untold", "operators/answers.py", "        if count:\n", "        if count is None:\n", OPERATORS),
    Mutant("final text is the first", "operators/messages.py", "for m in reversed(run) if", "for m in run if", OPERATORS),
    Mutant(
        "ended calls stay pending",
        "operators/pending_tool_calls.py",
        "running.pop((event.origin.session_id, event.call_id), None)",
        "running.get((event.origin.session_id, event.call_id))",
        OPERATORS,
    ),
    Mutant(
        "usage not summed", "operators/folds.py", "total = total + event.message.usage", "total = event.message.usage", OPERATORS
    ),
    Mutant(
        "first state not given",
        "operators/folds.py",
        "            emit(state)\n            return source",
        "            return source",
        OPERATORS,
    ),
    Mutant("never idle", "operators/until_idle.py", "if running <= 0:", "if running < 0:", OPERATORS),
    Mutant("no turns among merged runs", "operators/merge_runs.py", "self._turn = index + 1", "self._turn = 0", OPERATORS),
]
