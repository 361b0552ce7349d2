"""Events of a stretch of time as one Parquet file, that anything reads."""

from __future__ import annotations

import io
from typing import Final

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from kvtrail_collector.errors import QuestionInvalid
from kvtrail_collector.export.shapes import nothing_there
from kvtrail_collector.questions.scope import IN_STREAMS, Chosen

MOST_EVENTS: Final = 5_000_000
ROWS_AT_ONCE: Final = 65_536
_NAMES: Final = ("engine", "epoch", "rank")
_ALWAYS: Final = frozenset({*_NAMES, "seq", "t_ns", "kind"})
_FROM: Final = f"FROM events JOIN streams USING (stream_id) WHERE {IN_STREAMS} AND t_ns >= $start_ns AND t_ns < $end_ns"
_COLUMNS: Final = "SELECT engine, epoch, rank, events.* EXCLUDE (stream_id) FROM events JOIN streams USING (stream_id) LIMIT 0"


def parquet_file(cursor: duckdb.DuckDBPyConnection, chosen: Chosen) -> bytes:
    """All columns of a scope's events, with their stream's names, in order of stream and seq.

    Takes some 200 bytes of memory an event: for the columns in which the scope has a value, which the database sorts, and for
    the file that comes of it.

    Raises:
        NotFound: there are none: an empty file must not take the place of one with events.
        QuestionInvalid: there are more than `MOST_EVENTS`.
    """
    values = {"streams": chosen.streams, "start_ns": chosen.start_ns, "end_ns": chosen.end_ns}
    cursor.begin()  # columns are chosen, and then read, of the same events
    try:
        schema = cursor.execute(_COLUMNS).to_arrow_table().schema
        filled = _filled(cursor, schema, values)
        listed = ", ".join(f'"{name}"' for name in filled)
        cursor.execute(f"SELECT {listed} {_FROM} ORDER BY stream_id, seq", values)
        return _written(cursor.to_arrow_reader(ROWS_AT_ONCE), schema)
    finally:
        cursor.rollback()


def _filled(cursor: duckdb.DuckDBPyConnection, schema: pa.Schema, values: dict[str, object]) -> list[str]:
    """The columns that have a value in one of the events: of some ninety, mostly a third.

    Raises:
        NotFound: there are no events.
        QuestionInvalid: there are too many.
    """
    counted = ", ".join(f'count("{name}")' for name in schema.names)
    counts = cursor.execute(f"SELECT count(*), {counted} {_FROM}", values).fetchone() or (0,)
    if not counts[0]:
        raise nothing_there()
    if counts[0] > MOST_EVENTS:
        raise QuestionInvalid(
            f"there are more than {MOST_EVENTS:,} events in this window", where="window", do="ask for a shorter one"
        )
    return [name for name, count in zip(schema.names, counts[1:], strict=True) if count or name in _ALWAYS]


def _written(batches: pa.RecordBatchReader, schema: pa.Schema) -> bytes:
    """Rows as a file, some of them at a time; columns without a value are there, and empty."""
    sink = io.BytesIO()
    with pq.ParquetWriter(sink, schema, compression="zstd") as writer:
        for batch in batches:
            rows = batch.num_rows
            columns = [
                batch[field.name] if field.name in batch.schema.names else pa.nulls(rows, field.type) for field in schema
            ]
            writer.write_batch(pa.record_batch(columns, schema=schema))
    return sink.getvalue()
