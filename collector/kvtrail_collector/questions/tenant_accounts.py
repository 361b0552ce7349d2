"""What each tenant got and what it cost: its requests, what it holds of each tier, and what its quota kept from it."""

from __future__ import annotations

from typing import Final

import duckdb
import msgspec
from kvtrail_schema.enums import Reason
from kvtrail_schema.kinds import Kind

from kvtrail_collector.questions.deletions import Deletion
from kvtrail_collector.questions.latency import Percentiles
from kvtrail_collector.questions.scope import IN_STREAMS, NEWEST_SAMPLED, Chosen
from kvtrail_collector.questions.words import tier_name

MOST_TENANTS: Final = 200
_BETWEEN: Final = "t_ns >= $start_ns AND t_ns < $end_ns"
_TENANTS: Final = """
tenants AS (SELECT unnest($spaces::UBIGINT[]) AS ns, unnest($names::VARCHAR[]) AS tenant)
"""
_REQUESTS: Final = f"""
WITH {_TENANTS} SELECT tenant, count(*), count(*) - count(first_token_ns),
    count(*) FILTER (end_kind = {Kind.REQUEST_REJECTED.value}), coalesce(sum(prompt_tokens), 0)::UBIGINT,
    quantile_cont((first_token_ns - arrived_ns) / 1e6, [0.5, 0.95, 0.99])
FROM requests LEFT JOIN tenants USING (ns)
WHERE {IN_STREAMS} AND arrived_ns >= $start_ns AND arrived_ns < $end_ns GROUP BY tenant ORDER BY count(*) DESC, tenant
"""  # noqa: S608  # constants of ours
_COUNTED: Final = {
    "refused_by_quota": (Kind.REQUEST_REJECTED, Reason.TENANT_QUOTA),
    "evicted_by_quota": (Kind.EVICTED, Reason.QUOTA),
    "foreign_misses": (Kind.PREFIX_MISS, Reason.PERMISSION),
    "version_misses": (Kind.PREFIX_MISS, Reason.VERSION),
}
_WANTED: Final = ", ".join(f"({kind.value}, {reason.value})" for kind, reason in _COUNTED.values())
# A row says its namespace, or its request does.
_COUNTS: Final = f"""
WITH {_TENANTS}, found AS (
    SELECT stream_id, kind, reason, ns, req FROM events
    WHERE kind IN ({Kind.REQUEST_REJECTED.value}, {Kind.EVICTED.value}, {Kind.PREFIX_MISS.value})
        AND (kind, reason) IN ({_WANTED}) AND {IN_STREAMS} AND {_BETWEEN}
)
SELECT tenant, kind, reason, count(*)
FROM (SELECT kind, reason, coalesce(found.ns, requests.ns) AS ns FROM found LEFT JOIN requests USING (stream_id, req))
LEFT JOIN tenants USING (ns) GROUP BY ALL
"""  # noqa: S608  # constants of ours
_LOOKUPS: Final = f"""
SELECT 1 FROM events WHERE kind IN ({Kind.PREFIX_HIT.value}, {Kind.PREFIX_MISS.value}) AND {IN_STREAMS} AND {_BETWEEN} LIMIT 1
"""  # noqa: S608  # constants of ours
_HOLDINGS: Final = f"""
WITH {_TENANTS}, newest AS (
    SELECT stream_id, tier, ns, arg_max(used_bytes, t_ns) AS used, arg_max(capacity_bytes, t_ns) AS quota FROM events
    WHERE kind = {Kind.CAPACITY_SAMPLED.value} AND ns IS NOT NULL AND tier IS NOT NULL AND {NEWEST_SAMPLED} AND {_BETWEEN}
    GROUP BY ALL
)
SELECT tenant, tier, sum(used)::UBIGINT, sum(quota)::UBIGINT FROM newest LEFT JOIN tenants USING (ns)
GROUP BY tenant, tier ORDER BY tenant, tier
"""  # noqa: S608  # constants of ours


class Holding(msgspec.Struct, frozen=True):
    """How much of a tier a tenant holds, and how much it may; None where its engine does not say."""

    tier: str
    used_bytes: int | None
    quota_bytes: int | None


class TenantAccount(msgspec.Struct, frozen=True):
    """One tenant (None: requests whose namespace was never declared). Misses are lookups that met what is not its own."""

    tenant: str | None
    requests: int
    censored: int
    rejected: int
    prompt_tokens: int
    ttft: Percentiles
    refused_by_quota: int
    evicted_by_quota: int
    foreign_misses: int
    version_misses: int
    holdings: list[Holding]


class Tenants(msgspec.Struct, frozen=True):
    """The accounts of tenants, the one with most requests first, and the newest deletions.

    `has_lookups` says whether any block was looked for: where none was, no miss says nothing of borders.
    `tenants_left_out` is how many more there are: listed are those that have most requests, or hold most.
    """

    tenants: list[TenantAccount]
    deletions: list[Deletion]
    device: str | None = None
    has_lookups: bool = False
    schema: int = 1
    tenants_left_out: int = 0


def has_lookups(cursor: duckdb.DuckDBPyConnection, chosen: Chosen) -> bool:
    """Whether any block was looked for. One pass over the events of two kinds, which ends at the first."""
    values = {"streams": chosen.streams, "start_ns": chosen.start_ns, "end_ns": chosen.end_ns}
    return bool(cursor.execute(_LOOKUPS, values).fetchall())


TenantOf = dict[int, str | None]
"""The tenant of each namespace."""


def tenant_accounts(cursor: duckdb.DuckDBPyConnection, chosen: Chosen, tenant_of: TenantOf) -> list[TenantAccount]:
    """The accounts of all tenants that asked for, held or met anything. Two passes over events, one over requests."""
    values = {
        "streams": chosen.streams,
        "start_ns": chosen.start_ns,
        "end_ns": chosen.end_ns,
        "spaces": list(tenant_of),
        "names": list(tenant_of.values()),
    }
    counts = {(row[0], row[1], row[2]): row[3] for row in cursor.execute(_COUNTS, values).fetchall()}
    holdings: dict[str | None, list[Holding]] = {}
    for tenant, tier, used, quota in cursor.execute(_HOLDINGS, values).fetchall():
        holdings.setdefault(tenant, []).append(Holding(tier_name(tier), used, quota))
    rows = {row[0]: row for row in cursor.execute(_REQUESTS, values).fetchall()}
    asked = [_account(row, counts, holdings.get(row[0], [])) for row in rows.values()]
    others = {tenant for tenant, _, _ in counts}.union(holdings) - rows.keys()
    quiet = [_account((tenant, 0, 0, 0, 0, None), counts, holdings.get(tenant, [])) for tenant in others]
    return [*asked, *sorted(quiet, key=lambda one: (-_held(one), one.tenant or ""))]


def listed(accounts: list[TenantAccount], most: int = MOST_TENANTS) -> list[TenantAccount]:
    """So many of the accounts, in their order: by turns the next one with most requests, and the next one that holds most."""
    by_requests = sorted(range(len(accounts)), key=lambda place: -accounts[place].requests)
    by_held = sorted(range(len(accounts)), key=lambda place: -_held(accounts[place]))
    turns = dict.fromkeys(place for pair in zip(by_requests, by_held, strict=True) for place in pair)
    return [accounts[place] for place in sorted(list(turns)[:most])]


def _held(account: TenantAccount) -> int:
    """What a tenant holds of all tiers."""
    return sum(one.used_bytes or 0 for one in account.holdings)


def _account(
    row: tuple[str | None, int, int, int, int, list[float] | None],
    counts: dict[tuple[str | None, int, int], int],
    holdings: list[Holding],
) -> TenantAccount:
    """One account."""
    tenant, requests, censored, rejected, tokens, ttft = row
    counted = {name: counts.get((tenant, kind.value, reason.value), 0) for name, (kind, reason) in _COUNTED.items()}
    percentiles = Percentiles(*ttft) if ttft else Percentiles(None, None, None)
    return TenantAccount(tenant, requests, censored, rejected, tokens, percentiles, holdings=holdings, **counted)
