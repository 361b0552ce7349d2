"""The tables of the store, as SQLAlchemy metadata; `migrations/` makes the same tables step by step, and a test compares.

Events have no primary key: it would cost a third of the ingest rate and 8 bytes a row, and the seq ranges already hold
what is stored. `id`s of streams keep the wide (engine, epoch, rank) out of every row.
"""

from typing import Any, Final

import sqlalchemy as sa
from duckdb_engine import datatypes as duck
from kvtrail_schema.arrow_schema import EXTRA
from kvtrail_schema.columns import COLUMNS, Width

from kvtrail_collector.store.hot import COMMON, COMMON_COLUMNS, WIDE

METADATA: Final = sa.MetaData()

U8: Final = duck.UTinyInteger
U16: Final = duck.USmallInteger
U32: Final = duck.UInteger
U64: Final = duck.UBigInteger

_SQL_TYPES: Final[dict[Width, type[sa.types.TypeEngine[Any]]]] = {
    Width.U8: U8,
    Width.U16: U16,
    Width.U32: U32,
    Width.U64: U64,
    Width.I16: sa.SmallInteger,
    Width.I64: sa.BigInteger,
    Width.F64: sa.Double,
    Width.BOOL: sa.Boolean,
    Width.TEXT: sa.Text,
    Width.TRACE: sa.Text,
}
_NEVER_NULL: Final = frozenset({"seq", "t_ns", "kind"})


def _stream_column() -> sa.Column[int]:
    """The column that says to which stream a row belongs."""
    return sa.Column("stream_id", sa.Integer, nullable=False, autoincrement=False)


STREAMS: Final = sa.Table(
    "streams",
    METADATA,
    _stream_column(),
    sa.Column("engine", sa.Text, nullable=False),
    sa.Column("epoch", U64, nullable=False),
    sa.Column("rank", U16, nullable=False),
)
"""One row per (engine, epoch, rank) ever heard of."""

STREAM_MARKS: Final = sa.Table(
    "stream_marks",
    METADATA,
    _stream_column(),
    sa.Column("produced", U64, nullable=False),
    sa.Column("state", U8, nullable=False),
    sa.Column("heard_wall_ns", sa.BigInteger, nullable=False),
    sa.Column("monotonic_ns", sa.BigInteger, nullable=False),
    sa.Column("wall_ns", sa.BigInteger, nullable=False),
    sa.Column("error_ns", sa.BigInteger, nullable=False),
)
"""What each stream last said of itself, and when this collector last heard of it."""

EVENTS: Final = sa.Table(
    WIDE,
    METADATA,
    _stream_column(),
    *(sa.Column(column.name, _SQL_TYPES[column.width], nullable=column.name not in _NEVER_NULL) for column in COLUMNS.values()),
    sa.Column(EXTRA, sa.Text),
)
"""Events with rare columns, until they are sealed. The view `events`, which a store makes when it is opened, has all."""

COMMON_EVENTS: Final = sa.Table(
    COMMON,
    METADATA,
    _stream_column(),
    *(sa.Column(name, _SQL_TYPES[COLUMNS[name].width], nullable=name not in _NEVER_NULL) for name in COMMON_COLUMNS),
)
"""Events that have none of the rare columns: most of them; see `hot.py`."""

SEALED_PARTS: Final = sa.Table(
    "sealed_parts",
    METADATA,
    sa.Column("part_id", sa.Integer, nullable=False, autoincrement=False),
    sa.Column("file", sa.Text, nullable=False),
    sa.Column("rows", sa.BigInteger, nullable=False),
    sa.Column("size_bytes", sa.BigInteger, nullable=False),
    sa.Column("last_wall_ns", sa.BigInteger, nullable=False),
)
"""The files of events that left the hot table; changes in the same transaction as it."""

SEALED_RANGES: Final = sa.Table(
    "sealed_ranges",
    METADATA,
    sa.Column("part_id", sa.Integer, nullable=False, autoincrement=False),
    _stream_column(),
    sa.Column("first_seq", U64, nullable=False),
    sa.Column("last_seq", U64, nullable=False),
)
"""Which seqs are in which sealed file."""

SEQ_RANGES: Final = sa.Table(
    "seq_ranges",
    METADATA,
    _stream_column(),
    sa.Column("first_seq", U64, nullable=False),
    sa.Column("last_seq", U64, nullable=False),
)
"""The set of seqs stored per stream; changes in the same transaction as the rows."""

DROP_RANGES: Final = sa.Table(
    "drop_ranges",
    METADATA,
    _stream_column(),
    sa.Column("stage", U8, nullable=False),
    sa.Column("reason", U8, nullable=False),
    sa.Column("first_seq", U64, nullable=False),
    sa.Column("last_seq", U64, nullable=False),
    sa.Column("count", U64, nullable=False),
)
"""The drops that senders declared. `count` is less than the span where a declaration covers seqs that were not dropped."""

SOURCE_POSITIONS: Final = sa.Table(
    "source_positions",
    METADATA,
    sa.Column("source", sa.Text, nullable=False),
    sa.Column("partition", sa.Integer, nullable=False, autoincrement=False),
    sa.Column("next_offset", sa.BigInteger, nullable=False),
    sa.Column("expired", sa.BigInteger, nullable=False),
)
"""How far each partition of a source is stored; changes in the same transaction as the rows."""

QUARANTINE: Final = sa.Table(
    "quarantine",
    METADATA,
    sa.Column("received_wall_ns", sa.BigInteger, nullable=False),
    sa.Column("reason", sa.Text, nullable=False),
    sa.Column("engine", sa.Text),
    sa.Column("size_bytes", sa.BigInteger, nullable=False),
    sa.Column("body", sa.LargeBinary, nullable=False),
    sa.Column("source", sa.Text),
    sa.Column("partition", sa.Integer),
    sa.Column("record_offset", sa.BigInteger),
)
"""Batches that could not be read: why, from whom, their first bytes, and where they still stand in their source."""

TOUCHED_REQUESTS: Final = sa.Table(
    "touched_requests",
    METADATA,
    _stream_column(),
    sa.Column("req", U64, nullable=False),
    sa.Column("touch", sa.BigInteger, nullable=False),
)
"""Requests of which rows arrived since somebody last computed what follows from them; see `touched.py`."""

TOUCHED_OPS: Final = sa.Table(
    "touched_ops",
    METADATA,
    _stream_column(),
    sa.Column("op", U64, nullable=False),
    sa.Column("touch", sa.BigInteger, nullable=False),
)
"""Transfers of which rows came late, until somebody finds out whose ledgers hang on them; see `late_ops.py`."""

REQUESTS: Final = sa.Table(
    "requests",
    METADATA,
    _stream_column(),
    sa.Column("req", U64, nullable=False),
    sa.Column("text", sa.Text),
    sa.Column("ns", U64),
    sa.Column("arrived_ns", sa.BigInteger),
    sa.Column("admitted_ns", sa.BigInteger),
    sa.Column("first_token_ns", sa.BigInteger),
    sa.Column("ended_ns", sa.BigInteger),
    sa.Column("end_kind", U16),
    sa.Column("prompt_tokens", U32),
    sa.Column("output_tokens", U32),
)
"""Projection: one row per request; times on the monotonic clock of its engine."""

OPS: Final = sa.Table(
    "ops",
    METADATA,
    _stream_column(),
    sa.Column("op", U64, nullable=False),
    sa.Column("req", U64),
    sa.Column("prefetch", U64),
    sa.Column("src", U8),
    sa.Column("dst", U8),
    sa.Column("tier", U8),
    sa.Column("queued_ns", sa.BigInteger),
    sa.Column("started_ns", sa.BigInteger),
    sa.Column("closed_ns", sa.BigInteger),
    sa.Column("queue_ns", U64),
    sa.Column("alloc_ns", U64),
    sa.Column("submit_ns", U64),
    sa.Column("io_ns", U64),
    sa.Column("copy_ns", U64),
    sa.Column("sync_ns", U64),
    sa.Column("bytes", U64, nullable=False),
    sa.Column("outcome", U8, nullable=False),
)
"""Projection: one row per op (one hop of one transfer); `tier` is its slower end, `outcome` an `OpOutcome`."""
