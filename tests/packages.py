"""The project's own packages and files, as the repository-wide tests walk them."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent

PACKAGE_ROOTS: Final = {
    "kvtrail_schema": "schema",
    "kvtrail_agent": "agent",
    "kvtrail_engine": "engine",
    "kvtrail_collector": "collector",
    "kvtrail_dashboards": "dashboards",
    "kvtrail_cli": "cli",
}
"""Where each package lies: the outer folder is what one looks for, the inner name is what one imports."""


def package_dir(package: str) -> Path:
    """The folder of a package's modules."""
    return ROOT / PACKAGE_ROOTS[package] / package


def modules_of(package: str) -> list[Path]:
    """Every module of a package, in order."""
    return sorted(package_dir(package).rglob("*.py"))


def own_files() -> list[Path]:
    """Every Python file of the repository that people write: packages, migrations, tests, tools, benchmarks."""
    folders = [*PACKAGE_ROOTS.values(), "migrations", "tests", "tools", "bench"]
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


def module_name(path: Path) -> str:
    """The name by which a module of a package is imported."""
    root = next(ROOT / folder for folder in PACKAGE_ROOTS.values() if (ROOT / folder) in path.parents)
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports_of(path: Path) -> Iterator[tuple[int, str]]:
    """Every module that a file imports, wherever it does so, with the line; relative imports by their full name."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.lineno, node.module
        elif isinstance(node, ast.ImportFrom):
            yield node.lineno, _absolute(path, node)


def _absolute(path: Path, node: ast.ImportFrom) -> str:
    """The full name of a relative import."""
    parts = module_name(path).split(".")
    depth = node.level - (1 if path.name == "__init__.py" else 0)
    base = parts[: len(parts) - depth] if depth else parts
    return ".".join([*base, *([node.module] if node.module else [])])
