"""`Once`: shows a growing text that may be withdrawn and start again, so that nothing of it stands there twice."""

from collections.abc import Callable


class Once:
    """Writes the pieces of one answer.

    After a withdrawal the answer starts again, mostly with the same words: what is shown already is
    not written again. Only where the new answer differs, ``restart`` is called with the
    text that is void, and all of the new answer is written.

    Args:
        write: shows text behind what is shown.
        restart: marks what is shown of the answer as void.
    """

    def __init__(self, write: Callable[[str], None], restart: Callable[[str], None]) -> None:
        self._write = write
        self._restart = restart
        self._shown: list[str] = []
        self._void = ""
        self._matched = 0

    def piece(self, text: str) -> None:
        """More of the answer."""
        if self._void:
            self._match(text)
        else:
            self._show(text)

    def withdraw(self) -> None:
        """What came of the answer is void; it starts again."""
        if not self._void:
            self._void = "".join(self._shown)
            self._shown = []
        self._matched = 0

    def end(self, *, failed: bool = False) -> None:
        """The answer is complete. A failed one leaves standing what is shown."""
        if self._void and not failed:
            self._begin_anew("")
        self._void, self._matched, self._shown = "", 0, []

    def _match(self, text: str) -> None:
        at = self._matched
        if not self._void.startswith(text[: len(self._void) - at], at):
            self._begin_anew(text)
            return
        self._matched = at + len(text)
        if self._matched >= len(self._void):
            void, self._void = self._void, ""
            self._shown = [void]
            self._show(text[len(void) - at :])

    def _begin_anew(self, text: str) -> None:
        void, self._void = self._void, ""
        self._restart(void)
        self._show(void[: self._matched] + text)

    def _show(self, text: str) -> None:
        if text:
            self._shown.append(text)
            self._write(text)
