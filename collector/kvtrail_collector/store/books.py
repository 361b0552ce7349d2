"""Reads the accounts of all streams back from the tables, when a store is opened."""

from collections import defaultdict
from typing import Final, TypeVar

import duckdb
from kvtrail_schema.batch import DropRange
from kvtrail_schema.clock import Clocks
from kvtrail_schema.identity import Epoch, Rank, Stream

from kvtrail_collector.store.account import Account, Marks
from kvtrail_collector.store.ranges import SeqRange, merged

_Row = TypeVar("_Row")

_RANGES: Final = "SELECT stream_id, first_seq, last_seq FROM seq_ranges"
_DROPS: Final = "SELECT stream_id, stage, reason, first_seq, last_seq, count FROM drop_ranges ORDER BY ALL"
_STREAMS: Final = """
SELECT stream_id, engine, epoch, rank, produced, state, heard_wall_ns, monotonic_ns, wall_ns, error_ns
FROM streams JOIN stream_marks USING (stream_id)
"""


def load_accounts(connection: duckdb.DuckDBPyConnection) -> dict[Stream, Account]:
    """The books as the last commit left them."""
    ranges = _grouped([(row[0], SeqRange(row[1], row[2])) for row in connection.execute(_RANGES).fetchall()])
    drops = _grouped([(row[0], DropRange(*row[1:])) for row in connection.execute(_DROPS).fetchall()])
    accounts: dict[Stream, Account] = {}
    for stream_id, engine, epoch, rank, produced, state, heard_wall_ns, *clocks in connection.execute(_STREAMS).fetchall():
        stream = Stream(engine, Epoch(epoch), Rank(rank))
        marks = Marks(produced, state, heard_wall_ns, Clocks(*clocks))
        accounts[stream] = Account(stream_id, stream, merged(ranges[stream_id]), tuple(drops[stream_id]), marks)
    return accounts


def _grouped(rows: list[tuple[int, _Row]]) -> defaultdict[int, list[_Row]]:
    """Rows by the stream that they belong to."""
    groups: defaultdict[int, list[_Row]] = defaultdict(list)
    for stream_id, row in rows:
        groups[stream_id].append(row)
    return groups
