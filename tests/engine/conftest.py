"""Fixtures of the engine's tests."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from kvtrail_engine.engine import Engine
from kvtrail_engine.settings import EngineSettings
from kvtrail_engine.testing import CollectingEmitter

StartEngine = Callable[[EngineSettings], Engine]


@pytest.fixture
def recorded() -> CollectingEmitter:
    """The observer of every engine that `start_engine` starts."""
    return CollectingEmitter()


@pytest.fixture
def start_engine(recorded: CollectingEmitter) -> Iterator[StartEngine]:
    """Starts engines that are closed when the test is over."""
    with ExitStack() as stack:
        yield lambda settings: stack.enter_context(Engine(settings, [recorded.as_emitter()]))


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    """A folder for an engine's files."""
    return tmp_path / "engine"
