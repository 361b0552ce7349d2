"""What happens with alerts is written down: those that fire or end, orders and their effect, webhooks that were given up."""

import sqlalchemy as sa
from alembic import op
from duckdb_engine import datatypes as duck

revision = "0011"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add two tables."""
    op.create_table(
        "alert_audit",
        sa.Column("wall_ns", sa.BigInteger, nullable=False),
        sa.Column("engine", sa.Text, nullable=False),
        sa.Column("what", sa.Text, nullable=False),
        sa.Column("subject", sa.Text, nullable=False),
        sa.Column("rule", sa.Text, nullable=False),
        sa.Column("version", duck.UBigInteger),
        sa.Column("detail", sa.Text, nullable=False),
    )
    op.create_table(
        "webhook_dead_letters",
        sa.Column("wall_ns", sa.BigInteger, nullable=False),
        sa.Column("target", sa.Text, nullable=False),
        sa.Column("webhook_id", sa.Text, nullable=False),
        sa.Column("engine", sa.Text, nullable=False),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
    )
