"""The new rows of a commit in the order in which they are stored, and tables cut from them: for events, and for projections.

Rows of one request stand together: so they take a quarter less room, and less time to write. Sorted here, once, and handed
to DuckDB as whole columns; it would sort each statement's rows by itself, and read what a statement leaves out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kvtrail_collector.projections import Projection
from kvtrail_collector.store.hot import ALL_COLUMNS, COMMON, COMMON_COLUMNS, WIDE, rare_rows

_NO_ID: Final = 2**64 - 1
_STREAM: Final = "stream_id"

Places = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Sheet:
    """Rows, and their places in the order of stream, request and seq."""

    rows: pa.Table
    order: Places
    kinds: NDArray[np.uint16]
    requests: pa.Table
    """The requests of the rows, each once: `stream_id` and `req`."""

    @classmethod
    def of(cls, rows: pa.Table) -> Self:
        """Put rows in order. About 0.2 µs a row; runs on the writer's thread, as all of this."""
        stream = rows[_STREAM].to_numpy()
        req = rows["req"].fill_null(pa.scalar(_NO_ID, pa.uint64())).to_numpy()
        order = np.lexsort((rows["seq"].to_numpy(), req, stream))
        stream, req = stream[order], req[order]
        first = np.ones(len(order), dtype=np.bool_)
        first[1:] = (req[1:] != req[:-1]) | (stream[1:] != stream[:-1])
        first &= req != _NO_ID
        return cls(rows, order, rows["kind"].to_numpy(), pa.table({_STREAM: stream[first], "req": req[first]}))

    def events(self) -> list[tuple[str, pa.Table]]:
        """What goes into each table of events; a table into which nothing goes is left out."""
        rare = rare_rows(self.rows)
        if rare is None:
            return [(COMMON, self._table(COMMON_COLUMNS, self.order))]
        sorted_rare = rare[self.order]
        common, wide = self.order[~sorted_rare], self.order[sorted_rare]
        cut = ((COMMON, COMMON_COLUMNS, common), (WIDE, ALL_COLUMNS, wide))
        return [(name, self._table(columns, places)) for name, columns, places in cut if len(places)]

    def source(self, projection: Projection) -> pa.Table:
        """The rows and columns that a projection looks at."""
        if not projection.kinds:
            return self.rows
        looked_at = np.zeros(2**16, dtype=np.bool_)
        looked_at[list(projection.kinds)] = True
        return _taken(self.rows.select([_STREAM, "kind", *projection.columns]), self.order[looked_at[self.kinds[self.order]]])

    def _table(self, columns: Sequence[str], places: Places) -> pa.Table:
        """Some rows with those of some columns in which anything stands: most of the others' cost is in handing them over."""
        used = [name for name in (_STREAM, *columns) if self.rows[name].null_count < self.rows.num_rows]
        return _taken(self.rows.select(used), places)


def _taken(table: pa.Table, places: Places) -> pa.Table:
    """Some rows of a table, each column in one piece."""
    return table.combine_chunks().take(pa.array(places, pa.int64())).combine_chunks()
