"""Where the packages lie, and the one C extension; everything else about the distribution stands in `pyproject.toml`."""

import sysconfig
from pathlib import Path

from setuptools import Extension, find_packages, setup

ROOTS = ["schema", "agent", "engine", "collector", "dashboards", "cli"]
PACKAGES = {package: f"{root}/{package.replace('.', '/')}" for root in ROOTS for package in find_packages(root)}

# One build serves every Python from 3.11 on. The free-threaded ones have no limited API yet, and build for themselves.
LIMITED = not sysconfig.get_config_var("Py_GIL_DISABLED")
HEADERS = sorted(str(path) for path in Path("agent/kvtrail_agent").glob("_ring*.h"))
RING = Extension(
    "kvtrail_agent._ring",
    sources=["agent/kvtrail_agent/_ring.c"],
    depends=HEADERS,
    define_macros=[("Py_LIMITED_API", "0x030B0000")] if LIMITED else [],
    extra_compile_args=["-std=c11", "-O2", "-g0", "-fno-plt", "-Wall", "-Wextra"],
    py_limited_api=LIMITED,
    optional=True,  # without a compiler the writer in Python does the same, slower
)

setup(
    packages=[*PACKAGES, "kvtrail_migrations", "kvtrail_migrations.versions"],
    package_dir={**PACKAGES, "kvtrail_migrations": "migrations", "kvtrail_migrations.versions": "migrations/versions"},
    package_data={
        "": ["py.typed"],
        "kvtrail_agent": ["_ring.pyi"],
        "kvtrail_collector": ["alerts/*.toml"],
        "kvtrail_cli": ["drill/expected/*.toml", "drill/generated/*.json"],
    },
    ext_modules=[RING],
    options={"bdist_wheel": {"py_limited_api": "cp311"}} if LIMITED else {},
)
