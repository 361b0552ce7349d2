"""Where events lie until they are sealed: two tables, and to which of them a row belongs.

A column costs DuckDB as much where nothing stands in it, and half of the columns are for a few rows in a hundred: samples,
declarations, estimates. So a row that has none of those lies in `hot_common`, which lacks them, and all others in
`hot_events`, which has every column. Each event is in one of the two; the view `events` has both.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from kvtrail_schema.arrow_schema import EXTRA
from kvtrail_schema.columns import COLUMNS
from numpy.typing import NDArray

WIDE: Final = "hot_events"
"""The table with every column."""

COMMON: Final = "hot_common"
"""The table with the common columns."""

HOT_TABLES: Final = (COMMON, WIDE)

COMMON_COLUMNS: Final = (
    *("seq", "t_ns", "kind", "ns", "req", "block", "parent", "tier", "src", "dst", "slot", "op", "prefetch", "step"),
    *("id", "cause", "bytes", "tokens", "token_start", "queue_ns", "alloc_ns", "submit_ns", "io_ns", "copy_ns", "sync_ns"),
    *("wait_ns", "duration_ns", "priority", "refs", "depth", "dtype", "path", "pinned", "numa", "queue", "reason"),
    *("prefill_tokens", "decode_tokens", "device_ns"),
)
"""The columns that stand on rows of blocks, transfers and steps, of which there are many."""

ALL_COLUMNS: Final = (*COLUMNS, EXTRA)
"""Every column of an event, behind `stream_id`."""

RARE_COLUMNS: Final = tuple(name for name in ALL_COLUMNS if name not in COMMON_COLUMNS)

_IN_COMMON: Final = ", ".join(f'"{name}"' for name in COMMON_COLUMNS)
_IN_WIDE: Final = ", ".join(f'"{name}"' for name in RARE_COLUMNS)

HOT_SQL: Final = f"""
SELECT stream_id, {_IN_COMMON}, {_IN_WIDE} FROM {WIDE}
UNION ALL BY NAME SELECT stream_id, {_IN_COMMON} FROM {COMMON}
"""  # noqa: S608  # names of ours
"""All events that are in the file, every column."""


class Cut(NamedTuple):
    """A cut through rows: how many of them lie before it, and how many of those are common."""

    rows: int
    common: int


class Spread:
    """Which rows of a table have rare columns, so that groups of common rows can be cut from it. Immutable; cheap to make."""

    def __init__(self, table: pa.Table) -> None:
        self._rows = table.num_rows
        self._places = np.flatnonzero(~rare) if (rare := rare_rows(table)) is not None else None

    @property
    def common(self) -> int:
        """How many rows are common."""
        return self._rows if self._places is None else len(self._places)

    def cut(self, taken: Cut, common: int) -> Cut:
        """The cut behind the next so many common rows after another cut; with the last of them come all rows that are left."""
        after = taken.common + common
        if after >= self.common:
            return Cut(self._rows, self.common)
        return Cut(after if self._places is None else int(self._places[after - 1]) + 1, after)


def rare_rows(table: pa.Table) -> NDArray[np.bool_] | None:
    """Which rows have a rare column; None where none has. Looks only at columns in which something stands."""
    found: NDArray[np.bool_] | None = None
    for name in RARE_COLUMNS:
        if table[name].null_count < table.num_rows:
            own = pc.is_valid(table[name]).to_numpy()
            found = own if found is None else found | own
    return found
