"""A full disk: writes fail and say so, the tier goes on with the places that it has, and tries the others again later."""

import resource
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
from kvtrail_engine.engine import Engine
from kvtrail_engine.nvme_settings import NvmeSettings
from kvtrail_engine.proof import settle
from kvtrail_engine.testing import CollectingEmitter
from kvtrail_schema.enums import Tier
from kvtrail_schema.events import Error, Evicted, SwapOutFailed, SwapOutWritten
from kvtrail_schema.lifecycle import fold
from kvtrail_schema.reasons import ErrorReason, EvictReason, SwapOutFailReason

from tests.engine.conftest import StartEngine
from tests.engine.engines import ask, tiny

Limit = Callable[[Path], AbstractContextManager[None]]
ROOM_BYTES = 512 * 1024


@contextmanager
def small_file_system(data_dir: Path) -> Iterator[None]:
    """A file system of its own that holds some thirty records."""
    (data_dir / "nvme").mkdir(parents=True)
    command = ["mount", "-t", "tmpfs", "-o", f"size={ROOM_BYTES}", "kvtrail-test", str(data_dir / "nvme")]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("only root can mount a file system")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(data_dir / "nvme")], check=True)


@contextmanager
def small_files(data_dir: Path) -> Iterator[None]:
    """A limit on the size of every file that this process writes."""
    del data_dir
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (ROOM_BYTES, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def run_round(engine: Engine) -> list[tuple[int, ...]]:
    """The answers to prompts of more blocks than gpu, host and the disk hold."""
    answers = [engine.submit(ask(number, 9 * 32)).result(10).output for number in range(14)]
    settle(engine)
    return answers


@pytest.mark.parametrize("limit", [small_file_system, small_files])
def test_a_full_disk_ends_nothing(data_dir: Path, start_engine: StartEngine, recorded: CollectingEmitter, limit: Limit) -> None:
    """Every answer stays right; failed writes say `no_space`; old blocks make room for new ones in the places there are."""
    with limit(data_dir):
        engine = start_engine(tiny(data_dir))
        rounds = [run_round(engine) for _ in range(3)]
        pool = engine.statistics().pools[Tier.NVME]
        engine.close()
    failed = [event for event in recorded.of(SwapOutFailed) if event.dst is Tier.NVME]
    written = [event for event in recorded.of(SwapOutWritten) if event.dst is Tier.NVME]
    evicted = [event for event in recorded.of(Evicted) if event.tier is Tier.NVME]

    assert rounds[0] == rounds[1] == rounds[2]
    assert {SwapOutFailReason.NO_SPACE} == {event.reason for event in failed}
    assert {ErrorReason.NO_SPACE} == {event.reason for event in recorded.of(Error)}
    assert pool.held_back > 0
    assert any(event.seq > failed[0].seq for event in written)
    assert EvictReason.CAPACITY in {event.reason for event in evicted}
    assert len({event.op for event in failed}) < 4
    assert fold(recorded.events).violations == ()


def test_places_without_room_are_tried_again(data_dir: Path, start_engine: StartEngine, recorded: CollectingEmitter) -> None:
    """Once there is room again the tier grows to what it was made for."""
    engine = start_engine(tiny(data_dir, nvme_files=NvmeSettings(no_space_retry_ns=1_000_000)))
    with small_files(data_dir):
        run_round(engine)
        full = engine.statistics().pools[Tier.NVME]
    run_round(engine)
    grown = engine.statistics().pools[Tier.NVME]

    assert recorded.of(SwapOutFailed)
    assert full.copies < grown.copies
    assert 0 == grown.held_back
