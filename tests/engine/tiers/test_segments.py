"""Records in segment files: believed only if they are what the index means."""

import os
import stat
from pathlib import Path

import pytest
from kvtrail_engine.errors import (
    ChecksumError,
    RecordExpiredError,
    RecordForeignError,
    RecordMissingError,
    RecordVersionError,
    StorageError,
    TransferError,
)
from kvtrail_engine.nvme_settings import DirectIo, FsyncPolicy, NvmeSettings
from kvtrail_engine.runtime.arena import Arena
from kvtrail_engine.settings import EngineSettings
from kvtrail_engine.tiers.block import Block
from kvtrail_engine.tiers.envelope import Keeping, Origin
from kvtrail_engine.tiers.geometry import Geometry
from kvtrail_engine.tiers.segments import Get, Put
from kvtrail_schema.enums import Dtype
from kvtrail_schema.identity import Slot
from torch import device

from tests.engine.tiers.stores import ORIGIN, SIZE, block, data, fill, opened, put, read, record_at

SMALL = NvmeSettings(direct=DirectIo.OFF, segment_bytes=4096)


@pytest.mark.parametrize("size", [SIZE, 100, 513])
def test_what_was_written_is_read(tmp_path: Path, size: int) -> None:
    """Records come back bit for bit, whatever their size, from any segment, in any order of asking."""
    with opened(tmp_path, SMALL, payload_bytes=size) as store:
        store.write([Put(Slot(slot), block(slot + 1), data(slot + 1, size)) for slot in (5, 1, 0, 7, 2, 6)], store.frames(2))
        found = {slot: read(store, slot, block(slot + 1)) for slot in (0, 1, 2, 5, 6, 7)}

    assert {slot: bytes([slot + 1]) * size for slot in (0, 1, 2, 5, 6, 7)} == found
    assert len(list(tmp_path.iterdir())) > 1


def test_neighbours_go_in_one_call() -> None:
    """A run ends where the next slot is not the next record, where a file ends, and at the thread's bound."""
    geometry = Geometry(payload_bytes=512, align_bytes=512, segment_slots=4)

    assert geometry.runs([Slot(s) for s in (1, 2, 3, 4, 5, 9)], 8) == [[0, 1, 2], [3, 4], [5]]
    assert geometry.runs([Slot(s) for s in (0, 1, 2)], 2) == [[0, 1], [2]]


def test_files_are_private(tmp_path: Path) -> None:
    """KV on disk is for nobody else's eyes."""
    fill(tmp_path, put(0, 1, 1))

    assert [0o600] == [stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()]


def test_files_stay_or_go_as_the_settings_say(tmp_path: Path) -> None:
    """A tier that does not outlive its engine leaves nothing, and takes nothing in."""
    fill(tmp_path, put(0, 1, 1))
    with opened(tmp_path, NvmeSettings(outlives_engine=False)) as store:
        recovered = store.statistics().recovery

    assert (0, 1) == (recovered.recovered, recovered.unindexed)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("meant", "error"),
    [
        (block(8), ChecksumError),
        (Block(block(7).id, block(7).ns, block(7).parent, 0, 32, "acme", "v1"), ChecksumError),
        (Block(block(7).id, block(7).ns, block(7).parent, 7 * 32, 16, "acme", "v1"), ChecksumError),
        (Block(block(7).id, block(7).ns, None, 7 * 32, 32, "acme", "v1"), ChecksumError),
        (block(7, content=5), ChecksumError),
        (block(7, ns=2), RecordForeignError),
        (block(7, owner="umbrella"), RecordForeignError),
        (block(7, model_version="v2"), RecordVersionError),
        (block(7, dtype=Dtype.FP16), RecordVersionError),
    ],
)
def test_a_record_that_differs_in_anything_is_refused(tmp_path: Path, meant: Block, error: type[TransferError]) -> None:
    """Another block, token range, prefix, content, namespace, owner, model version or dtype is not what was asked for."""
    with opened(tmp_path) as store:
        store.write([put(0, 7, 1)], store.frames(1))
        with pytest.raises(TransferError) as raised:
            read(store, 0, meant)

    assert error is type(raised.value)


def test_a_record_in_another_place_is_refused(tmp_path: Path) -> None:
    """A record that was copied to another slot is whole and yet not believed."""
    with opened(tmp_path) as store:
        store.write([put(0, 7, 1)], store.frames(1))
        path = next(tmp_path.iterdir())
        (source, size), (target, _) = record_at(store, 0), record_at(store, 3)
        with path.open("r+b") as stream:
            stream.seek(source)
            record = stream.read(size)
            stream.seek(target)
            stream.write(record)
        with pytest.raises(ChecksumError, match="slot 0"):
            read(store, 3, block(7))


def test_a_record_of_another_model_is_of_another_version(tmp_path: Path) -> None:
    """What the bits depend on beside the tokens is part of a record's identity."""
    with opened(tmp_path) as store:
        store.write([put(0, 7, 1)], store.frames(1))
        store.origin = Origin(fingerprint=ORIGIN.fingerprint + 1)
        with pytest.raises(RecordVersionError):
            read(store, 0, block(7))


def test_a_record_expires_by_the_wall_clock(tmp_path: Path) -> None:
    """From its expiry on a record is not read any more, and not taken in at the next start."""
    now_ns = 1_000
    with opened(tmp_path, wall_ns=lambda: now_ns) as store:
        store.write([put(0, 7, 1, keeping=Keeping(expires_ns=2_000))], store.frames(1))
        before = read(store, 0, block(7))
        now_ns = 2_000
        with pytest.raises(RecordExpiredError):
            read(store, 0, block(7))
    with opened(tmp_path, wall_ns=lambda: now_ns) as store:
        recovery = store.statistics().recovery

    assert bytes(data(1)) == before
    assert (0, 1) == (recovery.recovered, recovery.expired)


def test_an_empty_place_is_missing(tmp_path: Path) -> None:
    """Nothing written is told from something wrong, before the end of a file and behind it."""
    with opened(tmp_path) as store:
        store.write([put(3, 7, 1)], store.frames(1))
        for slot in (1, 5):
            with pytest.raises(RecordMissingError):
                read(store, slot, block(7))


def test_an_erased_record_is_gone_for_the_next_start_too(tmp_path: Path) -> None:
    """What was erased can be read by nobody, whoever opens the files."""
    with opened(tmp_path) as store:
        store.write([put(0, 7, 1), put(1, 8, 2)], store.frames(2))
        store.erase([Slot(0)])
        with pytest.raises(RecordMissingError):
            read(store, 0, block(7))
    with opened(tmp_path) as store:
        assert [8] == [record.block.id for record in store.recovery.records]
        assert (1, 0) == store.recovery.statistics[:2]


def test_one_bad_record_of_a_batch_leaves_the_others(tmp_path: Path) -> None:
    """A batch says which of its blocks are not to be believed, and gives the rest."""
    with opened(tmp_path) as store:
        store.write([put(slot, slot + 1, slot) for slot in range(4)], store.frames(4))
        buffers = [bytearray(SIZE) for _ in range(4)]
        gets = [Get(Slot(s), block(99 if s == 2 else s + 1), memoryview(buffers[s])) for s in range(4)]
        faults = store.read(gets, store.frames(4))
        counted = store.statistics()

    assert {99} == faults.keys()
    assert [bytes([value]) * SIZE for value in (0, 1, 3)] == [bytes(buffers[at]) for at in (0, 1, 3)]
    assert (4, 3, 1) == (counted.written_records, counted.read_records, counted.refused_records)


@pytest.mark.parametrize(("policy", "syncs"), [(FsyncPolicy.ALWAYS, 6), (FsyncPolicy.BATCH, 2), (FsyncPolicy.NEVER, 0)])
def test_records_are_made_safe_as_often_as_the_policy_says(tmp_path: Path, policy: FsyncPolicy, syncs: int) -> None:
    """Always: with every op. Batch: once enough has come together. Never: not by us."""
    settings = NvmeSettings(direct=DirectIo.OFF, fsync=policy, sync_bytes=3 * (SIZE + 1024))
    with opened(tmp_path, settings) as store:
        for slot in range(6):
            store.write([put(slot, slot + 1, 1)], store.frames(1))

        assert syncs == store.statistics().syncs


def test_direct_io_gives_the_same_bytes(tmp_path: Path) -> None:
    """Around the page cache, where the file system can, straight to and from an arena; where it cannot, the note says why."""
    settings = EngineSettings(data_dir=tmp_path)
    arena = Arena(settings, 4, device("cpu"))
    arena.data.normal_()
    with opened(tmp_path, NvmeSettings(direct=DirectIo.AUTO), payload_bytes=settings.block_bytes) as store:
        store.write([Put(Slot(slot), block(slot + 1), arena.buffer(slot)) for slot in (0, 1)], store.frames(2))
        store.read([Get(Slot(slot), block(slot + 1), arena.buffer(slot + 2)) for slot in (0, 1)], store.frames(2))
        note, flags = store.io.note, store.io.flags

    assert arena.data[:2].equal(arena.data[2:])
    assert (note == "on") == bool(flags & os.O_DIRECT)
    assert note == "on" or note.startswith("off: ")


def test_the_systems_refusal_becomes_ours(tmp_path: Path) -> None:
    """Whoever uses the store sees one sort of error."""
    place = tmp_path / "file"
    place.write_text("not a folder")
    with pytest.raises(StorageError), opened(place):
        pass


def test_reading_needs_no_room_of_its_own(tmp_path: Path) -> None:
    """Free space is what the file system says."""
    state = os.statvfs(tmp_path)
    with opened(tmp_path) as store:
        free_bytes = store.free_bytes()

    assert 0 < free_bytes <= state.f_blocks * state.f_frsize


def test_names_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    """An owner whose name has no room in a record is not cut short."""
    long = block(1, owner="x" * 600)
    with opened(tmp_path) as store, pytest.raises(StorageError, match="too long for a record"):
        store.write([Put(Slot(0), long, data(1))], store.frames(1))
