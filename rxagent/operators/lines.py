"""`lines`: text as whole lines."""

from collections.abc import Callable

from reactivex import Observable, abc

from rxagent.operators.prose import Prose, Reader, reading
from rxagent.operators.withdrawn import Withdrawn


def lines() -> Callable[[Observable[Prose]], Observable[str]]:
    r"""Text as whole lines, without their ends (``\n`` or ``\r\n``), from pieces of text or from events.

        ─a─b\nc─\n──d─|
        lines()
        ───ab───c────d|

    What is left at the end is a line, also before an error; from events also the end of each answer.
    Withdrawn text that was no whole line yet is taken back unseen; if lines of it were shown, one
    `Withdrawn` follows, whose ``characters`` count those lines with their ends.
    """
    return reading(_Lines)


class _Lines(Reader):
    def __init__(self, observer: abc.ObserverBase[str]) -> None:
        self._emit = observer.on_next
        self._pieces: list[str] = []

    def take(self, text: str) -> None:
        *whole, rest = text.split("\n")
        for line in whole:
            pieces = [*self._pieces, line]
            self._pieces.clear()
            self._emit("".join(pieces).removesuffix("\r"))
        if rest:
            self._pieces.append(rest)

    def withdraw(self, remark: Withdrawn) -> None:
        tail = "".join(self._pieces)
        self._pieces.clear()
        if remark.characters > len(tail):
            self._emit(Withdrawn(remark, remark.characters - len(tail)))
        elif kept := tail[: len(tail) - remark.characters]:
            self._pieces.append(kept)

    def end(self) -> None:
        if self._pieces:
            line = "".join(self._pieces)
            self._pieces.clear()
            self._emit(line)
