"""Views that people query: what follows from events and projections, computed when it is asked for, never stored.

They are made when a store is opened, so that they follow the code, and so that a query sees every committed row. Numbers of
enums have names by the macros `kind_name`, `tier_name`, `reason_name`, `outcome_name`. What each view promises: docs/store.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Final

import duckdb
from kvtrail_schema.enums import Dtype, Path, Reason, Stage, Tier
from kvtrail_schema.kinds import Kind
from kvtrail_schema.reasons import DropReason

from kvtrail_collector.projections.ops import OpOutcome
from kvtrail_collector.projections.view_copies import RESIDENCY
from kvtrail_collector.projections.view_ledgers import REQUEST_PARTS
from kvtrail_collector.projections.view_minutes import TENANT_MINUTES, TIER_MINUTES
from kvtrail_collector.projections.view_prefetches import PREFETCHES
from kvtrail_collector.projections.view_queues import QUEUE_OCCUPANCY
from kvtrail_collector.projections.view_stream import GAPS, PARTS
from kvtrail_collector.projections.view_verdicts import VERDICTS

NAMES: Final[Mapping[str, type[IntEnum]]] = {
    "kind_name": Kind,
    "tier_name": Tier,
    "reason_name": Reason,
    "dtype_name": Dtype,
    "path_name": Path,
    "stage_name": Stage,
    "drop_reason_name": DropReason,
    "outcome_name": OpOutcome,
}
"""Each macro, and the numbers that it knows names of; it gives back null for others."""

VIEWS: Final[Mapping[str, str]] = {
    "prefetches": PREFETCHES,
    "residency": RESIDENCY,
    "queue_occupancy": QUEUE_OCCUPANCY,
    "tier_minutes": TIER_MINUTES,
    "tenant_minutes": TENANT_MINUTES,
    "request_parts": REQUEST_PARTS,
    "gaps": GAPS,
    "parts": PARTS,
    "verdicts": VERDICTS,
}
"""Each view, and what it selects."""


def make_views(connection: duckdb.DuckDBPyConnection) -> None:
    """Make or replace all macros and views. Runs while the store is opened; milliseconds. The view `events` is there."""
    for name, numbers in NAMES.items():
        connection.execute(f"CREATE OR REPLACE MACRO {name}(number) AS {_names(numbers)}")
    for name, select in VIEWS.items():
        connection.execute(f"CREATE OR REPLACE VIEW {name} AS {select}")


def _names(numbers: type[IntEnum]) -> str:
    """An SQL expression from a number to its name."""
    cases = " ".join(f"WHEN {member.value} THEN '{member.name.lower()}'" for member in numbers)
    return f"CASE number {cases} END"
