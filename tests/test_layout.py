"""Who may import whom, what an engine's process loads, and that every package is shipped."""

import ast
import importlib
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.packages import PACKAGE_ROOTS, ROOT, imports_of, module_name, modules_of, package_dir

MAY_IMPORT: dict[str, set[str]] = {
    "kvtrail_schema": set(),
    "kvtrail_agent": {"kvtrail_schema"},
    "kvtrail_engine": {"kvtrail_schema"},
    "kvtrail_collector": {"kvtrail_schema"},
    "kvtrail_dashboards": {"kvtrail_schema"},
    "kvtrail_cli": {"kvtrail_schema", "kvtrail_agent", "kvtrail_engine", "kvtrail_collector", "kvtrail_dashboards"},
}
"""The engine has observers and does not know the agent; agent and collector meet on the wire only; dashboards ask by HTTP."""

HEAVY = ("torch", "fastapi", "duckdb", "streamlit")
"""What the collector, the dashboard and the reference engine stand on: never loaded by the agent."""

ARROW = ("pyarrow", "numpy")
"""What the shipper encodes with: never loaded by what emits, inside somebody else's engine."""

IN_THE_ENGINE = [
    "kvtrail_schema.emitter",
    "kvtrail_schema.kinds",
    "kvtrail_schema.events",
    "kvtrail_schema.columns",
    "kvtrail_schema.identity",
    "kvtrail_schema.clock",
    "kvtrail_schema.header",
    "kvtrail_agent",
    "kvtrail_agent.emit_methods",
    "kvtrail_agent.ring_writer",
    "kvtrail_agent.recorder",
    "kvtrail_agent.attach.vllm_attach",
]
"""The modules that an engine's process needs to record events."""


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_packages_import_only_whom_they_may(package: str) -> None:
    """The arrows between packages are those of the design, and there are no others."""
    ours = {*PACKAGE_ROOTS} - MAY_IMPORT[package] - {package}
    wrong = [
        f"{path.relative_to(ROOT)}:{line} imports {name}"
        for path in modules_of(package)
        for line, name in imports_of(path)
        if name.partition(".")[0] in ours
    ]

    assert wrong == []


def test_rules_cover_every_package() -> None:
    """A new package cannot be added without saying whom it may import."""
    found = {path.parent.name for root in ROOT.iterdir() for path in root.glob("kvtrail_*/__init__.py")}

    assert set(MAY_IMPORT) == found
    assert set(PACKAGE_ROOTS) == found


def test_no_package_imports_tests_or_tools() -> None:
    """What is shipped does not need what is not."""
    wrong = [
        f"{path.relative_to(ROOT)}:{line} imports {name}"
        for package in PACKAGE_ROOTS
        for path in modules_of(package)
        for line, name in imports_of(path)
        if name.partition(".")[0] in {"tests", "tools", "bench", "hypothesis", "pytest"}
    ]

    assert wrong == []


@pytest.mark.parametrize("module", IN_THE_ENGINE)
def test_recording_loads_nothing_heavy(module: str) -> None:
    """An engine pays for the recorder alone: no framework, no database, no Arrow comes with it."""
    loaded = _loaded_by(module)

    assert [name for name in (*HEAVY, *ARROW) if name in loaded] == []


@pytest.mark.parametrize("path", modules_of("kvtrail_agent"), ids=module_name)
def test_no_module_of_the_agent_loads_what_others_stand_on(path: Path) -> None:
    """Neither the recorder nor the shipper brings torch, fastapi, duckdb or streamlit into a process."""
    wrong = [name for _, name in imports_of(path) if name.partition(".")[0] in HEAVY and not _is_attached(path)]

    assert wrong == []


def _is_attached(path: Path) -> bool:
    """Whether a module is one that is loaded by an engine which itself stands on torch, for its events only."""
    return path.is_relative_to(package_dir("kvtrail_agent") / "attach") or path.stem == "cuda"


def _loaded_by(module: str) -> set[str]:
    """The modules that a fresh process has loaded after importing one."""
    program = f"import sys, {module}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=_plain_env())
    return set(done.stdout.split())


def _plain_env() -> dict[str, str]:
    """This environment without what makes Python import more than it is told to."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "COV_"))}


@pytest.mark.parametrize("package", PACKAGE_ROOTS)
def test_public_names_are_complete(package: str) -> None:
    """`__all__`, where a module has one, names all that it defines in public, and nothing that is not there."""
    for path in modules_of(package):
        declared = _declared(path)
        if declared is None or find_spec(module_name(path).partition(".")[0]) is None:
            continue
        module = importlib.import_module(module_name(path))
        missing = [name for name in declared if not hasattr(module, name)]

        assert missing == [], path
        assert sorted(_defined(path) - set(declared)) == [], path


def _declared(path: Path) -> list[str] | None:
    """The names in `__all__` of a module, or None where it has none."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        if any(isinstance(target, ast.Name) and target.id == "__all__" for target in targets):
            assert isinstance(node, ast.Assign | ast.AnnAssign)
            assert node.value is not None
            names: list[str] = list(ast.literal_eval(node.value))
            return names
    return None


def _defined(path: Path) -> set[str]:
    """The classes and functions that a module defines in public."""
    body = ast.parse(path.read_text(encoding="utf-8")).body
    kinds = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    return {node.name for node in body if isinstance(node, kinds) and not node.name.startswith("_")}


def test_every_package_folder_is_shipped() -> None:
    """A folder without `__init__.py` would work from the checkout and be missing from an installation."""
    sources = [(ROOT / root, path) for root in PACKAGE_ROOTS.values() for path in (ROOT / root).rglob("*.py")]
    folders = {".".join(path.parent.relative_to(root).parts) for root, path in sources}
    migrations = {"kvtrail_migrations", "kvtrail_migrations.versions"}

    assert folders | migrations == _shipped()


def _shipped() -> set[str]:
    """The packages that the build would ship, as `setup.py` finds them."""
    said = "setuptools.setup = lambda **named: print(*named['packages'])"
    program = f"import runpy, setuptools; {said}; runpy.run_path('setup.py')"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)
    return set(done.stdout.split())


@pytest.mark.parametrize("package", PACKAGE_ROOTS)
def test_packages_say_that_they_are_typed(package: str) -> None:
    """Who installs kvtrail gets its types: `py.typed` lies in every package."""
    assert (package_dir(package) / "py.typed").is_file()
