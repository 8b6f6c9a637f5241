"""A child: an agent that runs as a tool, on its own part of the session's log.

1. Its events carry its own path and the id of the call it works for; its transcript is its own.
2. What it was asked and what it has done is in the log: begun again, it goes on from there.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from rxagent.engine.closing import publish_left
from rxagent.engine.host import Host
from rxagent.engine.inbox import Inbox
from rxagent.engine.loop import Loop, Resume
from rxagent.engine.profile import Profile
from rxagent.engine.run import last_text
from rxagent.engine.scope import Scope
from rxagent.engine.session import Branch, new_id
from rxagent.events import ErrorInfo, Interrupt, Outcome
from rxagent.messages import AnyMessage, ToolAction
from rxagent.signals import Signal
from rxagent.state import AgentState


@dataclass(frozen=True, slots=True)
class ChildEnd:
    """How a child's run ended.

    ``text``: its last non-empty answer, or what it ended with; ``action``: how it asked to end what is around it;
    ``messages``: its transcript.
    """

    outcome: Outcome
    messages: Sequence[AnyMessage] = ()
    text: str = ""
    error: ErrorInfo | None = None
    interrupts: tuple[Interrupt, ...] = ()
    action: ToolAction | None = None


async def run_child(call: Host, profile: Profile, messages: Sequence[AnyMessage], signal: Signal) -> ChildEnd:
    """Runs the child of a call to its end: a new run, the rest of one a process left, or the answer to what it asked.

    Args:
        call: the tool call the child works for; what the child asks, the call asks.
        profile: the agent.
        messages: its input, where the run is a new one.
        signal: ends it.
    """
    parent = call.scope
    branch = _branch(parent, call.id, profile)
    progress = branch.progress
    scope = _scope(parent, branch, profile, signal)
    try:
        if progress.run_open:
            await Loop(scope).take_up()
        elif progress.outcome is None:
            await Loop(scope).run(branch.identify(messages))
        elif progress.outcome == "interrupted":
            resume = _resume(parent, branch)
            if resume is not None:
                await Loop(scope).run(tuple(progress.inputs), resume)
    finally:
        publish_left(scope)
    end = _end(branch, profile)
    call.waits_for(end.interrupts)
    return end


def _branch(parent: Scope, call_id: str, profile: Profile) -> Branch:
    branches = parent.session.branches
    branch = branches.get(call_id)
    if branch is None:
        path = (*parent.origin.path, profile.name)
        config = profile.setup.config()
        state = AgentState(path, config.system_prompt, config.model, config.thinking_level, config.tools)
        branch = branches[call_id] = Branch(parent.session, call_id, state)
    branch.attach(parent.session, profile.messages)
    return branch


def _scope(parent: Scope, branch: Branch, profile: Profile, signal: Signal) -> Scope:
    progress = branch.progress
    run_id = progress.run_id if progress.run_open else new_id()
    scope = Scope(branch, profile.setup, profile.config, Inbox(), signal, branch.origin(run_id, profile.name), profile.output)
    scope.on_fault, scope.find, scope.recovery = parent.on_fault, profile.find, parent.recovery
    if progress.next_speaker not in ("", profile.name):
        scope.become(profile.find(progress.next_speaker))
    return scope


def _resume(parent: Scope, branch: Branch) -> Resume | None:
    """The answers to what the child asked, as its parent was given them; None while there are none."""
    told, progress = parent.session.progress, branch.progress
    answers = {i.id: told.answers[i.id] for i in progress.interrupts if i.id in told.answers}
    cancelled = tuple(i.id for i in progress.interrupts if i.id in told.cancelled)
    if progress.interrupted_at is None or (progress.interrupts and not answers and not cancelled):
        return None
    return Resume(progress.interrupted_at, answers, cancelled)


def _end(branch: Branch, profile: Profile) -> ChildEnd:
    progress = branch.progress
    outcome = progress.outcome or "failed"
    if outcome == "interrupted":
        return ChildEnd(outcome, interrupts=progress.interrupts)
    branch.branches.pop(branch.call_id, None)
    messages = branch.state.messages
    text = last_text(messages[len(profile.messages) :])
    results = [call.result for call in progress.calls.values() if call.result is not None and call.result.action is not None]
    first = next((result for result in results if result.action == "exit"), results[0] if results else None)
    if first is None:
        return ChildEnd(outcome, messages, text, progress.error)
    return ChildEnd(outcome, messages, first.text or text, progress.error, action=first.action)
