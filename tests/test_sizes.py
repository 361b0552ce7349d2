"""Budgets of size: nothing so long that it cannot be read at once, and nothing without a word about itself."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from tests.packages import PACKAGE_ROOTS, ROOT, own_files, package_dir

FUNCTION_LINES = 60
FILE_LINES = 400

MAY_BE_LONGER = {
    "schema/kvtrail_schema/events.py": "the contract in one file that a stranger reads from top to bottom",
    "schema/kvtrail_schema/emitter.py": "generated: one method a kind",
    "agent/kvtrail_agent/emit_methods.py": "generated: one method a kind",
}
"""Files over the budget, each with its reason."""


@pytest.mark.parametrize("path", own_files(), ids=lambda path: str(path.relative_to(ROOT)))
def test_file_fits_its_budget(path: Path) -> None:
    """One idea a file: what grows over 400 lines holds more than one."""
    name = str(path.relative_to(ROOT))
    lines = len(path.read_text(encoding="utf-8").splitlines())

    assert lines <= FILE_LINES or name in MAY_BE_LONGER, f"{name} has {lines} lines"


@pytest.mark.parametrize("path", own_files(), ids=lambda path: str(path.relative_to(ROOT)))
def test_functions_fit_their_budget(path: Path) -> None:
    """A function is read in one glance: 60 lines at most."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    long = [f"{path.relative_to(ROOT)}:{node.lineno} {node.name}" for node in functions if _lines(node) > FUNCTION_LINES]

    assert long == []


def _lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """How many lines a function takes from its `def` to its end."""
    return (node.end_lineno or node.lineno) - node.lineno + 1


def test_exempt_files_exist_and_need_it() -> None:
    """The list of exceptions holds no name longer than it must."""
    lengths = {name: len((ROOT / name).read_text(encoding="utf-8").splitlines()) for name in MAY_BE_LONGER}

    assert {name: lines for name, lines in lengths.items() if lines <= FILE_LINES} == {}


@pytest.mark.parametrize("folder", [*PACKAGE_ROOTS, "tests", "tools"])
def test_everything_has_a_docstring(folder: str) -> None:
    """Each module, class, function and test says in a sentence what it is for, or what it promises."""
    where = package_dir(folder) if folder in PACKAGE_ROOTS else ROOT / folder
    command = [sys.executable, "-m", "interrogate", "-c", str(ROOT / "pyproject.toml"), "-vv", "--no-color", str(where)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    missing = [line for line in done.stdout.splitlines() if "MISSED" in line]

    assert missing == []
    assert done.returncode == 0, done.stdout + done.stderr
