"""Tests of ring and recorder run once with each writer: the one in C, and the one in Python."""

import pytest
from kvtrail_agent.writer_choice import PURE_PYTHON, WriterKind, c_writer_is_built, writer_in_use

from tests.real import require_real

BOTH_WRITERS = frozenset(
    {
        "test_processes",
        "test_recorder",
        "test_ring_blocks",
        "test_ring_drops",
        "test_ring_events",
        "test_ring_processes",
        "test_ring_threads",
        "test_ring_torn",
    }
)
"""The modules whose tests go through a writer."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run each test of the listed modules with both writers."""
    if metafunc.module.__name__.rpartition(".")[2] in BOTH_WRITERS:
        metafunc.parametrize("_writer", list(WriterKind), ids=lambda kind: kind.value, indirect=True)


@pytest.fixture(autouse=True)
def _writer(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this process, and those that it starts, use one writer; where a module asks for none, the usual one."""
    kind = getattr(request, "param", None)
    if kind is None:
        return
    if kind is WriterKind.C:
        require_real("C writer of the ring", found=c_writer_is_built(), how="install a C compiler, then `make install`")
    monkeypatch.setenv(PURE_PYTHON, "1" if kind is WriterKind.PYTHON else "0")
    assert writer_in_use() is kind
