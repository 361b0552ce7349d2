"""Of a commit, rules are given what they look at: those rows and columns, stream by stream, in order."""

from __future__ import annotations

import pyarrow as pa
from kvtrail_collector.alerts.batch import NEEDED, Origin, rows_by_stream

from tests.collector.alerts.stories import ENGINE, NOW_S, prefetches, stored


def test_rows_come_stream_by_stream_in_order() -> None:
    """Whatever the order in which a commit has them."""
    one = stored(reversed(prefetches(NOW_S, used=2, wasted=3)))
    two = one.set_column(0, "stream_id", pa.array([2] * one.num_rows, pa.int32()))
    found = list(rows_by_stream(pa.concat_tables([two, one]), {1: Origin(ENGINE, 0, 0), 2: Origin(ENGINE, 1, 0)}))

    assert [0, 1] == [rows.origin.rank for rows in found]
    assert [[1, 2, 3, 4, 5]] * 2 == [rows.ints("seq").tolist() for rows in found]


def test_no_column_is_carried_along_that_nobody_asks_for() -> None:
    """An event has ninety columns, and a commit hundreds of thousands of events."""
    (rows,) = rows_by_stream(stored(prefetches(NOW_S, used=1)), {1: Origin(ENGINE, 0, 0)})

    assert set(NEEDED) == set(rows._table.column_names)
