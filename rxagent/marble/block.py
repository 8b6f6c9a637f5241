"""A marble block as parsed: its inputs, its expression, what is expected of it.

scale    10ms                 how long a column lasts (10ms if not said)
until    1s                   when the observation ends, if nothing ends it before
from my.package import thing  names for the expression
source   -a-b|                an input: cold; with ^ it is hot, and ^ is time zero
source.2 -c|                  what its second subscriber gets
observe  --^---!              when the result is subscribed, and disposed
> source.pipe(thing())        one Python expression; further > lines continue it
out      -A-B|                what comes out
source   ^---!                when the input was subscribed, = held and disposed
state    is_streaming=False   what the final state says
left     nothing              what is left over afterwards
where    a = 1   b = 2        what the symbols stand for
"""

from dataclasses import dataclass, field

from rxagent.marble.faults import Place
from rxagent.marble.legend import Entry, Group, Slot
from rxagent.marble.notation import Line

DEFAULT_SCALE = 10_000_000  # nanoseconds
OUT = "out"


@dataclass(frozen=True, slots=True)
class Input:
    """An input line. ``zero`` is the instant, in the line's own time, that is the block's time zero."""

    name: str
    line: Line
    hot: bool
    zero: int


@dataclass(frozen=True, slots=True)
class Window:
    """When the result is subscribed and disposed, in nanoseconds."""

    subscribe: int = 0
    dispose: int | None = None


@dataclass(frozen=True, slots=True)
class Expected:
    """An expected line; ``of_input`` when it tells of an input's subscription."""

    name: str
    line: Line
    place: Place
    of_input: bool


@dataclass(frozen=True, slots=True)
class StateRow:
    """What the final state is expected to say."""

    fields: tuple[tuple[str, Slot], ...]
    place: Place


@dataclass(slots=True)
class Block:
    """A parsed block. ``place`` is that of its first line, ``title`` its heading."""

    title: str
    place: Place
    text: str
    scale: int = DEFAULT_SCALE
    until: int | None = None
    imports: list[tuple[str, Place]] = field(default_factory=list[tuple[str, Place]])
    inputs: dict[str, Input] = field(default_factory=dict[str, Input])
    windows: dict[str, Window] = field(default_factory=dict[str, Window])
    expression: str = ""
    expression_place: Place = field(default_factory=lambda: Place("", 1))
    expected: list[Expected] = field(default_factory=list[Expected])
    states: list[StateRow] = field(default_factory=list[StateRow])
    left: tuple[str, Place] | None = None
    legend: dict[str, Entry] = field(default_factory=dict[str, Entry])

    @property
    def input_names(self) -> tuple[str, ...]:
        """The inputs, each once, in the order in which they stand."""
        return tuple(dict.fromkeys(name.partition(".")[0] for name in self.inputs))

    def expand(self, symbol: str) -> tuple[str, ...]:
        """The symbols that ``symbol`` stands for: its members if it is a group, else itself."""
        entry = self.legend.get(symbol)
        return entry.meaning.symbols if entry and isinstance(entry.meaning, Group) else (symbol,)

    def unused(self) -> list[Entry]:
        """The entries of the legend that no line uses."""
        lines = [i.line for i in self.inputs.values()] + [e.line for e in self.expected]
        used = {m.symbol for line in lines for m in line.marks}
        used |= {member for symbol in used for member in self.expand(symbol)}
        return [entry for symbol, entry in self.legend.items() if symbol not in used]
