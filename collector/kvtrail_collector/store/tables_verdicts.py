"""The tables of invariants watched as events come in, written by `invariants/kept.py`; part of the metadata of `tables.py`."""

from typing import Final

import sqlalchemy as sa

from kvtrail_collector.store.tables import METADATA, U8, U64

STREAM_VERDICTS: Final = sa.Table(
    "stream_verdicts",
    METADATA,
    sa.Column("stream_id", sa.Integer, nullable=False, autoincrement=False),
    sa.Column("code", sa.Text, nullable=False),
    sa.Column("tier", U8),
    sa.Column("what", sa.Text, nullable=False),
    sa.Column("cases", U64, nullable=False),
    sa.Column("seqs", sa.ARRAY(U64), nullable=False),
    sa.Column("first_ns", sa.BigInteger, nullable=False),
    sa.Column("last_ns", sa.BigInteger, nullable=False),
)
"""One row a stream, code, tier and sort of violation: how many, the first of them by seq, and when."""

STREAM_WATCHES: Final = sa.Table(
    "stream_watches",
    METADATA,
    sa.Column("stream_id", sa.Integer, nullable=False, autoincrement=False),
    sa.Column("until_seq", U64, nullable=False),
    sa.Column("missed", U64, nullable=False),
    sa.Column("unknown", sa.ARRAY(sa.Text), nullable=False),
)
"""How far each stream was looked at, how many seqs before that were not, and the codes of which something may be missed."""
