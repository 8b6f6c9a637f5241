"""`markdown_blocks`: Markdown as finished blocks and the open tail, so that a view redraws the tail alone."""

from collections.abc import Callable

from reactivex import Observable, abc

from rxagent.messages import Transcript
from rxagent.operators.markdown_splitter import Splitter
from rxagent.operators.prose import Prose, Reader, reading
from rxagent.operators.withdrawn import Withdrawn


class MarkdownText:
    """Markdown so far: ``blocks`` are finished and never change, ``tail`` is what may still change.

    Blocks and tail joined are the text as it came. Successive values share their blocks; the tail
    is joined when it is read.
    """

    __slots__ = ("_count", "_pieces", "blocks")

    def __init__(self, blocks: Transcript[str], pieces: list[str], count: int) -> None:
        self.blocks = blocks
        self._pieces = pieces
        self._count = count

    @property
    def tail(self) -> str:
        """The open block."""
        return "".join(self._pieces[: self._count])

    @property
    def text(self) -> str:
        """All of it."""
        return "".join(self.blocks) + self.tail

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, MarkdownText):
            return NotImplemented
        return self.blocks == other.blocks and self.tail == other.tail

    def __hash__(self) -> int:
        return hash((self.blocks, self.tail))

    def __repr__(self) -> str:
        return f"MarkdownText(blocks={list(self.blocks)!r}, tail={self.tail!r})"


def markdown_blocks() -> Callable[[Observable[Prose]], Observable[MarkdownText]]:
    """Markdown as finished blocks and the open tail, after each piece; from pieces of text or from events.

        ─# Hi\\n─so─me\\n\\n─te─xt──|
        markdown_blocks()
        ─1:───────1:so─2:──2:te─2:text─3:|      number of blocks : tail

    A block is finished when nothing that follows can change how it looks, each drawn by itself: after
    the blank line of a paragraph, quote or table, after the fence that closes code, after the line of
    a heading; a list, when something else begins. References to links defined in other blocks are the
    exception. The end of an answer, and the end, also before an error, finish the tail. Text that is
    withdrawn is gone from the next value. Put `flow.conflate` behind it.
    """
    return reading(_Blocks)


class _Blocks(Reader):
    def __init__(self, observer: abc.ObserverBase[MarkdownText]) -> None:
        self._emit = observer.on_next
        self._blocks: Transcript[str] = Transcript()
        self._splitter = Splitter()

    def take(self, text: str) -> None:
        if text:
            for block in self._splitter.feed(text):
                self._blocks = self._blocks.append(block)
            self._show()

    def withdraw(self, remark: Withdrawn) -> None:
        blocks, kept = list(self._blocks), self._splitter.rest()
        void = remark.characters
        while void > len(kept) and blocks:
            kept = blocks.pop() + kept
        if blocks:  # it may have been finished by what followed, which is gone
            kept = blocks.pop() + kept
        self._blocks = Transcript(blocks)
        self._splitter = Splitter()
        for block in self._splitter.feed(kept[: max(0, len(kept) - void)]):
            self._blocks = self._blocks.append(block)
        self._show()

    def end(self) -> None:
        finished = self._splitter.end()
        for block in finished:
            self._blocks = self._blocks.append(block)
        if finished:
            self._show()

    def _show(self) -> None:
        pieces = self._splitter.pieces
        self._emit(MarkdownText(self._blocks, pieces, len(pieces)))
