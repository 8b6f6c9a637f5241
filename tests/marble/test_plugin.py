"""The pytest plugin in a project of somebody else: the wheel installed, two marble files, one failing."""

import importlib.util
import os
import re
import subprocess
import sys
import textwrap
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

GOOD = """\
# Doubling

## Values are doubled

```marble
from my_project import doubled
source   -a-b|
> source.pipe(doubled())
out      -A-B|
where    a = 1   b = 2   A = 2   B = 4
```
"""

BAD = """\
# Waiting

Some prose, which stays.

## Values come later

```marble
source   -a-b|
> source.pipe(delay(0.02))
out      -a-b--|
where    ab = symbol
```

## This one holds

```marble
source   a|
> source
out      a|
where    a = symbol
```
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with rxagent installed from its wheel."""
    wheels, target = tmp_path_factory.mktemp("wheels"), tmp_path_factory.mktemp("site")
    here = ["--no-build-isolation"] if importlib.util.find_spec("hatchling") else []
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", *here, "--wheel-dir", str(wheels), str(ROOT)]
    done = subprocess.run(build, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"no wheel can be built here: {done.stderr[-300:]}")
    (wheel,) = wheels.glob("rxagent-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(target)
    return target


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "marbles").mkdir()
    (tmp_path / "marbles" / "doubling.md").write_text(GOOD)
    (tmp_path / "marbles" / "waiting.md").write_text(BAD)
    (tmp_path / "pyproject.toml").write_text('[tool.pytest.ini_options]\npythonpath = ["."]\n')
    (tmp_path / "my_project.py").write_text(
        textwrap.dedent("""
            from reactivex import operators as rxops


            def doubled():
                return rxops.map(lambda value: 2 * value)
        """)
    )
    return tmp_path


def run_pytest(project: Path, site: Path, *args: str) -> tuple[int, str]:
    environment = {**os.environ, "PYTHONPATH": str(site), "COLUMNS": "120"}
    environment.pop("RXAGENT_REQUIRE_ALL", None)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:randomly", *args]
    done = subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def test_the_failing_block_is_reported_with_file_line_and_drawing(project: Path, site: Path):
    code, output = run_pytest(project, site)
    assert code == 1, output
    assert "1 failed, 2 passed" in output
    assert "marbles/waiting.md::Values come later" in output
    assert (
        textwrap.dedent("""
            marbles/waiting.md:10:1:
                        0ms
                        |....:.
            out   want  -a-b--|
                  got   ---a-b|
                         ^
            out at 10ms: wanted a ('a'), but nothing came (it came at 30ms, 2 frames late)
        """)
        in output
    )
    assert "Traceback" not in output


def test_update_mends_it_and_changes_nothing_else(project: Path, site: Path):
    code, output = run_pytest(project, site, "--marble-update")
    assert code == 0, output
    assert "marbles/waiting.md:8: Values come later" in output
    assert (project / "marbles" / "waiting.md").read_text() == BAD.replace("out      -a-b--|", "out      ---a-b|")
    assert (project / "marbles" / "doubling.md").read_text() == GOOD
    assert run_pytest(project, site)[0] == 0


def test_the_wheel_is_what_runs(project: Path, site: Path):
    (project / "test_where.py").write_text(
        f"import rxagent\n\ndef test_where():\n    assert rxagent.__file__.startswith({str(site)!r})\n"
    )
    code, output = run_pytest(project, site, "test_where.py")
    assert code == 0, output


def test_a_malformed_block_says_where_and_what(project: Path, site: Path):
    (project / "marbles" / "waiting.md").write_text("# T\n\n```marble\nsource -(ab)|\n> source\nout |\n```\n")
    code, output = run_pytest(project, site)
    assert code == 1
    assert "marbles/waiting.md:4:9: a stray parenthesis '('" in output
    assert "Traceback" not in output


def test_a_file_that_is_no_utf_8_says_where(project: Path, site: Path):
    (project / "marbles" / "waiting.md").write_bytes(b"# T\n\nd\xe9j\xe0\n\n```marble\nsource -|\n> source\nout -|\n```\n")
    code, output = run_pytest(project, site)
    assert code == 2
    assert "marbles/waiting.md:3:2: this is no UTF-8 text" in output
    assert "Traceback" not in output
    assert "plugin.py" not in output


def test_a_block_that_is_never_closed_is_an_error_of_collection(project: Path, site: Path):
    (project / "marbles" / "waiting.md").write_text("# T\n\n```marble\nsource -|\n")
    code, output = run_pytest(project, site)
    assert code == 2
    assert "marbles/waiting.md:3:1: this block is never closed" in output


def test_a_pipeline_that_raises_is_shown_as_that(project: Path, site: Path):
    (project / "my_project.py").write_text("def doubled():\n    raise RuntimeError('not today')\n")
    code, output = run_pytest(project, site, "marbles/doubling.md")
    assert code == 1
    assert "the pipeline raised" in output
    assert 'my_project.py", line 2, in doubled' in output
    assert "RuntimeError: not today" in output
    assert "rxagent/testing" not in output.replace(str(site), "")


def test_an_unused_entry_of_a_legend_warns(project: Path, site: Path):
    path = project / "marbles" / "doubling.md"
    path.write_text(GOOD.replace("B = 4", "B = 4   Z = 5"))
    code, output = run_pytest(project, site, str(path))
    assert code == 0
    assert re.search(r"UnusedLegendWarning: marbles/doubling.md:\d+:\d+: nothing uses Z", output)


def test_other_files_can_be_named_by_the_setting_or_on_the_command_line(project: Path, site: Path):
    (project / "docs").mkdir()
    (project / "docs" / "spec.md").write_text(GOOD)
    assert "1 passed" in run_pytest(project, site, "docs/spec.md")[1]
    (project / "pyproject.toml").write_text('[tool.pytest.ini_options]\npythonpath = ["."]\nmarble_files = ["docs/*.md"]\n')
    code, output = run_pytest(project, site)
    assert code == 0, output
    assert "1 passed" in output


def test_one_block_can_be_run_by_its_heading(project: Path, site: Path):
    code, output = run_pytest(project, site, "marbles/waiting.md::This one holds")
    assert code == 0, output
    assert "1 passed" in output


def test_parallel_workers_run_blocks_but_do_not_rewrite(project: Path, site: Path):
    pytest.importorskip("xdist")
    code, output = run_pytest(project, site, "-n", "2", "--marble-update")
    assert code == 1
    assert "1 failed, 2 passed" in output
    assert "run it without -n" in output
    assert (project / "marbles" / "waiting.md").read_text() == BAD


def test_a_project_without_marbles_loads_no_marbles(tmp_path: Path, site: Path):
    (tmp_path / "README.md").write_text("# Nothing here\n\n```marble\n(((\n```\n")
    (tmp_path / "test_it.py").write_text(
        "import sys\n\ndef test_it():\n    assert not {'rxagent.marble.play', 'rxagent.testing.item'} & set(sys.modules)\n"
    )
    code, output = run_pytest(tmp_path, site)
    assert code == 0, output
    assert "1 passed" in output
