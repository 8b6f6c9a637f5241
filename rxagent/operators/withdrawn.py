"""`Withdrawn`: how a stream of text says that what it showed of an answer is taken back."""

from typing import Self

AGAIN = "\n[withdrawn; the answer starts again]\n"


class Withdrawn(str):
    """A piece of text that stands where text is taken back.

    As text it is a remark, so that a plain consumer sees what happened. A consumer that can take
    text back looks for the type: the last ``characters`` characters of the answer are void.
    """

    __slots__ = ("characters",)
    characters: int

    def __new__(cls, text: str, characters: int) -> Self:
        """``characters``: how many were shown of the withdrawn attempt."""
        self = super().__new__(cls, text)
        self.characters = characters
        return self

    def __repr__(self) -> str:
        return f"Withdrawn({str(self)!r}, {self.characters})"

    def __reduce__(self) -> tuple[type["Withdrawn"], tuple[str, int]]:
        return Withdrawn, (str(self), self.characters)
