"""A start reads every byte: what is whole is taken in, and what is not is found, told and removed."""

from pathlib import Path
from typing import Any

import pytest
from kvtrail_engine.nvme_settings import DirectIo, NvmeSettings
from kvtrail_engine.tiers.envelope import Origin
from kvtrail_engine.tiers.recovery import RecoveryStatistics
from kvtrail_schema.reasons import OrphanReason

from tests.engine.tiers.stores import OFF, ORIGIN, SIZE, SLOTS, block, data, fill, flip, opened, put, read, record_at

RECORD_BYTES = SIZE + 1024


def counts(found: RecoveryStatistics) -> dict[str, int]:
    """What a start counted, without zeros, sizes and times."""
    skipped = {"orphan_bytes", "read_bytes", "duration_ns"}
    return {name: value for name, value in found._asdict().items() if value and name not in skipped}


def test_records_are_taken_in_again(tmp_path: Path) -> None:
    """What one store wrote the next one serves, in the order in which it was written."""
    fill(tmp_path, put(5, 1, 1), put(2, 2, 2))
    with opened(tmp_path) as store:
        assert counts(store.recovery.statistics) == {"recovered": 2}
        assert [(2, 2), (1, 5)] == [(record.block.id, record.slot) for record in store.recovery.records]
        assert bytes(data(1)) == read(store, 5, block(1))


def test_every_torn_record_is_found_and_removed_once(tmp_path: Path) -> None:
    """A wrong byte in header, payload or trailer makes a record an orphan by its name; the next start finds nothing."""
    fill(tmp_path, *(put(slot, slot + 1, slot) for slot in range(SLOTS)))
    with opened(tmp_path) as store:
        places = [record_at(store, slot)[0] for slot in range(SLOTS)]
    path = next(tmp_path.iterdir())
    flip(path, places[1] + 40)
    flip(path, places[3] + 512 + 100)
    flip(path, places[6] + RECORD_BYTES - 1)
    with opened(tmp_path) as store:
        recovery = store.recovery
    with opened(tmp_path) as store:
        again = store.recovery.statistics

    assert counts(recovery.statistics) == {"recovered": 5, "torn": 3}
    assert {None, 4, 7} == {orphan.block for orphan in recovery.orphans}
    assert 3 * RECORD_BYTES == recovery.statistics.orphan_bytes
    assert counts(again) == {"recovered": 5}


@pytest.mark.parametrize("lost_bytes", [1, 512, 1000, RECORD_BYTES - 1])
def test_a_record_at_the_end_of_a_file_that_was_cut_off_is_torn(tmp_path: Path, lost_bytes: int) -> None:
    """A write that ended early is found, wherever it ended."""
    fill(tmp_path, put(0, 1, 1), put(1, 2, 2))
    path = next(tmp_path.iterdir())
    with path.open("r+b") as stream:
        stream.truncate(path.stat().st_size - lost_bytes)
    with opened(tmp_path) as store:
        assert counts(store.recovery.statistics) == {"recovered": 1, "torn": 1}


def test_of_two_records_of_one_block_the_later_one_counts(tmp_path: Path) -> None:
    """A block that was evicted and stored again has one place."""
    fill(tmp_path, put(4, 1, 1))
    fill(tmp_path, put(2, 1, 2))
    with opened(tmp_path) as store:
        assert counts(store.recovery.statistics) == {"recovered": 1, "unindexed": 1}
        assert bytes(data(2)) == read(store, 2, block(1))


def test_generations_go_on_where_they_ended(tmp_path: Path) -> None:
    """A later start never counts a generation again that lies in a file."""
    fill(tmp_path, put(0, 1, 1), put(1, 2, 2))
    fill(tmp_path, put(2, 3, 3))
    with opened(tmp_path) as store:
        generations = [record.generation for record in store.recovery.records]

    assert generations == sorted(set(generations))
    assert len(generations) == 3


def test_records_of_another_model_are_foreign(tmp_path: Path) -> None:
    """What other weights computed is removed, and told as one orphan a file."""
    fill(tmp_path, put(0, 1, 1), put(1, 2, 2))
    with opened(tmp_path, origin=Origin(ORIGIN.fingerprint + 1)) as store:
        assert counts(store.recovery.statistics) == {"foreign": 2}
        assert [(OrphanReason.FOREIGN, 2 * RECORD_BYTES)] == [(o.reason, o.size_bytes) for o in store.recovery.orphans]


@pytest.mark.parametrize("changes", [{"payload_bytes": 2 * SIZE}, {"settings": NvmeSettings(segment_bytes=1 << 20)}])
def test_a_file_of_another_form_is_foreign(tmp_path: Path, changes: dict[str, Any]) -> None:
    """A segment whose records are of another size, or elsewhere, is removed as a whole, whatever its name."""
    fill(tmp_path, put(0, 1, 1))
    with opened(tmp_path, **{"settings": OFF, **changes}) as store:
        assert counts(store.recovery.statistics) == {"foreign": 1}


def test_a_file_under_another_name_is_foreign(tmp_path: Path) -> None:
    """A name is no proof: a segment that says it is another one is not read."""
    fill(tmp_path, put(0, 1, 1))
    (tmp_path / "segment-00000.kv").rename(tmp_path / "segment-00001.kv")
    with opened(tmp_path) as store:
        assert counts(store.recovery.statistics) == {"foreign": 1}


def test_records_beyond_the_tiers_room_have_no_place(tmp_path: Path) -> None:
    """A tier that is smaller than before keeps what fits, and removes files that it needs no more."""
    settings = NvmeSettings(direct=DirectIo.OFF, segment_bytes=4 * RECORD_BYTES)
    fill(tmp_path, *(put(slot, slot + 1, slot) for slot in range(SLOTS)), settings=settings)
    with opened(tmp_path, settings, slots=3) as store:
        assert counts(store.recovery.statistics) == {"recovered": 3, "unindexed": 5}
    assert [path.name for path in tmp_path.iterdir()] == ["segment-00000.kv"]


def test_slots_beside_the_pools_are_not_taken_in(tmp_path: Path) -> None:
    """What a guest left in places of its own is in nobody's index."""
    fill(tmp_path, put(0, 1, 1), put(6, 2, 2))
    with opened(tmp_path, indexed=6) as store:
        assert counts(store.recovery.statistics) == {"recovered": 1, "unindexed": 1}


def test_a_file_that_was_being_made_is_removed(tmp_path: Path) -> None:
    """A crash in the making of a segment leaves nothing that is taken for one."""
    (tmp_path / "segment-00000.kv.tmp").write_bytes(b"begun")
    with opened(tmp_path) as store:
        assert counts(store.recovery.statistics) == {"tmp": 1}
        assert [5] == [orphan.size_bytes for orphan in store.recovery.orphans]


def test_a_tier_that_is_off_leaves_the_files(tmp_path: Path) -> None:
    """Without slots nothing is read and nothing is removed."""
    fill(tmp_path, put(0, 1, 1))
    with opened(tmp_path, slots=0) as store:
        assert counts(store.recovery.statistics) == {}
    with opened(tmp_path) as store:
        assert counts(store.recovery.statistics) == {"recovered": 1}
