"""Tenants for people: what each got, what it holds, and where it met the borders of others."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from kvtrail_dashboards.compute.bytes import size
from kvtrail_dashboards.compute.names import Names, name_of
from kvtrail_dashboards.compute.now import Mood, Tile
from kvtrail_dashboards.compute.wall import moment
from kvtrail_dashboards.page_answers import Deletion, Holding, TenantAccount, Tenants

_NS_PER_MS: Final = 1e6
MOST_DELETIONS: Final = 100
"""So many a collector tells, the newest."""


@dataclass(frozen=True, slots=True)
class TenantLine:
    """One tenant as a line."""

    name: str
    tenant: str
    requests: int
    p50_ms: float | None
    p95_ms: float | None
    p99_ms: float | None
    holds: str
    refused: int
    evicted: int
    foreign: int
    stale: int


@dataclass(frozen=True, slots=True)
class DeletionLine:
    """One deletion as a line, with the event that proves it."""

    at: datetime
    reason: str
    selector: str
    copies: str
    lasted_ms: float | None
    event: str


def tenant_tiles(tenants: Tenants) -> tuple[Tile, ...]:
    """What is to be watched over all tenants."""
    foreign = sum(one.foreign_misses for one in tenants.tenants)
    stale = sum(one.version_misses for one in tenants.tenants)
    refused = sum(one.refused_by_quota + one.evicted_by_quota for one in tenants.tenants)
    return (
        Tile(
            "Tenants",
            f"{len(tenants.tenants) + tenants.tenants_left_out:,}",
            f"{sum(one.requests for one in tenants.tenants):,} requests",
        ),
        _foreign_tile(foreign, has_lookups=tenants.has_lookups),
        Tile("Kept from old versions", f"{stale:,}", "lookups that met a block of another model version, and missed"),
        Tile(
            "Held back by quotas", f"{refused:,}", "requests refused, and copies evicted", Mood.FAIR if refused else Mood.PLAIN
        ),
        _deletions_tile(tenants),
    )


def is_cut(tenants: Tenants) -> bool:
    """Whether the collector may have left out older deletions: it answers with the newest `MOST_DELETIONS`."""
    return len(tenants.deletions) >= MOST_DELETIONS


def tenant_lines(tenants: Tenants, names: Names) -> tuple[TenantLine, ...]:
    """Tenants, the one with most requests first."""
    return tuple(_line(one, names) for one in tenants.tenants)


def deletion_lines(tenants: Tenants) -> tuple[DeletionLine, ...]:
    """Deletions, the newest first."""
    return tuple(_deletion(one) for one in tenants.deletions)


def _foreign_tile(foreign: int, *, has_lookups: bool) -> Tile:
    """How often a border held; where nobody looked for a block, nothing is known of borders."""
    label = "Kept from foreign blocks"
    if not foreign and not has_lookups:
        return Tile(label, "not known", "no block was looked for in this stretch of time")
    told = "lookups that met a block of others, and missed; each is isolation at work"
    return Tile(label, f"{foreign:,}", told, Mood.FAIR if foreign else Mood.GOOD)


def _deletions_tile(tenants: Tenants) -> Tile:
    """How many there were, or that there were more than are told."""
    count = len(tenants.deletions)
    if is_cut(tenants):
        return Tile("Deletions", f"{count:,} or more", f"invalidations; the newest {count:,} are below")
    return Tile("Deletions", f"{count:,}", "invalidations in this stretch of time")


def _line(one: TenantAccount, names: Names) -> TenantLine:
    """One tenant as a line."""
    return TenantLine(
        name=name_of(names, one.tenant),
        tenant=one.tenant or "",
        requests=one.requests,
        p50_ms=one.ttft.p50_ms,
        p95_ms=one.ttft.p95_ms,
        p99_ms=one.ttft.p99_ms,
        holds="; ".join(_holding(holding) for holding in one.holdings) or "not said",
        refused=one.refused_by_quota,
        evicted=one.evicted_by_quota,
        foreign=one.foreign_misses,
        stale=one.version_misses,
    )


def _holding(holding: Holding) -> str:
    """So much of a tier, of so much."""
    quota = f" of {size(holding.quota_bytes)}" if holding.quota_bytes else ""
    return f"{holding.tier} {size(holding.used_bytes)}{quota}"


def _deletion(one: Deletion) -> DeletionLine:
    """One deletion as a line."""
    return DeletionLine(
        at=moment(one.wall_ns),
        reason=(one.reason or "no reason given").replace("_", " "),
        selector=one.selector or "",
        copies="; ".join(f"{gone.copies:,} on {gone.tier}" for gone in one.gone) or "none was there",
        lasted_ms=None if one.lasted_ns is None else one.lasted_ns / _NS_PER_MS,
        event=f"{one.engine}/{one.epoch}/{one.rank}/{one.seq}",
    )
