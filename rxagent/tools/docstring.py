"""What a function's docstring says of it and of its parameters: Google, NumPy and Sphinx style."""

import inspect
import re
import textwrap
from collections.abc import Callable

_SECTION = re.compile(
    r"^(?:(?:Args|Arguments|Parameters|Params|Returns?|Raises|Yields?|Examples?|Notes?):\s*$"  # Google
    r"|(?:Parameters|Returns|Raises|Yields|Examples|Notes)\n-{3,}\s*$"  # NumPy
    r"|:\w+.*:)",  # Sphinx
    re.MULTILINE,
)
_GOOGLE = re.compile(r"^(?:Args|Arguments|Parameters|Params):[ \t]*\n((?:(?:[ \t]+.*)?(?:\n|\Z))+)", re.MULTILINE)
_GOOGLE_ENTRY = re.compile(r"^\*{0,2}(\w+)[ \t]*(?:\([^)]*\))?:[ \t]*(.*(?:\n(?:[ \t]+.*)?)*)", re.MULTILINE)
_NUMPY = re.compile(r"^Parameters\n-{3,}[ \t]*\n((?:(?!\w+\n-{3,}).*(?:\n|\Z))+?)(?=^\w+\n-{3,}|\Z)", re.MULTILINE)
_NUMPY_ENTRY = re.compile(r"^(\w+)(?:[ \t]*:.*)?\n((?:[ \t]+.*(?:\n|\Z)|\n)+)", re.MULTILINE)
_SPHINX_ENTRY = re.compile(r"^:param(?:[ \t]+[^:\n]*?)?[ \t]+(\w+):[ \t]*(.*(?:\n[ \t]+.*)*)", re.MULTILINE)


def describe(function: Callable[..., object]) -> tuple[str, dict[str, str]]:
    """The description (what stands before the first section) and each parameter's description."""
    doc = inspect.getdoc(function) or ""
    section = _SECTION.search(doc)
    intro = doc[: section.start()] if section else doc
    found: list[tuple[str, str]] = _SPHINX_ENTRY.findall(doc)
    if google := _GOOGLE.search(doc):
        found += _GOOGLE_ENTRY.findall(textwrap.dedent(google[1]))
    if numpy := _NUMPY.search(doc):
        found += _NUMPY_ENTRY.findall(numpy[1])
    return intro.strip(), {name: " ".join(text.split()) for name, text in found}
