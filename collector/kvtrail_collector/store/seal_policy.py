"""When events leave the hot file, and when they leave for good."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kvtrail_collector.store.backlog import ROW_GROUP

PART_ROWS: Final = 8 * ROW_GROUP


@dataclass(frozen=True, slots=True)
class SealPolicy:
    """Where sealed files lie, from which age events are sealed, and how much of them is kept.

    A part is made of `part_rows` rows, or of fewer once the oldest is twice as old as `seal_after_ns`. `retention_ns` and
    `retention_bytes` are None for no bound; bytes are those of the sealed files. `every_s` 0 leaves sealing to the caller.
    """

    folder: Path
    seal_after_ns: int
    retention_ns: int | None = None
    retention_bytes: int | None = None
    part_rows: int = PART_ROWS
    every_s: float = 5.0
