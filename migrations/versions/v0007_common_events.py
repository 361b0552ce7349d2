"""Events that have none of the rare columns get a table without them: it is written in half the time."""

from typing import Any

import sqlalchemy as sa
from alembic import op
from duckdb_engine import datatypes as duck

revision = "0007"
down_revision = "0005"
branch_labels = None
depends_on = None

_U8, _U16, _U32, _U64 = duck.UTinyInteger, duck.USmallInteger, duck.UInteger, duck.UBigInteger
_Type = type[sa.types.TypeEngine[Any]]

_FIELDS: list[tuple[_Type, str]] = [
    (_U64, "ns req block parent"),
    (_U8, "tier src dst"),
    (_U32, "slot"),
    (_U64, "op prefetch step id cause bytes"),
    (_U32, "tokens token_start"),
    (_U64, "queue_ns alloc_ns submit_ns io_ns copy_ns sync_ns wait_ns duration_ns"),
    (_U8, "priority"),
    (_U32, "refs depth"),
    (_U8, "dtype path"),
    (sa.Boolean, "pinned"),
    (sa.SmallInteger, "numa"),
    (_U16, "queue"),
    (_U8, "reason"),
    (_U64, "prefill_tokens decode_tokens device_ns"),
]


def upgrade() -> None:
    """Add one table; what is stored stays where it is."""
    op.create_table(
        "hot_common",
        sa.Column("stream_id", sa.Integer, nullable=False),
        sa.Column("seq", _U64, nullable=False),
        sa.Column("t_ns", sa.BigInteger, nullable=False),
        sa.Column("kind", _U16, nullable=False),
        *(sa.Column(name, kind) for kind, names in _FIELDS for name in names.split()),
    )
