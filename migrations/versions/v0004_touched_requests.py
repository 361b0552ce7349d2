"""Requests of which rows arrived are remembered, so that what follows from them can be computed outside ingest."""

import sqlalchemy as sa
from alembic import op
from duckdb_engine import datatypes as duck

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add one table, and every request that is stored to it: what is computed from them is computed once."""
    op.create_table(
        "touched_requests",
        sa.Column("stream_id", sa.Integer, nullable=False),
        sa.Column("req", duck.UBigInteger, nullable=False),
        sa.Column("touch", sa.BigInteger, nullable=False),
    )
    op.execute("INSERT INTO touched_requests SELECT stream_id, req, 1 FROM requests")
