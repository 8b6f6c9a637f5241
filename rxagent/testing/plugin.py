"""The pytest plugin: every ``marble`` block of a Markdown file is a test.

- Costs nothing where there are no marbles: this module imports pytest alone until a file matches.
- Which files: the ini option ``marble_files`` (default ``marbles/*.md``), and any named on the command line.
- ``--marble-update`` rewrites the expected lines of blocks that fail.
"""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatch
from pathlib import Path

import pytest

_DEFAULT = ["marbles/*.md", "*/marbles/*.md"]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the option and the setting."""
    group = parser.getgroup("rxagent", "marble specifications")
    group.addoption(
        "--marble-update", action="store_true", default=False, help="rewrite the expected lines of failing marble blocks"
    )
    parser.addini("marble_files", "globs, relative to the root, of Markdown files with marble blocks", "args", _DEFAULT)


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect Markdown files that hold marble blocks."""
    if file_path.suffix != ".md" or not _wanted(file_path, parent.config):
        return None
    if "marble" not in file_path.read_text(encoding="utf-8", errors="replace"):
        return None
    return MarbleFile.from_parent(parent, path=file_path)  # pyright: ignore[reportUnknownMemberType] pytest leaves **kw untyped


def _wanted(path: Path, config: pytest.Config) -> bool:
    if any(Path(arg.partition("::")[0]).absolute() == path for arg in config.args):
        return True
    try:
        relative = path.relative_to(config.rootpath).as_posix()
    except ValueError:
        return False
    globs: list[str] = config.getini("marble_files")
    return any(fnmatch(relative, glob) for glob in globs)


class MarbleFile(pytest.File):
    """A Markdown file; its items are its marble blocks."""

    def collect(self) -> Iterable[pytest.Item]:
        """An item for each block, named by its heading."""
        from rxagent.marble.faults import MarbleSyntaxError, Place
        from rxagent.marble.markdown import read_document
        from rxagent.testing.item import MarbleItem, shown_path

        shown = shown_path(self.path, self.config)
        try:
            document = read_document(self.path.read_text(encoding="utf-8"), shown)
        except UnicodeDecodeError as error:
            before = error.object[: error.start].decode()
            place = Place(shown, before.count("\n") + 1, len(before) - before.rfind("\n"))
            raise self.CollectError(f"{place}: this is no UTF-8 text: {error.reason}") from None
        except MarbleSyntaxError as error:
            raise self.CollectError(str(error)) from None
        for fenced in document.blocks:
            setups = [s for s in document.setups if s.place.line < fenced.place.line]
            item = MarbleItem.from_parent(self, name=fenced.title)  # pyright: ignore[reportUnknownMemberType]
            item.fenced, item.setups = fenced, setups
            yield item


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Write what ``--marble-update`` changed, and say so."""
    if config.getoption("--marble-update"):
        from rxagent.testing.item import write_updates

        rewritten = write_updates(config)
        if rewritten:
            terminalreporter.section("marble blocks rewritten")
            for line in rewritten:
                terminalreporter.line(line)
