"""An engine's folder: private, one engine's at a time, and swept at the start."""

import stat
from pathlib import Path

import pytest
from kvtrail_engine.datadir import DataDir
from kvtrail_engine.engine import Engine
from kvtrail_engine.errors import SettingsError, StorageError
from kvtrail_engine.keys import load_or_create_key
from kvtrail_engine.testing import CollectingEmitter
from kvtrail_schema.events import OrphanFound, OrphanRemoved
from kvtrail_schema.reasons import OrphanReason

from tests.engine.engines import tiny


def test_two_engines_cannot_share_a_folder(data_dir: Path) -> None:
    """The second one says so and touches nothing; once the first has closed, the folder is free."""
    with Engine(tiny(data_dir)), pytest.raises(SettingsError, match="belongs to another engine"):
        Engine(tiny(data_dir))
    Engine(tiny(data_dir)).close()


def test_files_that_are_no_segments_are_found_and_removed(data_dir: Path, recorded: CollectingEmitter) -> None:
    """What is only named like a segment, or was being made, is told of by its size; other files are left alone."""
    (data_dir / "nvme").mkdir(parents=True)
    (data_dir / "nvme" / "segment-00009.kv").write_bytes(bytes(100))
    (data_dir / "nvme" / "segment-00000.kv.tmp").write_bytes(bytes(7))
    (data_dir / "nvme" / "notes.txt").write_text("mine")
    with Engine(tiny(data_dir), [recorded.as_emitter()]):
        pass

    found = [(event.bytes, event.reason) for event in recorded.of(OrphanFound)]

    assert found == [(7, OrphanReason.TMP), (100, OrphanReason.FOREIGN)]
    assert found == [(event.bytes, event.reason) for event in recorded.of(OrphanRemoved)]
    assert sorted(path.name for path in (data_dir / "nvme").iterdir()) == ["notes.txt", "segment-00000.kv"]


def test_the_key_is_made_once_and_private(tmp_path: Path) -> None:
    """Ids stay the same from start to start, and nobody else can make them."""
    path = tmp_path / "deep" / "identity.key"
    first, second = load_or_create_key(path), load_or_create_key(path)

    assert first == second
    assert len(first) == 32
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_folder_that_cannot_be_made_says_so(tmp_path: Path) -> None:
    """The system's refusal arrives as one of our errors."""
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError):
        DataDir(tmp_path / "file")
