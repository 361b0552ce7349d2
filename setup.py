"""Where the packages lie; everything else about the distribution stands in `pyproject.toml`."""

from setuptools import find_packages, setup

ROOTS = ["schema", "agent", "engine", "collector", "dashboards", "cli"]
PACKAGES = {package: f"{root}/{package.replace('.', '/')}" for root in ROOTS for package in find_packages(root)}

setup(
    packages=[*PACKAGES, "kvtrail_migrations", "kvtrail_migrations.versions"],
    package_dir={**PACKAGES, "kvtrail_migrations": "migrations", "kvtrail_migrations.versions": "migrations/versions"},
    package_data={"": ["py.typed"]},
)
