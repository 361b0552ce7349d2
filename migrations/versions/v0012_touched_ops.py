"""Transfers of which rows came late are put down, so that ledgers which hang on them are computed again."""

import sqlalchemy as sa
from alembic import op
from duckdb_engine import datatypes as duck

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add one table; every request is touched, as rows that came late before this step touched none."""
    op.create_table(
        "touched_ops",
        sa.Column("stream_id", sa.Integer, nullable=False),
        sa.Column("op", duck.UBigInteger, nullable=False),
        sa.Column("touch", sa.BigInteger, nullable=False),
    )
    op.execute("INSERT INTO touched_requests SELECT stream_id, req, 1 FROM request_ledgers")
