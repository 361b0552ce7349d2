"""What a stretch of time is asked for: the streams, and the time, on one cursor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import duckdb
import numpy as np
import pyarrow as pa
from kvtrail_schema.identity import Stream
from kvtrail_schema.kinds import Kind

from kvtrail_collector.facts_rows import IntArray, Interval, Rows, rows_of_selection
from kvtrail_collector.ledger_open import seen
from kvtrail_collector.ledger_rows import holes_of, identity_of, last_ns
from kvtrail_collector.questions.rows import StreamRow
from kvtrail_collector.store.reach import LOOK_NS

MARGIN_NS: Final = 1_000_000_000
"""How long around the requests' lives others are looked at."""
_WANTED: Final = "wanted_in"


def numbers(*kinds: Kind) -> str:
    """Kinds for SQL."""
    return ", ".join(str(kind.value) for kind in kinds)


@dataclass(frozen=True, slots=True)
class Look:
    """Asks for rows of some streams, in the order in which their places are counted, around `span`. One thread.

    `near` is the span, and as much around it as others are looked at.
    """

    cursor: duckdb.DuckDBPyConnection
    streams: tuple[StreamRow, ...]
    span: Interval
    near: Interval

    @classmethod
    def at(cls, cursor: duckdb.DuckDBPyConnection, wanted: Sequence[StreamRow], span: Interval) -> Look:
        """A look at some streams, sorted by their names."""
        return cls(cursor, tuple(sorted(wanted, key=identity_of)), span, (span[0] - MARGIN_NS, span[1] + MARGIN_NS))

    def back_to(self, t_ns: int) -> Look:
        """The same, from a time on, but no further back than a minute."""
        return replace(self, near=(min(max(t_ns, self.near[0] - LOOK_NS), self.near[0]), self.near[1]))

    @property
    def ids(self) -> list[int]:
        """The ids of the streams."""
        return [stream.stream_id for stream in self.streams]

    @property
    def of_streams(self) -> str:
        """A condition on `stream_id`, in numbers: a list of parameters would be joined to every row."""
        return f"stream_id IN ({', '.join(map(str, self.ids))})" if self.ids else "false"

    def of_time(self, span: Interval | None = None) -> str:
        """A condition on `stream_id` and `t_ns`: near, unless another stretch is named."""
        low, high = span or self.near
        return f"{self.of_streams} AND t_ns BETWEEN {low} AND {high}"

    def table(self, sql: str) -> pa.Table:
        """What a question is answered."""
        return self.cursor.execute(sql).to_arrow_table()

    def table_about(self, sql: str, wanted: pa.Table) -> pa.Table:
        """As `table`, for a question that names the table `wanted_in`."""
        with seen(self.cursor, _WANTED, wanted):
            return self.table(sql)

    def places(self, stream_id: IntArray) -> IntArray:
        """The places of streams."""
        place = np.zeros(max(self.ids, default=0) + 1, dtype=np.int64)
        place[self.ids] = np.arange(len(self.streams))
        return np.asarray(place[stream_id], dtype=np.int64)

    def rows(self, table: pa.Table, holes: Sequence[Sequence[Interval]] = ()) -> Rows:
        """A selection of rows, as facts are built from."""
        names = [identity_of(stream) for stream in self.streams]
        known: dict[Stream, Sequence[Interval]] = dict(zip(names, holes or [()] * len(names), strict=True))
        return rows_of_selection(table, self.places(table["stream_id"].to_numpy()), known)

    def holes(self) -> list[list[Interval]]:
        """Where rows of each stream are missing."""
        return [holes_of(self.cursor, stream_id) for stream_id in self.ids]

    def last_ns(self) -> list[int]:
        """The latest time that is known of each stream."""
        return [last_ns(self.cursor, stream_id) for stream_id in self.ids]
