"""The spool: frames on disk in their order, whole or not at all, within their bound, gone once they are acknowledged."""

import os
import resource
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kvtrail_agent.spool import Spool

LIMIT_BYTES = 1 << 20
FRAME_BYTES = 1000


def spool_in(folder: Path, limit_bytes: int = LIMIT_BYTES, name: str = "engine-0-0000") -> Spool:
    """A spool below a folder."""
    return Spool(folder / "spool", name, folder / f"{name}.ring", limit_bytes)


def frame(number: int, size: int = FRAME_BYTES) -> bytes:
    """A frame that tells its number."""
    return number.to_bytes(4, "little") * (size // 4)


def numbers_in(spool: Spool) -> list[int]:
    """The numbers of all frames, acknowledged one job after another."""
    found: list[int] = []
    while not spool.is_empty:
        glimpse = spool.peek(7)
        found += [int.from_bytes(one[:4], "little") for one in glimpse.frames]
        spool.advance(glimpse.end)
    return found


def segments_in(spool: Spool) -> list[Path]:
    """The files that hold frames."""
    return sorted(spool.directory.glob("*.segment"))


def fill(spool: Spool, count: int, first: int = 0) -> list[int]:
    """Append so many frames; the numbers of those that found room."""
    return [number for number in range(first, first + count) if spool.append(frame(number)) is not None]


@contextmanager
def disk_full_beyond(size: int) -> Iterator[None]:
    """No file of this process may grow beyond a size: the system refuses it in the middle of a write."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_nothing_is_on_disk_while_all_is_well(private_dir: Path) -> None:
    """A spool that was never needed makes no file, and one that was sent whole leaves none."""
    spool = spool_in(private_dir)
    spool.adopt()
    before = list(private_dir.iterdir())
    fill(spool, 3)
    during = list(spool.directory.iterdir())
    numbers_in(spool)

    assert before == []
    assert len(during) == 3  # lock, ring, one segment
    assert list((private_dir / "spool").iterdir()) == []


@given(
    counts=st.lists(st.integers(0, 40), min_size=1, max_size=6),
    takes=st.lists(st.integers(1, 30), min_size=1, max_size=6),
    size=st.integers(4, 3000),
)
def test_frames_leave_in_their_order_once(
    counts: list[int], takes: list[int], size: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """However appending and acknowledging take turns, every frame comes out once, in the order in which it came."""
    spool = spool_in(tmp_path_factory.mktemp("spool"), limit_bytes=1 << 16)
    kept: list[int] = []
    found: list[int] = []
    for turn, count in enumerate(counts):
        kept += [n for n in range(100 * turn, 100 * turn + count) if spool.append(frame(n, size)) is not None]
        glimpse = spool.peek(takes[turn % len(takes)])
        found += [int.from_bytes(one[:4], "little") for one in glimpse.frames]
        spool.advance(glimpse.end)
    found += numbers_in(spool)
    spool.close()

    assert kept == found


def test_only_acknowledged_frames_are_deleted(private_dir: Path) -> None:
    """Looking takes nothing away; a segment goes once its last frame is acknowledged, and not before."""
    spool = spool_in(private_dir, limit_bytes=1 << 16)  # segments of 8 KiB
    fill(spool, 30)
    before = segments_in(spool)
    spool.peek(30)
    looked = segments_in(spool)
    glimpse = spool.peek(5)
    spool.advance(glimpse.ends[4])
    within = segments_in(spool)
    spool.advance(spool.peek(4).end)
    after = segments_in(spool)

    assert before == looked == within
    assert before[1:] == after
    assert list(range(9, 30)) == numbers_in(spool)


def test_files_are_for_their_owner_alone(private_dir: Path) -> None:
    """Directories are 0700 and files 0600."""
    spool = spool_in(private_dir)
    fill(spool, 1)
    modes = {stat.S_IMODE(path.stat().st_mode) for path in spool.directory.iterdir()}
    folders = {stat.S_IMODE(path.stat().st_mode) for path in (spool.directory, spool.directory.parent)}
    spool.close()

    assert modes == {0o600}
    assert folders == {0o700}


def test_a_full_spool_refuses_the_newest(private_dir: Path) -> None:
    """Within its bound it takes what comes, beyond it nothing; what was taken is there, and room comes back as frames leave."""
    spool = spool_in(private_dir, limit_bytes=1 << 15)
    kept = fill(spool, 50)
    used = sum(path.stat().st_size for path in segments_in(spool))
    statistics = spool.statistics()
    spool.advance(spool.peek(10).end)
    more = fill(spool, 1, first=100)
    found = numbers_in(spool)

    assert used <= 1 << 15
    assert kept == list(range(len(kept)))
    assert (used, 50 - len(kept), len(kept)) == (statistics.used_bytes, statistics.refused, statistics.appended)
    assert more == [100]
    assert found[-1] == 100


def test_the_bound_is_for_all_spools_together(private_dir: Path) -> None:
    """Many engines that share a directory do not fill the disk by being many."""
    first, second = spool_in(private_dir, 1 << 15, "a"), spool_in(private_dir, 1 << 15, "b")
    kept = fill(first, 20) + fill(second, 20)
    used = sum(path.stat().st_size for path in [*segments_in(first), *segments_in(second)])
    first.close()
    second.close()

    assert 20 < len(kept) < 40
    assert used <= 1 << 15


def test_what_a_killed_process_left_is_there_for_the_next(private_dir: Path) -> None:
    """A spool that was not closed is taken over whole; what is appended then comes behind it."""
    first = spool_in(private_dir)
    fill(first, 5)
    assert first._lock is not None
    os.close(first._lock)  # as the kernel does at a kill
    second = spool_in(private_dir)
    adopted = second.adopt()
    fill(second, 5, first=5)

    assert adopted
    assert list(range(10)) == numbers_in(second)


def test_a_spool_has_one_user(private_dir: Path) -> None:
    """Two processes never send or delete the same frames."""
    first = spool_in(private_dir)
    fill(first, 5)
    second = spool_in(private_dir)
    adopted = second.adopt()
    kept = fill(second, 1)
    first.close()
    third = spool_in(private_dir)

    assert (adopted, kept) == (False, [])
    assert third.adopt()
    assert list(range(5)) == numbers_in(third)


@pytest.mark.parametrize("cut", [1, 7, 8, 500, FRAME_BYTES + 7])
def test_a_torn_end_is_no_frame(cut: int, private_dir: Path) -> None:
    """What a kill cut off in the middle is skipped, whatever it hit; all before it is there, and so is all after it."""
    first = spool_in(private_dir)
    fill(first, 5)
    first.close()
    (segment,) = segments_in(first)
    os.truncate(segment, segment.stat().st_size - cut)
    second = spool_in(private_dir)
    second.adopt()
    fill(second, 2, first=10)

    assert numbers_in(second) == [0, 1, 2, 3, 10, 11]
    assert not second.directory.exists()


def test_a_changed_byte_is_no_frame(private_dir: Path) -> None:
    """A frame whose checksum does not hold is never sent."""
    first = spool_in(private_dir)
    fill(first, 3)
    first.close()
    (segment,) = segments_in(first)
    raw = bytearray(segment.read_bytes())
    raw[-FRAME_BYTES // 2] ^= 1
    segment.write_bytes(raw)
    second = spool_in(private_dir)
    second.adopt()

    assert numbers_in(second) == [0, 1]


@pytest.mark.parametrize("size", [4, 8, 100, 1500, 5000])
def test_a_full_disk_leaves_whole_frames(size: int, private_dir: Path) -> None:
    """A write that the system breaks off in the middle is refused and leaves nothing; with room again all goes on."""
    spool = spool_in(private_dir)
    with disk_full_beyond(size):
        kept = fill(spool, 10)
    kept += fill(spool, 10, first=10)
    found = numbers_in(spool)

    assert 10 <= len(kept) < 20
    assert kept == found


def test_a_disk_that_takes_nothing_is_no_error(private_dir: Path) -> None:
    """A directory that cannot be made refuses every frame, and nothing is raised."""
    (private_dir / "spool").write_text("a file stands here")
    spool = spool_in(private_dir)
    adopted = spool.adopt()
    kept = fill(spool, 3)
    spool.close()

    assert (adopted, kept) == (True, [])
    assert spool.is_empty


def test_a_spool_that_is_deleted_under_us_goes_on(private_dir: Path) -> None:
    """An operator who removes the directory loses what was in it, and nothing after it."""
    spool = spool_in(private_dir)
    fill(spool, 3)
    for path in spool.directory.iterdir():
        path.unlink()
    spool.directory.rmdir()
    lost = numbers_in(spool)
    kept = fill(spool, 2, first=10)

    assert lost == []
    assert kept == numbers_in(spool) == [10, 11]
