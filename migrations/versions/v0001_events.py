"""The first tables: events, the books of each stream, quarantine, and the two projections."""

from typing import Any

import sqlalchemy as sa
from alembic import op
from duckdb_engine import datatypes as duck

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_U8, _U16, _U32, _U64 = duck.UTinyInteger, duck.USmallInteger, duck.UInteger, duck.UBigInteger
_I16, _I64, _F64, _BOOL, _TEXT = sa.SmallInteger, sa.BigInteger, sa.Double, sa.Boolean, sa.Text
_Type = type[sa.types.TypeEngine[Any]]

_EVENT_FIELDS: list[tuple[_Type, str]] = [
    (_U64, "ns req block parent"),
    (_U8, "tier src dst"),
    (_U32, "slot"),
    (_U64, "op prefetch step id cause bytes"),
    (_U32, "tokens token_start"),
    (_U64, "queue_ns alloc_ns submit_ns io_ns copy_ns sync_ns wait_ns duration_ns"),
    (_U64, "restore_estimate_ns recompute_estimate_ns keep_estimate_ns"),
    (_I64, "deadline_ns"),
    (_U8, "priority"),
    (_U32, "refs depth"),
    (_U8, "dtype path"),
    (_BOOL, "pinned"),
    (_I16, "numa device_numa"),
    (_U16, "device queue"),
    (_U8, "reason"),
    (_U64, "prefill_tokens decode_tokens device_ns"),
    (_U64, "tokens_gpu tokens_host tokens_nvme tokens_remote"),
    (_U64, "capacity_bytes used_bytes free_bytes pinned_bytes evictable_bytes"),
    (_U64, "in_flight pending_prefetch orphans largest_hole_bytes connections"),
    (_F64, "utilisation_pct idle_pct"),
    (_U64, "memory_bytes"),
    (_F64, "pcie_rx_bytes_per_s pcie_tx_bytes_per_s"),
    (_U64, "power_mw produced"),
    (_BOOL, "drained"),
    (_U8, "stage"),
    (_U64, "previous_epoch first_seq last_seq count"),
    (_F64, "value"),
    (_TEXT, "trace_id text"),
    (_TEXT, "extra"),
]


def _required(**types: _Type) -> list[sa.Column[Any]]:
    """Columns that always hold something."""
    return [sa.Column(name, kind, nullable=False) for name, kind in types.items()]


def _optional(**types: _Type) -> list[sa.Column[Any]]:
    """Columns that may be null."""
    return [sa.Column(name, kind) for name, kind in types.items()]


def upgrade() -> None:
    """Make the tables of an empty file."""
    _books()
    _events()
    _projections()


def _books() -> None:
    """What is known of each stream."""
    op.create_table("streams", *_required(stream_id=sa.Integer, engine=_TEXT, epoch=_U64, rank=_U16))
    marks = _required(produced=_U64, state=_U8, heard_wall_ns=_I64, monotonic_ns=_I64, wall_ns=_I64, error_ns=_I64)
    op.create_table("stream_marks", *_required(stream_id=sa.Integer), *marks)
    op.create_table("seq_ranges", *_required(stream_id=sa.Integer, first_seq=_U64, last_seq=_U64))
    drops = _required(stage=_U8, reason=_U8, first_seq=_U64, last_seq=_U64, count=_U64)
    op.create_table("drop_ranges", *_required(stream_id=sa.Integer), *drops)


def _events() -> None:
    """Every event, and every batch that was none."""
    fields = [sa.Column(name, kind) for kind, names in _EVENT_FIELDS for name in names.split()]
    op.create_table("events", *_required(stream_id=sa.Integer, seq=_U64, t_ns=_I64, kind=_U16), *fields)
    op.create_table(
        "quarantine",
        *_required(received_wall_ns=_I64, reason=_TEXT),
        sa.Column("engine", _TEXT),
        *_required(size_bytes=_I64, body=sa.LargeBinary),
    )


def _projections() -> None:
    """What is computed from events, and can be computed again."""
    moments = _optional(arrived_ns=_I64, admitted_ns=_I64, first_token_ns=_I64, ended_ns=_I64)
    outcome = _optional(end_kind=_U16, prompt_tokens=_U32, output_tokens=_U32)
    op.create_table("requests", *_required(stream_id=sa.Integer, req=_U64), *_optional(text=_TEXT, ns=_U64), *moments, *outcome)
    places = _optional(req=_U64, prefetch=_U64, src=_U8, dst=_U8, tier=_U8)
    times = _optional(queued_ns=_I64, started_ns=_I64, closed_ns=_I64)
    parts = _optional(queue_ns=_U64, alloc_ns=_U64, submit_ns=_U64, io_ns=_U64, copy_ns=_U64, sync_ns=_U64)
    op.create_table(
        "ops", *_required(stream_id=sa.Integer, op=_U64), *places, *times, *parts, *_required(bytes=_U64, outcome=_U8)
    )
