"""Ledgers are kept: one row a request, with what it spent on each part, so that a spike is explained without its events."""

import sqlalchemy as sa
from alembic import op
from duckdb_engine import datatypes as duck

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add two tables; requests that are stored are touched since 0004, so their ledgers follow."""
    op.create_table(
        "request_ledgers",
        sa.Column("stream_id", sa.Integer, nullable=False),
        sa.Column("req", duck.UBigInteger, nullable=False),
        sa.Column("ns", duck.UBigInteger),
        sa.Column("prompt_tokens", duck.UInteger),
        sa.Column("arrived_ns", sa.BigInteger, nullable=False),
        sa.Column("end_ns", sa.BigInteger, nullable=False),
        sa.Column("end_kind", duck.UTinyInteger, nullable=False),
        sa.Column("labels", sa.ARRAY(duck.UInteger), nullable=False),
        sa.Column("parts_ns", sa.ARRAY(sa.BigInteger), nullable=False),
        sa.Column("hidden_ns", sa.ARRAY(sa.BigInteger), nullable=False),
    )
    op.create_table(
        "ledger_holes",
        sa.Column("stream_id", sa.Integer, nullable=False),
        sa.Column("start_ns", sa.BigInteger, nullable=False),
        sa.Column("end_ns", sa.BigInteger, nullable=False),
    )
