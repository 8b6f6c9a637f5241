"""The columns that lines of marbles are drawn in: one for each frame, long quiet stretches folded into one."""

from dataclasses import dataclass

from rxagent.marble.faults import show_duration
from rxagent.marble.notation import QUIET

FOLD = 16  # quiet frames in a row that become a fold
_TICK = 5
_LABEL = 10


@dataclass(frozen=True, slots=True)
class Column:
    """One column: the instant it stands for (nanoseconds), or a fold, with its length in nanoseconds."""

    at: int
    fold: int = 0

    @property
    def text(self) -> str:
        """What a fold looks like in a line of text."""
        return f" {show_duration(self.fold)} " if self.fold else QUIET


@dataclass(frozen=True, slots=True)
class Axis:
    """Columns in order. Instants between two frames have a column of their own."""

    columns: tuple[Column, ...]
    frame: int

    def column(self, instant: int) -> int:
        """The number of the column of ``instant``."""
        return next((n for n, c in enumerate(self.columns) if not c.fold and c.at >= instant), len(self.columns))

    def place(self, instant: int) -> int:
        """Where the column of ``instant`` begins in a line of text."""
        return sum(len(c.text) for c in self.columns[: self.column(instant)])

    def draw(self, symbols: dict[int, str]) -> str:
        """A line of text with each symbol in the column of its instant."""
        return "".join(c.text if c.fold else symbols.get(c.at, QUIET) for c in self.columns)

    def labelled(self, n: int) -> bool:
        """Whether column ``n`` is one that a ruler names: every tenth frame, and the first after a fold."""
        column = self.columns[n]
        after_fold = n > 0 and self.columns[n - 1].fold > 0
        return not column.fold and (column.at % (self.frame * _LABEL) == 0 or after_fold)


def axis_of(instants: list[int], frame: int) -> Axis:
    """The axis from zero (or the first instant, if that is earlier) to the last instant."""
    columns: list[Column] = []
    at = min(0, *instants) if instants else 0
    at -= at % frame
    for instant in sorted(set(instants)):
        quiet = (instant - at) // frame
        if quiet > FOLD:
            columns.append(Column(at, quiet * frame))
            at += quiet * frame
        while at < instant:
            columns.append(Column(at))
            at += frame
        columns.append(Column(instant))
        at = max(at, instant - instant % frame + frame)
    return Axis(tuple(columns), frame)


def ruler(axis: Axis) -> tuple[str, str]:
    """Two lines of text above a drawing: times, and ticks at every fifth and tenth frame."""
    labels = ticks = ""
    for n, column in enumerate(axis.columns):
        place = len(ticks)
        if axis.labelled(n) and len(labels) <= place:
            labels = labels.ljust(place) + show_duration(column.at) + " "
            ticks += "|"
        elif not column.fold and column.at % (axis.frame * _TICK) == 0:
            ticks += ":"
        else:
            ticks += " " * len(column.text) if column.fold else "."
    return labels.rstrip(), ticks
