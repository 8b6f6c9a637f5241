"""Where the command writes: the answer on stdout, all else on stderr.

1. Nothing is coloured and no cursor is moved unless the stream is a terminal.
2. Two streams that end in one place share one line: a remark never starts in the middle of the answer.
3. On a terminal, control characters of a model's or a tool's text are shown, not obeyed.
"""

import os
import re
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TextIO

_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_STYLES = {"dim": "\x1b[2m", "red": "\x1b[31m", "green": "\x1b[32m", "plain": ""}
_RESET = "\x1b[0m"
_ERASE = "\r\x1b[K"


def say(line: str) -> None:
    """Writes one line to stderr, where nothing better is set up."""
    with suppress(OSError, ValueError):
        print(f"rxagent: {line}", file=sys.stderr, flush=True)


def let_go(stream: TextIO) -> None:
    """Points a stream whose reader has left nowhere, so that flushing it at exit raises nothing."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def open_missing() -> None:
    """Opens the standard streams that the process was started without (``>&-``): they lead nowhere."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):  # in this order they get their own numbers
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115 - for the life of the process


class Place:
    """Where one or two streams end: whether it stands at the start of a line."""

    def __init__(self) -> None:
        self.fresh = True
        self.has_status = False  # a line that the next text takes the place of
        self.writer: Pen | None = None  # who wrote last


class Pen:
    """Writes to one stream, at once. ``on_gone`` is called when its reader has left; from then on nothing is written."""

    def __init__(self, stream: TextIO, place: Place, on_gone: Callable[[], None]) -> None:
        self.stream = stream
        self.is_terminal = _is_terminal(stream)
        self.has_colour = self.is_terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        self._place = place
        self._on_gone = on_gone
        self._gone = False
        self.fault: str | None = None  # why nothing can be written any more, unless the reader left
        with suppress(OSError, ValueError):
            os.set_blocking(stream.fileno(), True)  # a parent may have left it otherwise; then writing a lot would fail
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")  # a lone surrogate, or a terminal that lacks the letters

    def write(self, text: str, style: str = "plain") -> None:
        """Writes text as it is, on a line of its own if somebody else began the present one."""
        if not text or self._gone:
            return
        if self._place.writer is not self:
            self.fresh()
            self._place.writer = self
        if self.is_terminal:
            text = _CONTROL.sub(_shown, text)
        self._place.fresh = text.endswith("\n")
        self._put(f"{_STYLES[style]}{text}{_RESET}" if self.has_colour and _STYLES[style] else text)

    def line(self, text: str, style: str = "plain") -> None:
        """Writes a line of its own."""
        self.fresh()
        self.write(text, style)
        self.fresh()

    def fresh(self) -> None:
        """Ends the line, if it has begun."""
        if not self._place.fresh:
            self._place.fresh = True
            self._put("\n")

    def status(self, text: str) -> None:
        """A line that the next text takes the place of; on a terminal only, and not in the middle of a line."""
        if self.is_terminal and self._place.fresh:
            self._put(f"{_STYLES['dim']}{text}{_RESET}" if self.has_colour else text)
            self._place.has_status = True

    def _put(self, text: str) -> None:
        if self._gone:
            return
        if self._place.has_status:
            self._place.has_status = False
            text = f"{_ERASE}{text}"
        try:
            self.stream.write(text)
            self.stream.flush()
        except (OSError, ValueError) as error:  # the reader left, or the disk is full: nothing further can be said here
            self._gone = True
            self.fault = error.strerror if isinstance(error, OSError) and not isinstance(error, BrokenPipeError) else None
            let_go(self.stream)
            self._on_gone()


class Terminal:
    """The two pens of the command. ``on_gone``: nobody reads the answer any more."""

    def __init__(self, on_gone: Callable[[], None], *, quiet: bool = False) -> None:
        def gone() -> None:
            if self.answer.fault is not None:
                self.error(f"the answer can't be written: {self.answer.fault}")
            on_gone()

        place = Place()
        self.answer = Pen(sys.stdout, place, gone)
        self.remarks = Pen(sys.stderr, place if _same(sys.stdout, sys.stderr) else Place(), _nothing)
        self._quiet = quiet

    def note(self, text: str, style: str = "dim") -> None:
        """A remark on a line of its own; none when quiet."""
        if not self._quiet:
            self.remarks.line(text, style)

    def thought(self, text: str) -> None:
        """A piece of the model's reasoning; none when quiet."""
        if not self._quiet:
            self.remarks.write(text, "dim")

    def status(self, text: str) -> None:
        """What is going on, where nothing else tells; none when quiet."""
        if not self._quiet:
            self.remarks.status(text)

    def error(self, text: str) -> None:
        """What went wrong, also when quiet."""
        self.remarks.line(f"rxagent: {text}", "red")


def _nothing() -> None:
    return None


def _shown(match: re.Match[str]) -> str:
    code = ord(match[0])
    return chr(0x2400 + code) if code < 0x20 else "\u2421" if code == 0x7F else "\ufffd"


def _is_terminal(stream: TextIO) -> bool:
    try:
        return stream.isatty()
    except ValueError:  # closed
        return False


def _same(one: TextIO, other: TextIO) -> bool:
    try:
        a, b = os.fstat(one.fileno()), os.fstat(other.fileno())
    except (OSError, ValueError):
        return False
    return (a.st_dev, a.st_ino) == (b.st_dev, b.st_ino)
