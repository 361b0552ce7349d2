"""The tables of what happened with alerts, written by `alerts/audit.py`; part of the same metadata as `tables.py`."""

from typing import Final

import sqlalchemy as sa

from kvtrail_collector.store.tables import METADATA, U64

ALERT_AUDIT: Final = sa.Table(
    "alert_audit",
    METADATA,
    sa.Column("wall_ns", sa.BigInteger, nullable=False),
    sa.Column("engine", sa.Text, nullable=False),
    sa.Column("what", sa.Text, nullable=False),
    sa.Column("subject", sa.Text, nullable=False),
    sa.Column("rule", sa.Text, nullable=False),
    sa.Column("version", U64),
    sa.Column("detail", sa.Text, nullable=False),
)
"""Each alert that fired or ended, each order, what became of its webhook, and what events say of its effect."""

WEBHOOK_DEAD_LETTERS: Final = sa.Table(
    "webhook_dead_letters",
    METADATA,
    sa.Column("wall_ns", sa.BigInteger, nullable=False),
    sa.Column("target", sa.Text, nullable=False),
    sa.Column("webhook_id", sa.Text, nullable=False),
    sa.Column("engine", sa.Text, nullable=False),
    sa.Column("attempts", sa.Integer, nullable=False),
    sa.Column("reason", sa.Text, nullable=False),
    sa.Column("body", sa.LargeBinary, nullable=False),
)
"""Webhooks that were given up: refused, too late, or made needless by a newer one."""
