"""Tools by name, as ``--tool module:function`` gives them."""

import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from types import ModuleType
from typing import cast

from rxagent.errors import UsageError, told
from rxagent.tools import Tool


def load_tools(names: Iterable[str]) -> list[Tool | Callable[..., object]]:
    """The tools that are named, in order.

    Args:
        names: ``package.module:function`` or ``path/to/file.py:function``; a list or tuple of tools counts as each of them.

    Raises:
        UsageError: says which name, and whether the module, the function or the import is at fault.
    """
    return [tool for name in names for tool in _load(name)]


def _load(name: str) -> list[Tool | Callable[..., object]]:
    module_name, colon, path = name.rpartition(":")
    if not colon or not module_name or not path:
        raise UsageError(f"--tool {name!r}: write MODULE:FUNCTION, as in my_tools:search or tools/search.py:search")
    found: object = _module(name, module_name)
    for step in path.split("."):
        if not hasattr(found, step):
            raise UsageError(f"--tool {name!r}: {module_name} has no {step!r}{_hint(found)}")
        found = getattr(found, step)
    items = list(cast("Iterable[object]", found)) if isinstance(found, list | tuple) else [found]
    for item in items:
        if not isinstance(item, Tool) and not callable(item):
            raise UsageError(f"--tool {name!r}: {item!r:.100} is neither a function nor a tool")
    return cast("list[Tool | Callable[..., object]]", items)


def _module(name: str, module_name: str) -> ModuleType:
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)  # as `python -m` has it: modules of the present directory are found
    try:
        if module_name.endswith(".py"):
            return _from_file(name, Path(module_name))
        return importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is not None and (module_name == error.name or module_name.startswith(f"{error.name}.")):
            raise UsageError(f"--tool {name!r}: there is no module {error.name!r} here or among the installed ones") from error
        raise UsageError(
            f"--tool {name!r}: importing {module_name} needs the module {error.name!r}, which isn't installed"
        ) from error
    except UsageError:
        raise
    except (Exception, SystemExit) as error:
        raise UsageError(f"--tool {name!r}: importing {module_name} raised {told(error)}") from error


def _from_file(name: str, path: Path) -> ModuleType:
    if not path.is_file():
        raise UsageError(f"--tool {name!r}: there is no file {str(path)!r}")
    stem = f"rxagent_tools_{path.stem}"
    if stem in sys.modules and getattr(sys.modules[stem], "__file__", None) == str(path.resolve()):
        return sys.modules[stem]
    spec = importlib.util.spec_from_file_location(stem, path.resolve())
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[stem] = module  # dataclasses and annotations look their module up there
    spec.loader.exec_module(module)
    return module


def _hint(found: object) -> str:
    if not isinstance(found, ModuleType):
        return ""
    functions = [name for name, value in vars(found).items() if not name.startswith("_") and _belongs(value, found)]
    return f"; it has {', '.join(functions[:10])}" if functions else ""


def _belongs(value: object, module: ModuleType) -> bool:
    if isinstance(value, Tool):
        return True
    return callable(value) and getattr(value, "__module__", None) == module.__name__
