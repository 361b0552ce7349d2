"""Recorded runs in a folder: what the recorder's file transport wrote, and beside it the truth, which the diagnosis never sees.

They are kept, so that a run can be judged again after a detector has changed, without running the engine again.
"""

import shutil
from pathlib import Path
from typing import Final

import msgspec
import pyarrow as pa
from kvtrail_collector.questions.rows import event_rows, streams

from kvtrail_cli.recording_folder import stored_recording

_TRUTH: Final = "truth.json"
_EVENTS: Final = "events"


class StoredTruth(msgspec.Struct, frozen=True):
    """What was injected, as the run knew it, on the clock of the events."""

    faults: tuple[str, ...]
    seed: int
    strength: float
    start_ns: int | None
    end_ns: int | None
    seconds: float
    others_busy: float | None = None


def events_folder(folder: Path) -> Path:
    """Where the recorder of a run writes; made empty."""
    shutil.rmtree(folder, ignore_errors=True)
    events = folder / _EVENTS
    events.mkdir(parents=True, mode=0o700)
    return events


def complete(folder: Path, truth: StoredTruth) -> None:
    """Say that a recording is whole, and what it is of."""
    (folder / _TRUTH).write_bytes(msgspec.json.encode(truth))


def truth_of(folder: Path) -> StoredTruth | None:
    """What a recording is of; None where there is none, or one that was cut short."""
    path = folder / _TRUTH
    return msgspec.json.decode(path.read_bytes(), type=StoredTruth) if path.exists() else None


def table_of(folder: Path) -> pa.Table:
    """The events of a recording, through a store in memory, as every question gets them. A second or two."""
    with stored_recording(folder / _EVENTS) as store, store.read() as cursor:
        return event_rows(cursor, streams(cursor))
