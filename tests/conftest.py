"""What tests of every package share: ports, private folders, and the rule for device tests."""

import socket
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.broker import bootstrap, own_broker, said

__all__ = ["bootstrap", "own_broker"]  # fixtures of every folder

# Whole runs of real processes, whose times are the point; other tests run two at a time.
ALONE = {"e2e", "chaos", "drills"}

# Two shared cores: an example may take long without being wrong. Failing examples are printed as code, and none are kept.
settings.register_profile(
    "kvtrail", deadline=None, print_blob=True, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("kvtrail")


def pytest_report_header() -> str:
    """Say which broker is used, in the first lines of a run."""
    return said()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests beside which no other may run."""
    for item in items:
        if item.path.parent.name in ALONE:
            item.add_marker(pytest.mark.alone)


@pytest.fixture
def free_port() -> int:
    """A port of 127.0.0.1 that nobody listened on a moment ago; servers that can take port 0 should take it instead."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


@pytest.fixture
def private_dir() -> Iterator[Path]:
    """A folder that only this user may enter (0700), with a path short enough for Unix sockets; gone after the test."""
    with tempfile.TemporaryDirectory(prefix="kvt-") as path:
        yield Path(path)


@pytest.fixture(scope="session", autouse=True)
def _state_home() -> Iterator[None]:
    """Tests keep out of the user's own state: what recorders spool in one run is not shipped by another."""
    with tempfile.TemporaryDirectory(prefix="kvt-state-") as path, pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", path)
        yield


@pytest.fixture(autouse=True)
def _own_state(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """And each test out of the others'."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))


@pytest.fixture(autouse=True)
def _real_gpu(request: pytest.FixtureRequest) -> None:
    """Tests marked `gpu` run on a real CUDA device, or say that there is none: the one part that nobody can install."""
    if request.node.get_closest_marker("gpu") is not None and not _cuda_is_there():
        pytest.skip("real part missing: CUDA device: run on a machine with an NVIDIA GPU and its driver")


def _cuda_is_there() -> bool:
    """Whether torch sees a device; torch is loaded only where a test asks for one."""
    if find_spec("torch") is None:
        return False
    import torch  # noqa: PLC0415 - two seconds and 200 MB that most test runs need not pay

    return bool(torch.cuda.is_available())
