"""Records in segment files: believed only if they are what the index means."""

import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kvtrail_engine.errors import ChecksumError, RecordMissingError, StorageError, TransferError
from kvtrail_engine.tiers.pool import Block
from kvtrail_engine.tiers.record import HEADER_BYTES, check_record, pack_header
from kvtrail_engine.tiers.segments import SEGMENT_SLOTS, SegmentStore
from kvtrail_schema.identity import BlockId, NamespaceId, Slot

SIZE = 256
BLOCK = Block(BlockId(7), NamespaceId(1), BlockId(6), 32, 32)
OTHER = Block(BlockId(8), NamespaceId(1), BlockId(6), 32, 32)


def data(value: int) -> memoryview:
    """A payload."""
    return memoryview(bytes([value]) * SIZE)


def test_what_was_written_is_read(tmp_path: Path) -> None:
    """A record comes back bit for bit, also from the second segment."""
    store, slot, into = SegmentStore(tmp_path, SEGMENT_SLOTS + 2, SIZE), Slot(SEGMENT_SLOTS + 1), bytearray(SIZE)
    store.write(slot, BLOCK, data(3))
    store.read(slot, BLOCK, memoryview(into))
    store.close()

    assert data(3) == into


def test_files_are_private_and_go_with_the_store(tmp_path: Path) -> None:
    """KV on disk is for nobody else's eyes, and does not outlive its engine."""
    store = SegmentStore(tmp_path, 1, SIZE)
    modes = [stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()]
    store.close()

    assert modes == [0o600]
    assert list(tmp_path.iterdir()) == []


def test_a_record_of_another_block_is_refused(tmp_path: Path) -> None:
    """A place in a file is no proof of what lies there."""
    store = SegmentStore(tmp_path, 4, SIZE)
    store.write(Slot(0), OTHER, data(1))
    with pytest.raises(ChecksumError, match="0000000000000007"):
        store.read(Slot(0), BLOCK, memoryview(bytearray(SIZE)))
    store.close()


def test_an_empty_place_is_missing(tmp_path: Path) -> None:
    """Nothing written is told from something wrong."""
    store = SegmentStore(tmp_path, 4, SIZE)
    store.write(Slot(3), BLOCK, data(1))
    with pytest.raises(RecordMissingError):
        store.read(Slot(1), BLOCK, memoryview(bytearray(SIZE)))
    store.close()


def test_the_systems_refusal_becomes_ours(tmp_path: Path) -> None:
    """Whoever uses the store sees one sort of error."""
    place = tmp_path / "file"
    place.write_text("not a folder")
    with pytest.raises(StorageError):
        SegmentStore(place, 4, SIZE)


@given(at=st.integers(0, HEADER_BYTES + SIZE - 1), bit=st.integers(0, 7))
def test_any_flipped_bit_is_noticed(at: int, bit: int) -> None:
    """No single bit of header or payload can be wrong and be believed."""
    record = bytearray(pack_header(BLOCK, data(9)) + bytes(data(9)))
    record[at] ^= 1 << bit
    with pytest.raises(TransferError):
        check_record(record[:HEADER_BYTES], memoryview(record)[HEADER_BYTES:], BLOCK)


def test_reading_needs_no_room_of_its_own(tmp_path: Path) -> None:
    """Free space is what the file system says."""
    store = SegmentStore(tmp_path, 4, SIZE)
    state = os.statvfs(tmp_path)
    free_bytes = store.free_bytes()
    store.close()

    assert 0 < free_bytes <= state.f_blocks * state.f_frsize
