"""A ring's file: private, reserved, locked by the living, refused when it is not what it should be."""

import errno
import os
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from kvtrail_agent import ring_layout
from kvtrail_agent.errors import RingError
from kvtrail_agent.ring_file import create_ring, open_ring
from kvtrail_schema.identity import Epoch, Rank, Stream

from tests.agent.rings import SMALLEST_SLOTS, SMALLEST_TEXTS, STREAM, make_ring


def descriptors_of(path: Path) -> list[str]:
    """The descriptors of this process that are open on a file, or on what lay in a folder."""
    found = []
    for descriptor in Path("/proc/self/fd").iterdir():
        with suppress(OSError):  # another thread closed it
            found += [descriptor.name] if str(descriptor.readlink()).startswith(str(path)) else []
    return found


def test_the_reader_finds_what_the_writer_stated(private_dir: Path) -> None:
    """Engine, epoch, rank and sizes stand in the file; the name may be any text of up to 256 bytes."""
    stream = Stream("größe" * 36, Epoch(2**64 - 2), Rank(65534))
    made = create_ring(private_dir / "a.ring", stream, 128, 8192)
    found = open_ring(private_dir / "a.ring")
    made.close()
    found.close()

    assert (stream, 128, 8192) == (found.stream, found.slot_count, found.text_bytes)


def test_the_file_is_private_and_reserved(private_dir: Path) -> None:
    """Only its owner may read the file, and every page of it has its room from the start."""
    ring = make_ring(private_dir)
    ring.close()
    found = ring.path.stat()

    assert stat.S_IMODE(found.st_mode) == 0o600
    assert found.st_blocks * 512 >= found.st_size


def test_death_is_seen_by_the_lock(private_dir: Path) -> None:
    """A writer is alive for as long as it holds the lock, and dead the moment that it lets go."""
    ring = make_ring(private_dir)
    reader = open_ring(ring.path)
    alive = reader.writer_is_dead()
    ring.close()
    dead = reader.writer_is_dead()
    reader.close()

    assert (alive, dead) == (False, True)


@pytest.mark.parametrize("slot_count", [0, 32, 96, 1 << 25, -64])
def test_impossible_slot_counts_are_refused(slot_count: int, private_dir: Path) -> None:
    """The error names the number and what is possible, and no file is left."""
    with pytest.raises(RingError, match=f"slot_count is {slot_count}: use a power of two from 64 to 16777216"):
        create_ring(private_dir / "a.ring", STREAM, slot_count, SMALLEST_TEXTS)

    assert list(private_dir.iterdir()) == []


@pytest.mark.parametrize("text_bytes", [0, 4095, 4097, -8])
def test_impossible_text_areas_are_refused(text_bytes: int, private_dir: Path) -> None:
    """The error names the number and what is possible."""
    with pytest.raises(RingError, match=f"text_bytes is {text_bytes}: use a multiple of 8 of at least 4096"):
        create_ring(private_dir / "a.ring", STREAM, SMALLEST_SLOTS, text_bytes)


def test_names_that_do_not_fit_are_refused(private_dir: Path) -> None:
    """A name is counted in bytes, not in characters."""
    with pytest.raises(RingError, match="must take 1 to 256 bytes"):
        create_ring(private_dir / "a.ring", Stream("ü" * 129, Epoch(1), Rank(0)), SMALLEST_SLOTS, SMALLEST_TEXTS)


def test_a_full_file_system_is_an_error_at_start(private_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No room says what to set, and neither a file nor a descriptor stays behind."""

    def no_room(_descriptor: int, _offset: int, _size: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", no_room)
    with pytest.raises(RingError, match="No space left on device; set ring_dir or slot_count"):
        create_ring(private_dir / "a.ring", STREAM, SMALLEST_SLOTS, SMALLEST_TEXTS)

    assert list(private_dir.iterdir()) == []
    assert [] == descriptors_of(private_dir)


def test_an_existing_file_is_not_touched(private_dir: Path) -> None:
    """A ring never overwrites what lies there."""
    path = private_dir / "a.ring"
    path.write_bytes(b"mine")
    with pytest.raises(RingError, match="File exists"):
        create_ring(path, STREAM, SMALLEST_SLOTS, SMALLEST_TEXTS)

    assert path.read_bytes() == b"mine"


def other_version(content: bytes) -> bytes:
    """The same ring, as another version of the layout would have written it."""
    return content[:8] + (ring_layout.LAYOUT_VERSION + 1).to_bytes(4, "little") + content[12:]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda _: b"", "cannot open"),
        (lambda _: b"short", "is no ring"),
        (lambda content: content[:-1], "is no ring"),
        (lambda content: bytes(len(content)), "is no ring"),
        (other_version, "is no ring of layout"),
    ],
    ids=["empty", "short", "cut", "still being made", "another version"],
)
def test_what_is_no_ring_is_refused(change: Callable[[bytes], bytes], problem: str, private_dir: Path) -> None:
    """A reader opens whole rings of its own layout only, says why it does not open others, and keeps no descriptor."""
    ring = make_ring(private_dir)
    ring.close()
    path = private_dir / "changed.ring"
    path.write_bytes(change(ring.path.read_bytes()))
    with pytest.raises(RingError, match=problem):
        open_ring(path)

    assert [] == descriptors_of(path)


def test_a_missing_ring_is_named(private_dir: Path) -> None:
    """The error names the path."""
    with pytest.raises(RingError, match=f"cannot open the ring {private_dir}/none.ring"):
        open_ring(private_dir / "none.ring")
