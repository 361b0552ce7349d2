"""Events can leave the file: the table becomes `hot_events`, `events` a view that the store makes over hot and sealed ones."""

import sqlalchemy as sa
from alembic import op
from duckdb_engine import datatypes as duck

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Rename one table and add two; no row moves."""
    op.execute("ALTER TABLE events RENAME TO hot_events")
    op.create_table(
        "sealed_parts",
        sa.Column("part_id", sa.Integer, nullable=False),
        sa.Column("file", sa.Text, nullable=False),
        sa.Column("rows", sa.BigInteger, nullable=False),
        sa.Column("size_bytes", sa.BigInteger, nullable=False),
        sa.Column("last_wall_ns", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "sealed_ranges",
        sa.Column("part_id", sa.Integer, nullable=False),
        sa.Column("stream_id", sa.Integer, nullable=False),
        sa.Column("first_seq", duck.UBigInteger, nullable=False),
        sa.Column("last_seq", duck.UBigInteger, nullable=False),
    )
