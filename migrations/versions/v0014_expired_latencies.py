"""What requests felt that expired stays in the histograms: a counter never falls."""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add a table."""
    op.create_table(
        "expired_latencies",
        sa.Column("engine", sa.Text, nullable=False),
        sa.Column("measure", sa.Text, nullable=False),
        sa.Column("at_most_ms", sa.Double, nullable=False),
        sa.Column("requests", sa.BigInteger, nullable=False),
        sa.Column("total_ns", sa.BigInteger, nullable=False),
    )
