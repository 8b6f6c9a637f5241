"""Every await expression of the engine, listed from its syntax tree, is hit once by an exception and once by an abort.

The engine is imported a second time with each ``await x`` turned into ``await probe(key, x)``. A new
await that no scenario reaches fails the first test; every other test is one await and one fault.
"""

import ast
import asyncio
import contextlib
import importlib
import importlib.abc
import importlib.util
import sys
from pathlib import Path

import pytest
from await_scenarios import SCENARIOS

import rxagent
from rxagent.marble.loop import run_virtual

# A fault in place of an await leaves the coroutine behind that would have been awaited.
pytestmark = [
    pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
ENGINE = Path(rxagent.__file__).parent / "engine"


class Injected(Exception):
    """The fault that is put in place of an await."""


class Probe:
    """Notes which awaits are reached; replaces one of them by a fault."""

    def __init__(self) -> None:
        self.seen: set[str] = set()
        self.armed: str | None = None
        self.mode = ""
        self.fired = False
        self.abort = lambda: None

    def __call__(self, key: str, awaitable):
        self.seen.add(key)
        if key != self.armed or self.fired:
            return awaitable
        self.fired = True
        return self._raise(awaitable) if self.mode == "exception" else self._abort(awaitable)

    async def _raise(self, awaitable):
        _drop(awaitable)
        raise Injected("injected")

    async def _abort(self, awaitable):
        asyncio.get_running_loop().call_soon(self.abort)
        try:
            await asyncio.sleep(0.001)
        except BaseException:
            _drop(awaitable)
            raise
        return await awaitable


def _drop(awaitable) -> None:
    if asyncio.iscoroutine(awaitable):
        awaitable.close()


class Probing(ast.NodeTransformer):
    def __init__(self, module: str) -> None:
        self.module = module
        self.keys: list[str] = []
        self.where: list[str] = []

    def visit_ClassDef(self, node):
        return self._inside(node)

    def visit_FunctionDef(self, node):
        return self._inside(node)

    def visit_AsyncFunctionDef(self, node):
        return self._inside(node)

    def _inside(self, node):
        self.where.append(node.name)
        self.generic_visit(node)
        self.where.pop()
        return node

    def visit_Await(self, node):
        self.generic_visit(node)
        key = f"{self.module}:{'.'.join(self.where)}:{ast.unparse(node)[:60]}"
        while key in self.keys:
            key += "'"
        self.keys.append(key)
        node.value = ast.Call(ast.Name("__probe__", ast.Load()), [ast.Constant(key), node.value], [])
        return node


def probed(path: Path) -> tuple[ast.Module, list[str]]:
    transformer = Probing(path.stem)
    tree = transformer.visit(ast.parse(path.read_text()))
    return ast.fix_missing_locations(tree), transformer.keys


ALL = [key for path in sorted(ENGINE.glob("*.py")) for key in probed(path)[1]]


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def __init__(self, probe: Probe) -> None:
        self.probe = probe

    def find_spec(self, name, path, target=None):
        if not name.startswith("rxagent.engine"):
            return None
        file = ENGINE / "__init__.py" if name == "rxagent.engine" else ENGINE / f"{name.rsplit('.', 1)[1]}.py"
        places = [str(ENGINE)] if name == "rxagent.engine" else None
        return importlib.util.spec_from_file_location(name, file, loader=self, submodule_search_locations=places)

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        module.__probe__ = self.probe
        tree, _ = probed(Path(module.__spec__.origin))
        exec(compile(tree, module.__spec__.origin, "exec"), module.__dict__)


# Rooms above the engine hold references into it, so they are imported again with it.
ABOVE = ("rxagent.engine", "rxagent.teams", "rxagent.runner")


@pytest.fixture(scope="module")
def probe():
    probe = Probe()
    finder = Finder(probe)
    kept = {name: sys.modules.pop(name) for name in list(sys.modules) if name.startswith(ABOVE)}
    sys.meta_path.insert(0, finder)
    try:
        for name in ABOVE:
            importlib.import_module(name)
        yield probe
    finally:
        sys.meta_path.remove(finder)
        for name in list(sys.modules):
            if name.startswith(ABOVE):
                del sys.modules[name]
        sys.modules.update(kept)


def play(probe: Probe, scenario) -> None:
    """Plays a scenario, whatever it raises; then what must hold of any run holds."""

    async def main() -> None:
        stage = scenario.stage(sys.modules)
        probe.abort = stage.abort
        with contextlib.suppress(Injected, Exception):
            await scenario.play(stage)
        await asyncio.sleep(0.1 if scenario.real else 60)
        stage.check()
        left = [t.get_name() for t in asyncio.all_tasks() if t is not asyncio.current_task()]
        assert left == [], left

    asyncio.run(main()) if scenario.real else run_virtual(main())


@pytest.fixture(scope="module")
def reached(probe) -> dict[str, object]:
    """For each await, the first scenario that reaches it."""
    found: dict[str, object] = {}
    for scenario in SCENARIOS:
        probe.seen.clear()
        probe.armed = None
        play(probe, scenario)
        for key in probe.seen:
            found.setdefault(key, scenario)
    return found


def test_every_await_is_reached_by_a_scenario(reached):
    assert [key for key in ALL if key not in reached] == []


@pytest.mark.parametrize("mode", ["exception", "abort"])
@pytest.mark.parametrize("key", ALL)
def test_the_grammar_holds_whatever_hits_an_await(probe, reached, key, mode):
    probe.armed, probe.mode, probe.fired = key, mode, False
    play(probe, reached[key])
    assert probe.fired
