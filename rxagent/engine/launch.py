"""`Launch`: how a run begins: with input, as the answer to what was asked, or as the rest of what a process left."""

from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from rxagent.engine.answers import check_fit
from rxagent.engine.loop import Resume
from rxagent.engine.lost import check_answer, question_of
from rxagent.engine.profile import NO_RECOVERY, Recovery, UnknownCalls
from rxagent.engine.progress import Progress
from rxagent.engine.session import Session
from rxagent.errors import InterruptError, NothingToContinue
from rxagent.messages import AnyMessage, to_json_value


@dataclass(frozen=True, slots=True)
class Cancel:
    """In place of an answer: the question is withdrawn, and what asked it ends with an error result."""


@dataclass(frozen=True, slots=True)
class Launch:
    """``take_up``: go on with the run the log leaves open; ``resume``: answer what the last run asked."""

    messages: tuple[AnyMessage, ...] = ()
    resume: Resume | None = None
    take_up: bool = False
    recovery: Recovery = NO_RECOVERY


def with_input(session: Session, messages: tuple[AnyMessage, ...]) -> Launch:
    """A new prompt; the questions of an interrupted run are cancelled by it."""
    progress = session.progress
    if progress.outcome != "interrupted" or progress.interrupted_at is None:
        return Launch(messages)
    asked = tuple(interrupt.id for interrupt in progress.interrupts)
    return Launch((*progress.inputs, *messages), Resume(progress.interrupted_at, {}, asked))


def checked(answers: Mapping[str, object]) -> tuple[dict[str, JsonValue], tuple[str, ...]]:
    """The answers as JSON values, and the ids of what is cancelled.

    Raises:
        Unserialisable: an answer has no JSON form.
        InterruptError: it can't be an answer to what its id asks.
    """
    cancelled = tuple(name for name, answer in answers.items() if isinstance(answer, Cancel))
    given = {name: to_json_value(answer, f"the answer to {name!r}") for name, answer in answers.items() if name not in cancelled}
    for name, answer in given.items():
        check_answer(name, answer)
    return given, cancelled


def with_answers(session: Session, answers: Mapping[str, object], policy: UnknownCalls = "ask") -> Launch:
    """The answers to an interrupted run, or the rest of one that a process left.

    Raises:
        InterruptError: an id that nothing waits for, that was settled before, or whose schema the answer doesn't fit.
        NothingToContinue: the session waits for nothing.
    """
    given, cancelled = checked(answers)
    progress = session.progress
    if progress.run_open:
        _check_known(progress, (*given, *cancelled), _lost_questions(session))
        return Launch(take_up=True, recovery=Recovery(policy, given, frozenset(cancelled)))
    asked = {interrupt.id for interrupt in progress.interrupts}
    _check_known(progress, (*given, *cancelled), asked)
    if progress.outcome != "interrupted" or progress.interrupted_at is None:
        raise NothingToContinue("nothing to resume: the session's last run is over and asked nothing")
    for interrupt in progress.interrupts:
        if interrupt.id in given:
            check_fit(interrupt, given[interrupt.id])
    resume = Resume(progress.interrupted_at, given, cancelled)
    return Launch(tuple(progress.inputs), resume, recovery=Recovery(policy))


def _lost_questions(session: Session) -> set[str]:
    """The questions that taking the run up would ask about calls nobody knows the end of."""
    every = [session.progress, *(branch.progress for branch in session.branches.values())]
    return {question_of(call, each).id for each in every for call in each.unanswered if call.open or call.lost}


def _check_known(progress: Progress, given: tuple[str, ...], asked: set[str]) -> None:
    for name in given:
        if name in progress.answers or name in progress.cancelled:
            raise InterruptError(f"interrupt {name!r} was settled before; it takes no second answer")
        if name not in asked:
            waiting = ", ".join(sorted(asked)) or "nothing"
            raise InterruptError(f"no interrupt {name!r} waits for an answer; waiting: {waiting}")
