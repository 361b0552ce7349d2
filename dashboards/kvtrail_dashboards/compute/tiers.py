"""Tiers for people: how full, what waits, what moved, and what getting KV back cost beside computing it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from kvtrail_dashboards.compute.breaks import with_breaks
from kvtrail_dashboards.compute.bytes import size
from kvtrail_dashboards.compute.now import Mood, Tile
from kvtrail_dashboards.compute.wall import moment
from kvtrail_dashboards.page_answers import Cost, Move, TierBucket, TierLevel, TierNow, Tiers

_NS_PER_MS: Final = 1_000_000
_NEARLY_FULL: Final = 0.98
_WAITING: Final = 32


@dataclass(frozen=True, slots=True)
class TierPoint:
    """A tier at one moment: the share of it that is used, and what waits at it. None where not said, or nothing came."""

    at: datetime
    tier: str
    used_share: float | None
    waiting: float | None


@dataclass(frozen=True, slots=True)
class TierPart:
    """So much of a tier is pinned, evictable, otherwise used, or free."""

    tier: str
    part: str
    share: float
    told: str


@dataclass(frozen=True, slots=True)
class MoveLine:
    """One way between two tiers, as a line of a table."""

    way: str
    ops: int
    failed: int
    open: int
    bytes: int
    p50_ms: float | None
    p95_ms: float | None
    p99_ms: float | None
    queue_p99_ms: float | None
    io_p99_ms: float | None


@dataclass(frozen=True, slots=True)
class CostLine:
    """What one way to get KV cost, in all and a token."""

    how: str
    requests: int
    tokens: int
    p50_ms: float | None
    p95_ms: float | None
    p99_ms: float | None
    per_token_us: float | None


PARTS: Final = ("pinned", "in use", "evictable", "free")


def tier_tiles(tiers: Tiers) -> tuple[Tile, ...]:
    """One tile a tier: how full it is, and what is odd about it."""
    return tuple(_tile(one, _peak(tiers, one.tier)) for one in tiers.levels.now)


def tier_parts(tiers: Tiers) -> tuple[TierPart, ...]:
    """What each tier's room is taken by, as shares of its capacity."""
    return tuple(part for one in tiers.levels.now for part in _parts(one))


def tier_points(tiers: Tiers) -> tuple[TierPoint, ...]:
    """The levels over time, tier by tier, with breaks where nothing was sampled."""
    by_tier: dict[str, list[TierBucket]] = {}
    for row in tiers.levels.series:
        by_tier.setdefault(row.tier, []).append(row)
    return tuple(point for rows in by_tier.values() for point in _points(rows, tiers.levels.bucket_ms))


def move_lines(moves: tuple[Move, ...]) -> tuple[MoveLine, ...]:
    """Ways between tiers, the slowest first."""
    ordered = sorted(moves, key=lambda move: -(move.total_ms.p99 or 0.0))
    return tuple(_move(move) for move in ordered)


def cost_lines(tiers: Tiers) -> tuple[CostLine, ...]:
    """Restoring beside recomputing; only ways that somebody took."""
    named = (("restored from a slower tier", tiers.restore), ("computed again", tiers.recompute))
    return tuple(_cost(how, cost) for how, cost in named if cost.requests)


def cost_told(tiers: Tiers) -> str:
    """The two ways in one sentence; empty where there is nothing to compare."""
    restore, recompute = tiers.restore.us_per_token.p50, tiers.recompute.us_per_token.p50
    if not restore or not recompute:
        return ""
    cheaper, factor = ("Restoring", recompute / restore) if restore <= recompute else ("Computing again", restore / recompute)
    return f"{cheaper} was cheaper a token, {factor:.1f} times in the median."


@dataclass(frozen=True, slots=True)
class _Peak:
    """The most that waited or was in flight at a tier, and when."""

    waiting: int
    at: datetime


def _peak(tiers: Tiers, tier: str) -> _Peak | None:
    """The worst moment of the stretch; None where nothing ever waited."""
    rows = [
        ((row.level.depth or 0) + (row.level.in_flight or 0), row.wall_ns) for row in tiers.levels.series if row.tier == tier
    ]
    waiting, wall_ns = max(rows, default=(0, 0))
    return _Peak(waiting, moment(wall_ns)) if waiting else None


def _tile(tier: TierNow, peak: _Peak | None) -> Tile:
    """One tier now, and at its worst."""
    level = tier.level
    share = _share(level, level.used_bytes)
    depth = level.depth or 0
    odd = [f"{depth:,} waiting" if depth else "", f"{level.orphans:,} orphans" if level.orphans else ""]
    told = f"{size(level.used_bytes)} of {size(level.capacity_bytes)}"
    pinned = f"{size(level.pinned_bytes)} pinned" if level.pinned_bytes is not None else ""
    flying = f"{level.in_flight:,} in flight" if level.in_flight else ""
    worst = "" if peak is None else f"most waiting and in flight: {peak.waiting:,}, at {peak.at:%m-%d %H:%M:%S} UTC"
    detail = "; ".join(word for word in (told, pinned, flying, *odd, worst) if word)
    full = _share(level, _immovable(level))
    bad = depth >= _WAITING or (full is not None and full >= _NEARLY_FULL)
    value = "not known" if share is None else f"{share * 100:.0f} % used"
    is_odd = bool(level.orphans) or (peak is not None and peak.waiting >= _WAITING)
    return Tile(tier.tier, value, detail, Mood.BAD if bad else Mood.FAIR if is_odd else Mood.PLAIN)


def _immovable(level: TierLevel) -> int | None:
    """What of a tier cannot be had for something else."""
    if level.used_bytes is None or level.evictable_bytes is None:
        return None
    return level.used_bytes - level.evictable_bytes


def _share(level: TierLevel, amount: int | None) -> float | None:
    """An amount as a share of the tier."""
    return amount / level.capacity_bytes if amount is not None and level.capacity_bytes else None


def _parts(tier: TierNow) -> Iterator[TierPart]:
    """Four parts that make up the tier; pinned counts as used."""
    level = tier.level
    if not level.capacity_bytes or level.used_bytes is None:
        return
    pinned, evictable = level.pinned_bytes or 0, level.evictable_bytes or 0
    other = max(level.used_bytes - pinned - evictable, 0)
    free = max(level.capacity_bytes - level.used_bytes, 0)
    for name, amount in zip(PARTS, (pinned, other, evictable, free), strict=True):
        yield TierPart(tier.tier, name, amount / level.capacity_bytes, size(amount))


def _points(rows: list[TierBucket], bucket_ms: int) -> Iterator[TierPoint]:
    """One tier over time."""
    half = timedelta(milliseconds=bucket_ms) / 2
    for row, is_after_a_break in with_breaks(rows, bucket_ms * _NS_PER_MS):
        if is_after_a_break:
            yield TierPoint(moment(row.wall_ns) - half, row.tier, None, None)
        depth, flying = row.level.depth, row.level.in_flight
        waiting = None if depth is None and flying is None else float((depth or 0) + (flying or 0))
        yield TierPoint(moment(row.wall_ns) + half, row.tier, _share(row.level, row.level.used_bytes), waiting)


def _move(move: Move) -> MoveLine:
    """One way as a line."""
    total = move.total_ms
    return MoveLine(
        way=f"{move.src} → {move.dst}",
        ops=move.ops,
        failed=move.failed,
        open=move.open,
        bytes=move.bytes,
        p50_ms=total.p50,
        p95_ms=total.p95,
        p99_ms=total.p99,
        queue_p99_ms=move.queue_p99_ms,
        io_p99_ms=move.io_p99_ms,
    )


def _cost(how: str, cost: Cost) -> CostLine:
    """One way as a line."""
    return CostLine(how, cost.requests, cost.tokens, cost.ms.p50, cost.ms.p95, cost.ms.p99, cost.us_per_token.p50)


Measure = Callable[[TierPoint], float | None]
