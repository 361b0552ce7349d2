"""Real engines, in an environment of their own: `make test-engines` makes it and names it."""

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def engines_python() -> Path:
    """The interpreter that has the engines; without it these tests are skipped, by name."""
    told = os.environ.get("KVTRAIL_ENGINES_PYTHON", "")
    if not told or not Path(told).is_file():
        pytest.skip("real engines are run by `make test-engines`")
    return Path(told)


@pytest.fixture(scope="session")
def model(engines_python: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Llama of two layers with random weights."""
    from tests.engines.runs import run_script  # noqa: PLC0415 - only where engines are

    folder = tmp_path_factory.mktemp("model")
    run_script(engines_python, "make_model.py", {"model": str(folder)})
    return folder
