"""What importing rxagent does not do: load toolkits, providers or test tools, start threads, or need an extra."""

import json
import subprocess
import sys

import pytest

FOREIGN = [
    "PySide6", "tkinter", "textual", "gi", "wx", "pygame", "mcp", "openai", "anthropic", "google.genai", "pytest", "hypothesis",
    "sqlite3", "rxagent.models.openai_chat", "rxagent.models.openai_responses", "rxagent.models.anthropic",
    "rxagent.models.gemini", "rxagent.models.transport", "rxagent.bridges", "rxagent.web", "rxagent.testing", "rxagent.marble",
]  # fmt: skip
LOOK = f"""
import json, sys, threading
import {{module}}
print(json.dumps([[name for name in {FOREIGN!r} if name in sys.modules], threading.active_count(), sorted(sys.modules)]))
"""


def after(module, *flags):
    done = subprocess.run([sys.executable, *flags, "-c", LOOK.format(module=module)], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


@pytest.mark.parametrize("module", ["rxagent", "rxagent.cli"])
def test_nothing_foreign_is_loaded_and_nothing_runs(module):
    foreign, threads, _ = after(module)
    assert (foreign, threads) == ([], 1)


def test_the_core_needs_its_three_dependencies_alone():
    _, _, names = after("rxagent.cli, rxagent.models.openai_chat, rxagent.models.transport, rxagent.stores, rxagent.flow")
    _, _, base = after("reactivex, pydantic, aiohttp")
    top = {name.partition(".")[0] for name in names} - {name.partition(".")[0] for name in base}
    installed = {name for name in top if name not in sys.stdlib_module_names and not name.startswith("_")}
    assert installed <= {"rxagent", "annotated_types"}  # the latter is pydantic's


BLOCKED = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {blocked!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Missing())
from rxagent.cli import main
sys.exit(main({arguments!r}))
"""
EXTRAS = ["textual", "rich", "PySide6", "pygame", "mcp", "openai", "pytest", "hypothesis"]


def without_extras(*arguments):
    code = BLOCKED.format(blocked=EXTRAS, arguments=list(arguments))
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)


def test_the_main_job_runs_without_any_extra():
    done = without_extras("run", "add 2 and 2")
    assert (done.returncode, "add says 4" in done.stdout) == (0, True)


def test_a_command_whose_extra_is_missing_names_the_install_line():
    done = without_extras("chat")
    assert done.returncode == 2
    assert "pip install 'rxagent[chat]'" in done.stderr
    assert "Traceback" not in done.stderr
