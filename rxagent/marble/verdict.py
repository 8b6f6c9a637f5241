"""The verdict on a played block: each expected line compared, then state and leftovers."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast

from rxagent.marble.block import OUT, Block, Expected, Input, StateRow
from rxagent.marble.diff import Comparison, compare, report
from rxagent.marble.faults import MarbleSyntaxError, show_duration
from rxagent.marble.legend import Literal, Pattern, Slot
from rxagent.marble.matching import fits, look_up
from rxagent.marble.meaning import Failure, Legend, describe_happening
from rxagent.marble.notation import ALIGN
from rxagent.marble.play import Played, ended_how
from rxagent.marble.streams import Timed
from rxagent.marble.views import VIEWS, view

NOTHING, ANYTHING = "nothing", "anything"


@dataclass(slots=True)
class Verdict:
    """What is wrong with a block, as paragraphs to print; none means it holds."""

    block: Block
    played: Played
    comparisons: list[Comparison] = field(default_factory=list[Comparison])
    problems: list[str] = field(default_factory=list[str])

    @property
    def headline(self) -> str:
        """The first problem in one line."""
        first = next((c for c in self.comparisons if c.difference is not None), None)
        if first is not None and first.difference is not None:
            return f"{first.name} {first.difference.sentence}"
        if self.played.raised is not None:  # behind the indented frames stands what was raised
            return next((line for line in self.played.raised.splitlines() if line[:1].strip()), "the pipeline raised")
        return self.problems[0].strip().splitlines()[0].strip() if self.problems else ""

    @property
    def holds(self) -> bool:
        """Whether everything expected is so."""
        return not self.problems


def judge(block: Block, played: Played) -> Verdict:
    """Compare what is expected with what came. Raises ``MarbleSyntaxError`` for a line that names nothing."""
    verdict = Verdict(block, played)
    if played.raised is not None:
        verdict.problems.append(f"{block.expression_place}: the pipeline raised\n{_indent(played.raised)}")
        return verdict
    assert played.legend is not None
    if not (block.expected or block.states or block.left):
        verdict.problems.append(f"{block.place}: nothing is expected; write what should come out below the expression")
    for expected in block.expected:
        want = [(mark.at, mark.symbol) for mark in expected.line.marks]
        comparison = compare(expected.name, want, came(expected, block, played), played.legend)
        verdict.comparisons.append(comparison)
        if comparison.difference is not None:
            verdict.problems.append("\n".join([f"{expected.place}:", *report(comparison)]))
    verdict.problems += _unexpected_failures(block, played)
    for row in block.states:
        verdict.problems += _judge_state(row, played, played.legend)
    verdict.problems += _judge_end(block, played)
    if verdict.problems and played.waiting:
        verdict.problems.append(f"{ended_how(played)}; still waiting:\n" + _indent("\n".join(played.waiting)))
    return verdict


def _unexpected_failures(block: Block, played: Played) -> list[str]:
    """Failures of results that no expected line is about; a view would hide them."""
    told = {e.name for e in block.expected}
    problems: list[str] = []
    for name, events in played.outputs.items():
        if name not in told and not (name == OUT and "events" in told):
            for at, happening in events:
                if isinstance(happening, Failure):
                    problems.append(
                        f"{block.expression_place}: {name} failed at {show_duration(at)}: {describe_happening(happening)}"
                    )
    return problems


def came(expected: Expected, block: Block, played: Played) -> list[Timed]:
    """What came on the line that ``expected`` is about."""
    if expected.of_input:
        if expected.name in played.outputs:
            raise MarbleSyntaxError(expected.place, f"{expected.name} is an input and a result; give the result another name")
        return played.subscriptions.get(expected.name, [])
    if expected.name in played.outputs:
        return played.outputs[expected.name]
    if expected.name in VIEWS and OUT in played.outputs:
        return view(expected.name, played.outputs[OUT])
    if expected.name == "events" and OUT in played.outputs:
        return played.outputs[OUT]
    known = [*played.outputs, *block.input_names, *([*VIEWS, "events"] if OUT in played.outputs else [])]
    raise MarbleSyntaxError(expected.place, f"nothing is called {expected.name}; expected one of {', '.join(known)}")


def final_state(played: Played) -> object:
    """The state that the block's result ended with, or None if it has none."""
    result = played.result
    if isinstance(result, Mapping):
        return cast("Mapping[object, object]", result).get("state")
    return getattr(result, "state", None)


def misaligned(block: Block, played: Played) -> list[tuple[Input, int]]:
    """Inputs whose leading dots draw them elsewhere than where they began to play (nanoseconds).

    With a gap on some line columns are no measure of time any more, so nothing is said then.
    """
    lines = [i.line for i in block.inputs.values()] + [e.line for e in block.expected]
    if any(line.length != block.scale * sum(c not in ALIGN for c in line.text) for line in lines):
        return []
    found: list[tuple[Input, int]] = []
    for name, given in block.inputs.items():
        drawn = (len(given.line.text) - len(given.line.text.lstrip("".join(ALIGN)))) * block.scale
        began = next((at for at, _ in played.subscriptions.get(name, [])), None)
        if drawn and began is not None and began != drawn and not given.hot:
            found.append((given, began))
    return found


def _judge_state(row: StateRow, played: Played, legend: Legend) -> list[str]:
    state = final_state(played)
    if state is None:
        raise MarbleSyntaxError(row.place, "the expression's result has no state; expected a run or an agent")
    problems: list[str] = []
    for path, slot in row.fields:
        try:
            value = look_up(state, path)
        except LookupError as error:
            problems.append(f"{row.place}: state: {error}")
            continue
        if not fits(slot, value, legend.evaluate):
            problems.append(f"{row.place}: state: wanted {path} {_show(slot)}, got {value!r:.200}")
    return problems


def _show(slot: Slot) -> str:
    if isinstance(slot, Literal):
        return f"= {slot.source}"
    return f"~ /{slot.regex.pattern}/" if isinstance(slot, Pattern) else "*"


def _judge_end(block: Block, played: Played) -> list[str]:
    problems: list[str] = []
    if played.cut:
        problems.append(
            f"{block.place}: the block never ended and was cut at {show_duration(played.at)} of virtual time; "
            "say when the observation ends (until 200ms), or dispose it (observe ^---!)"
        )
    wanted, place = block.left or (NOTHING, block.place)
    left = ", ".join(played.left) or NOTHING
    if not played.cut and wanted not in (ANYTHING, left):
        problems.append(
            f"{place}: left over after everything was disposed: wanted {wanted}, got {left}"
            + ("" if block.left else "  (a block that may leave something says so:  left anything)")
        )
    return problems


def _indent(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.splitlines())
