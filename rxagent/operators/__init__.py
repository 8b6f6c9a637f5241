"""The consumer's vocabulary: operators over agent events, as ``from rxagent import operators as ops``.

1. Each is a function that returns an operator for ``pipe``; none has side effects, none subscribes by itself.
2. Each calls its observer within the source's call, so holds reach the run.
3. They speak of the agents the stream is about, not of agents that run as their tools: for those, put
   `by_agent` first.
"""

from rxagent.operators.elapsed import elapsed
from rxagent.operators.folds import states, turns, usage
from rxagent.operators.inner import live_messages, tool_executions
from rxagent.operators.kit import Operator
from rxagent.operators.lines import lines
from rxagent.operators.markdown_blocks import MarkdownText, markdown_blocks
from rxagent.operators.merge_runs import merge_runs
from rxagent.operators.messages import final_text, messages, transcript
from rxagent.operators.partial_json import partial_json
from rxagent.operators.pending_tool_calls import pending_tool_calls
from rxagent.operators.progress import Phase, Progress, progress
from rxagent.operators.record import Recording, record
from rxagent.operators.selections import by_agent, of_type
from rxagent.operators.sentences import sentences
from rxagent.operators.text_deltas import text_deltas, thinking_deltas
from rxagent.operators.tool_call_deltas import CallDelta, tool_call_deltas
from rxagent.operators.until_idle import until_idle
from rxagent.operators.verify import check, check_run, verify, verify_run
from rxagent.operators.withdrawn import Withdrawn

__all__ = [
    "CallDelta",
    "MarkdownText",
    "Operator",
    "Phase",
    "Progress",
    "Recording",
    "Withdrawn",
    "by_agent",
    "check",
    "check_run",
    "elapsed",
    "final_text",
    "lines",
    "live_messages",
    "markdown_blocks",
    "merge_runs",
    "messages",
    "of_type",
    "partial_json",
    "pending_tool_calls",
    "progress",
    "record",
    "sentences",
    "states",
    "text_deltas",
    "thinking_deltas",
    "tool_call_deltas",
    "tool_executions",
    "transcript",
    "turns",
    "until_idle",
    "usage",
    "verify",
    "verify_run",
]
