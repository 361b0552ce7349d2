"""How far each partition of a source is stored, and where a record that could not be read still stands in its source."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add one table and three columns; what is stored stays as it is."""
    op.create_table(
        "source_positions",
        sa.Column("source", sa.Text, nullable=False),
        sa.Column("partition", sa.Integer, nullable=False),
        sa.Column("next_offset", sa.BigInteger, nullable=False),
        sa.Column("expired", sa.BigInteger, nullable=False),
    )
    op.add_column("quarantine", sa.Column("source", sa.Text))
    op.add_column("quarantine", sa.Column("partition", sa.Integer))
    op.add_column("quarantine", sa.Column("record_offset", sa.BigInteger))
