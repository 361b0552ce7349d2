"""Events of a stretch of time as one Parquet file, that anything reads."""

from __future__ import annotations

import io
from typing import Final

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from kvtrail_collector.errors import QuestionInvalid
from kvtrail_collector.questions.scope import IN_STREAMS, Chosen

MOST_EVENTS: Final = 5_000_000
_EVENTS: Final = f"""
SELECT engine, epoch, rank, events.* EXCLUDE (stream_id) FROM events JOIN streams USING (stream_id)
WHERE {IN_STREAMS} AND t_ns >= $start_ns AND t_ns < $end_ns ORDER BY stream_id, seq LIMIT {MOST_EVENTS + 1}
"""  # noqa: S608  # constants of ours


def parquet_file(cursor: duckdb.DuckDBPyConnection, chosen: Chosen) -> bytes:
    """All columns of a scope's events, with their stream's names, in order of stream and seq. 150 bytes of memory an event.

    Raises:
        QuestionInvalid: there are more than `MOST_EVENTS`.
    """
    values = {"streams": chosen.streams, "start_ns": chosen.start_ns, "end_ns": chosen.end_ns}
    table = cursor.execute(_EVENTS, values).to_arrow_table()
    if table.num_rows > MOST_EVENTS:
        raise QuestionInvalid(
            f"there are more than {MOST_EVENTS:,} events in this window", where="window", do="ask for a shorter one"
        )
    return _written(table)


def _written(table: pa.Table) -> bytes:
    """A table as a file."""
    sink = io.BytesIO()
    pq.write_table(table, sink, compression="zstd")
    return sink.getvalue()
