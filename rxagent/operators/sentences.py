"""`sentences`: text as sentences, as soon as each is complete; for speech."""

import re
from collections.abc import Callable

from reactivex import Observable, abc

from rxagent.errors import UsageError
from rxagent.operators.prose import Prose, Reader, reading
from rxagent.operators.withdrawn import Withdrawn

_CLOSERS = "\"'”’»)]*_"
_CJK_CLOSERS = "”’」』）"
_STOPS, _CJK_STOPS = ".!?…", "。！？．"
_MARKER = r"(?:[-*+•>]|\d{1,3}[.)]|\#{1,6})\s"
# Where a sentence may end. Each alternative needs the character after it, so that nothing is decided too early;
# none looks at a character twice, so that no input makes it slow.
_END = re.compile(
    rf"""(?<![{_STOPS}])(?P<stop>[{_STOPS}]++[{re.escape(_CLOSERS)}]*+)(?=\s)
    | (?<![{_CJK_STOPS}])[{_CJK_STOPS}]++[{_CJK_CLOSERS}]*+(?=.)
    | \n[ \t]*+\n                        # a blank line
    | \n(?=[ \t]*+{_MARKER})              # the next item of a list, a heading
    """,
    re.VERBOSE | re.DOTALL,
)
_CANDIDATE = re.compile(rf"[{_STOPS}{_CJK_STOPS}\n]")
# What may be the beginning of an end that the next piece decides.
_UNDECIDED = _STOPS + _CJK_STOPS + _CLOSERS + _CJK_CLOSERS + " \t\r\n-+•>#0123456789"
_HEADING = re.compile(r"\s*\#{1,6}\s")
_NUMBER = re.compile(r"(?:^|\n)\s*\d{1,3}$")  # "1." begins an item of a list
_INITIAL = re.compile(r"(?:^|[\s(.])[^\W\d_I]$")  # one letter: "J. Smith", "e.g.", "U.S."; but "you and I."
_ENGLISH = "mr mrs ms dr prof sr jr st vs approx dept fig inc ltd vol cf pp resp"
_GERMAN = "bzw ca evtl ggf inkl nr str tel usw vgl hr fr"
_ABBREVIATIONS = frozenset(f"{_ENGLISH} {_GERMAN}".split())
_AFTER = 16  # characters after the longest sentence that may be needed to see that it ends there


def sentences(*, longest: int = 500) -> Callable[[Observable[Prose]], Observable[str]]:
    """Text as sentences, without the space around them, from pieces of text or from events.

        ─Hi th─ere. H─ow are y─ou?─|
        sentences()
        ─────────Hi there.─────────How are you?|

    Sentences end at ``. ! ? …`` before a space (not after abbreviations, initials and numbers of a list),
    at ``。！？``, at blank lines and before items of lists and headings. Of what never ends, pieces of at
    most ``longest`` characters are cut at a space. What is left at the end is a sentence, also before an
    error; from events also at the end of each answer. Withdrawals as in `lines`.

    Raises:
        UsageError: ``longest`` is less than 1.
    """
    if longest < 1:
        raise UsageError(f"sentences: longest is a number of characters and must be at least 1, not {longest}")
    return reading(lambda observer: _Sentences(observer, longest))


class _Sentences(Reader):
    def __init__(self, observer: abc.ObserverBase[str], longest: int) -> None:
        self._emit = observer.on_next
        self._longest = longest
        self._tail = ""
        self._scanned = 0  # no sentence ends before here

    def take(self, text: str) -> None:
        before = len(self._tail)
        self._tail += text
        if self._scanned == before and before + len(text) <= self._longest and not _CANDIDATE.search(text):
            self._scanned += len(text)
            return
        at = 0
        while (cut := self._end(at)) is not None:
            self._say(self._tail[at:cut])
            at = self._scanned = cut
        if at:
            self._tail = self._tail[at:]
            self._scanned -= at

    def withdraw(self, remark: Withdrawn) -> None:
        left = len(self._tail) - remark.characters
        self._tail = self._tail[: max(0, left)]
        self._scanned = 0
        if left < 0:
            self._emit(Withdrawn(remark, -left))

    def end(self) -> None:
        sentence, self._tail, self._scanned = self._tail, "", 0
        self._say(sentence)

    def _say(self, sentence: str) -> None:
        sentence = sentence.strip()
        if sentence:
            self._emit(sentence)

    def _end(self, at: int) -> int | None:
        """Where the sentence that begins at ``at`` ends, if that can be told yet."""
        tail, limit = self._tail, at + self._longest
        if (heading := _HEADING.match(tail, at, limit)) and (line := tail.find("\n", heading.end(), limit)) >= 0:
            return line + 1
        for match in _END.finditer(tail, self._scanned, limit + _AFTER):
            if match.end() <= limit and not _goes_on(tail, at, match):
                return match.end()
        if len(tail) > limit:
            space = max(tail.rfind(" ", at, limit), tail.rfind("\n", at, limit)) + 1
            return space if tail[at:space].strip() else limit
        undecided = at + len(tail[at:].rstrip(_UNDECIDED))
        self._scanned = max(self._scanned, undecided if _CANDIDATE.search(tail, undecided) else len(tail))
        return None


def _goes_on(tail: str, at: int, match: re.Match[str]) -> bool:
    """Whether a full stop ends an abbreviation or a number rather than a sentence."""
    stop = match["stop"]
    if stop is None or not stop.startswith(".") or stop.startswith(".."):
        return False
    before = tail[max(at, match.start() - _AFTER) : match.start()]
    words = before.split()
    word = words[-1].lstrip("(\"'„“").lower() if words and not before[-1].isspace() else ""
    return bool(_INITIAL.search(before) or _NUMBER.search(before) or word in _ABBREVIATIONS)
