"""Invariants that are found broken as events come in are kept, with how far each stream was looked at."""

import sqlalchemy as sa
from alembic import op
from duckdb_engine import datatypes as duck

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add two tables."""
    op.create_table(
        "stream_verdicts",
        sa.Column("stream_id", sa.Integer, nullable=False, autoincrement=False),
        sa.Column("code", sa.Text, nullable=False),
        sa.Column("tier", duck.UTinyInteger),
        sa.Column("what", sa.Text, nullable=False),
        sa.Column("cases", duck.UBigInteger, nullable=False),
        sa.Column("seqs", sa.ARRAY(duck.UBigInteger), nullable=False),
        sa.Column("first_ns", sa.BigInteger, nullable=False),
        sa.Column("last_ns", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "stream_watches",
        sa.Column("stream_id", sa.Integer, nullable=False, autoincrement=False),
        sa.Column("until_seq", duck.UBigInteger, nullable=False),
        sa.Column("missed", duck.UBigInteger, nullable=False),
        sa.Column("unknown", sa.ARRAY(sa.Text), nullable=False),
    )
