"""What a type checker makes of every public operator, in a pipe. Checked by pyright; run, it only makes the pipes."""

from typing import assert_type

import reactivex as rx
from pydantic import BaseModel
from reactivex import Observable

from rxagent import events as e
from rxagent import operators as ops
from rxagent.messages import AnyMessage, Transcript, Usage
from rxagent.state import AgentState

source: Observable[e.AnyEvent] = rx.empty()


def test_every_operator_keeps_its_type_in_a_pipe() -> None:
    assert_type(source.pipe(ops.text_deltas()), Observable[str])
    assert_type(source.pipe(ops.text_deltas(withdrawn="", between="\n")), Observable[str])
    assert_type(source.pipe(ops.thinking_deltas()), Observable[str])
    assert_type(source.pipe(ops.tool_call_deltas()), Observable[ops.CallDelta])
    assert_type(source.pipe(ops.messages()), Observable[AnyMessage])
    assert_type(source.pipe(ops.transcript()), Observable[Transcript[AnyMessage]])
    assert_type(source.pipe(ops.final_text()), Observable[str])
    assert_type(source.pipe(ops.pending_tool_calls()), Observable[tuple[e.ToolStart, ...]])
    assert_type(source.pipe(ops.tool_executions()), Observable[Observable[e.ToolStart | e.ToolUpdate | e.ToolEnd]])
    assert_type(source.pipe(ops.live_messages()), Observable[Observable[AnyMessage]])
    assert_type(source.pipe(ops.turns()), Observable[e.TurnEnd])
    assert_type(source.pipe(ops.usage()), Observable[Usage])
    assert_type(source.pipe(ops.states(AgentState())), Observable[AgentState])
    assert_type(source.pipe(ops.by_agent("main")), Observable[e.AnyEvent])
    assert_type(source.pipe(ops.by_agent(("main", "expert"))), Observable[e.AnyEvent])
    assert_type(source.pipe(ops.verify()), Observable[e.AnyEvent])
    assert_type(source.pipe(ops.verify_run()), Observable[e.AnyEvent])


def test_what_reads_text_takes_events_and_pieces() -> None:
    text: Observable[str] = rx.of("a")
    assert_type(source.pipe(ops.lines()), Observable[str])
    assert_type(text.pipe(ops.lines()), Observable[str])
    assert_type(source.pipe(ops.sentences(longest=200)), Observable[str])
    assert_type(source.pipe(ops.text_deltas(), ops.sentences()), Observable[str])
    assert_type(source.pipe(ops.markdown_blocks()), Observable[ops.MarkdownText])
    assert_type(text.pipe(ops.markdown_blocks()), Observable[ops.MarkdownText])


def test_what_watches_a_run() -> None:
    assert_type(source.pipe(ops.elapsed(0.1)), Observable[float])
    assert_type(source.pipe(ops.progress()), Observable[ops.Progress])
    assert_type(source.pipe(ops.until_idle()), Observable[e.AnyEvent])
    assert_type(source.pipe(ops.record()), Observable[ops.Recording])
    assert_type(ops.merge_runs(source, source), Observable[e.AnyEvent])


class Person(BaseModel):
    name: str


def test_partial_values_have_the_type_that_was_asked_for() -> None:
    assert_type(source.pipe(ops.partial_json(Person)), Observable[Person])
    assert_type(source.pipe(ops.partial_json(list[Person], tool="add", period=0.1)), Observable[list[Person]])
    assert_type(source.pipe(ops.partial_json(Person | None)), Observable[Person | None])


def test_of_type_narrows_to_classes_and_to_unions() -> None:
    assert_type(source.pipe(ops.of_type(e.ToolStart)), Observable[e.ToolStart])
    assert_type(source.pipe(ops.of_type(e.ToolStart, e.MessageEnd)), Observable[e.ToolStart | e.MessageEnd])
    assert_type(source.pipe(ops.of_type(e.ToolLevel)), Observable[e.ToolStart | e.ToolUpdate | e.ToolEnd])
    assert_type(source.pipe(ops.of_type(e.TurnLevel, e.ToolEnd)), Observable[e.TurnStart | e.TurnEnd | e.ToolEnd])


def test_operators_chain() -> None:
    chained = source.pipe(ops.by_agent("main"), ops.verify(), ops.tool_executions())
    assert_type(chained, Observable[Observable[e.ToolStart | e.ToolUpdate | e.ToolEnd]])
