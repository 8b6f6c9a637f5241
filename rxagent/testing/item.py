"""One marble block as a pytest item."""

import traceback
import types
import warnings
from pathlib import Path

import pytest

from rxagent.marble.faults import MarbleSyntaxError, Place, show_duration
from rxagent.marble.markdown import Fenced
from rxagent.marble.play import play
from rxagent.marble.reading import read_block
from rxagent.marble.update import CannotUpdate, updated_block, updated_text
from rxagent.marble.verdict import Verdict, judge, misaligned
from rxagent.marble.vocabulary import WORDS
from rxagent.testing.world import world

Pending = dict[Path, list[tuple[Fenced, str]]]
UPDATES = pytest.StashKey[Pending]()


class UnusedLegendWarning(UserWarning):
    """A legend gives a meaning to a symbol that no line uses."""


class MisalignedWarning(UserWarning):
    """Leading dots draw an input elsewhere than where it begins to play."""


class BlockFailed(AssertionError):
    """The block does not hold; the text is the whole report."""


class MarbleItem(pytest.Item):
    """A block: reads, plays and judges it."""

    fenced: Fenced
    setups: list[Fenced]

    def runtest(self) -> None:
        """Play the block; raise ``BlockFailed`` or ``MarbleSyntaxError`` if it does not hold."""
        block = read_block(self.fenced.text, self.fenced.place, self.fenced.title, WORDS)
        names = world()
        for setup in self.setups:
            run_setup(setup, names)
        verdict = judge(block, play(block, names))
        update = bool(self.config.getoption("--marble-update"))
        if verdict.holds and not (update and misaligned(block, verdict.played)):
            for entry in block.unused():
                _warn(UnusedLegendWarning(f"{entry.place}: nothing uses {entry.symbol}"), entry.place)
            for given, begins in misaligned(block, verdict.played):
                what = f"{given.name} begins at {show_duration(begins)}, and is drawn elsewhere"
                hint = "dots only align, - is a frame; --marble-update aligns"
                _warn(MisalignedWarning(f"{given.line.place}: {what} ({hint})"), given.line.place)
            return
        why_not = self._update(verdict) if update else None
        if why_not is not None or not update:
            raise BlockFailed("\n\n".join([verdict.headline, *([why_not] if why_not else []), block.text, *verdict.problems]))

    def _update(self, verdict: Verdict) -> str | None:
        """Note the block's new text for the end of the session, or say why there can be none."""
        if hasattr(self.config, "workerinput"):
            return "not updated: --marble-update rewrites files, which parallel workers can't; run it without -n"
        try:
            text = updated_block(verdict)
        except CannotUpdate as error:
            return str(error)
        self.config.stash.setdefault(UPDATES, Pending()).setdefault(self.path, []).append((self.fenced, text))
        return None

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: object = None) -> str:
        """The report alone, without a traceback of this plugin; pytest's ``style`` of tracebacks changes nothing."""
        error = excinfo.value
        if isinstance(error, BlockFailed | MarbleSyntaxError | UnusedLegendWarning | MisalignedWarning):
            return str(error)
        frames = traceback.extract_tb(error.__traceback__)
        own = next((n for n, frame in enumerate(frames) if frame.filename == __file__), 0)
        shown = "".join(traceback.format_list(frames[own + 1 :]))
        return f"{self.fenced.place}: the block could not be played\n{shown}{type(error).__name__}: {error}"

    def reportinfo(self) -> tuple[Path, int, str]:
        """Where the block stands."""
        return self.path, self.fenced.place.line - 1, self.name


def _warn(warning: Warning, place: Place) -> None:
    """Warn about a line of the Markdown file, not of this module."""
    warnings.warn_explicit(warning, None, place.file, place.line)


def run_setup(setup: Fenced, names: dict[str, object]) -> None:
    """Run a ``python setup`` block; what it defines can be used by the blocks below it."""
    padded = "\n" * (setup.place.line - 1) + setup.text
    module = types.ModuleType("marble_setup")  # classes and dataclasses look their module up
    names.setdefault("__name__", module.__name__)
    exec(compile(padded, setup.place.file, "exec"), names)  # noqa: S102 - the file is the test's own code


def shown_path(path: Path, config: pytest.Config) -> str:
    """``path`` relative to pytest's root where it lies below it."""
    try:
        return path.relative_to(config.rootpath).as_posix()
    except ValueError:
        return str(path)


def write_updates(config: pytest.Config) -> list[str]:
    """Rewrite the files whose blocks have new texts; gives a line on each block that was rewritten."""
    pending = config.stash.get(UPDATES, Pending())
    for path, changes in pending.items():
        with path.open(encoding="utf-8", newline="") as file:
            text = file.read()
        with path.open("w", encoding="utf-8", newline="") as file:
            file.write(updated_text(text, changes))
    return [f"{fenced.place.file}:{fenced.place.line}: {fenced.title}" for _, all_ in pending.items() for fenced, _ in all_]
