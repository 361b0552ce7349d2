"""The tables of ledgers, computed outside ingest by `ledger_keeper.py`; part of the same metadata as `tables.py`."""

from typing import Final

import sqlalchemy as sa

from kvtrail_collector.store.tables import METADATA, U8, U32, U64

REQUEST_LEDGERS: Final = sa.Table(
    "request_ledgers",
    METADATA,
    sa.Column("stream_id", sa.Integer, nullable=False, autoincrement=False),
    sa.Column("req", U64, nullable=False),
    sa.Column("ns", U64),
    sa.Column("prompt_tokens", U32),
    sa.Column("arrived_ns", sa.BigInteger, nullable=False),
    sa.Column("end_ns", sa.BigInteger, nullable=False),
    sa.Column("end_kind", U8, nullable=False),
    sa.Column("labels", sa.ARRAY(U32), nullable=False),
    sa.Column("parts_ns", sa.ARRAY(sa.BigInteger), nullable=False),
    sa.Column("hidden_ns", sa.ARRAY(sa.BigInteger), nullable=False),
)
"""One row a request that got its first token or ended without one: its ledger up to there.

`labels` are the codes of `ledger_codes.py`; the two lists beside it have what each label owns, and what of it was hidden.
`end_kind` is a place in `facts_columns.END_KINDS`; anything but 0 is censored.
"""

LEDGER_HOLES: Final = sa.Table(
    "ledger_holes",
    METADATA,
    sa.Column("stream_id", sa.Integer, nullable=False, autoincrement=False),
    sa.Column("start_ns", sa.BigInteger, nullable=False),
    sa.Column("end_ns", sa.BigInteger, nullable=False),
)
"""The holes that the ledgers of each stream were computed with; where they differ from now, ledgers are computed again."""
