"""What the collector answers to the questions of pages, as far as they read it; see `answers` for what all answers share."""

import msgspec

from kvtrail_dashboards.answers import ChainLink, EventRef, Verdict, Window


class EngineRow(msgspec.Struct, frozen=True):
    """One engine: its first arrival, the newest moment that is known of it, what makes its clock wall time, its device."""

    engine: str
    wall_offset_ns: int = 0
    ranks: tuple[int, ...] = ()
    first_ns: int | None = None
    last_ns: int | None = None
    requests: int = 0
    heard_wall_ns: int = 0
    device: str | None = None


class Named(msgspec.Struct, frozen=True):
    """A hashed value and what the operator calls it."""

    id: str
    name: str


class Engines(msgspec.Struct, frozen=True):
    """What there is to choose from."""

    engines: tuple[EngineRow, ...] = ()
    tenants: tuple[Named, ...] = ()
    models: tuple[Named, ...] = ()
    device: str | None = None


class Percentiles(msgspec.Struct, frozen=True):
    """Percentiles in milliseconds."""

    p50_ms: float | None = None
    p95_ms: float | None = None
    p99_ms: float | None = None


class LatencyFigures(msgspec.Struct, frozen=True):
    """Some requests; `within` is the share of them that met the objective."""

    requests: int
    censored: int = 0
    ttft: Percentiles = Percentiles()
    tpot: Percentiles = Percentiles()
    within: float | None = None


class LatencyBucket(msgspec.Struct, frozen=True):
    """The requests that arrived in one bucket."""

    start_ns: int
    wall_ns: int
    figures: LatencyFigures


class Latency(msgspec.Struct, frozen=True):
    """Latency over time and in all."""

    bucket_ms: int
    total: LatencyFigures
    series: tuple[LatencyBucket, ...] = ()
    device: str | None = None


class SpikeRow(msgspec.Struct, frozen=True):
    """One slow stretch of arrivals, [start, end)."""

    start_ns: int
    end_ns: int
    requests: int = 0
    p95_ms: float = 0.0
    p99_ms: float = 0.0
    usual_p95_ms: float = 0.0


class Spikes(msgspec.Struct, frozen=True):
    """The slow stretches of an engine, the latest first."""

    spikes: tuple[SpikeRow, ...] = ()


class Action(msgspec.Struct, frozen=True):
    """A degrade action that was not cleared."""

    rank: int
    action: str
    state: str
    since_wall_ns: int


class Held(msgspec.Struct, frozen=True):
    """A layer that pushes back."""

    rank: int
    tier: str
    since_wall_ns: int
    reason: str | None = None


class Pressure(msgspec.Struct, frozen=True):
    """What holds an engine back."""

    degrade: tuple[Action, ...] = ()
    backpressure: tuple[Held, ...] = ()


class Missing(msgspec.Struct, frozen=True):
    """Something that never came, and what cannot be said without it."""

    so_what: str
    kind: str | None = None
    field: str | None = None


class Verdicts(msgspec.Struct, frozen=True):
    """All that is wrong, the gravest first, and how much of what happened was seen."""

    coverage: float | None = None
    window: Window | None = None
    verdicts: tuple[Verdict, ...] = ()
    missing: tuple[Missing, ...] = ()


class TierLevel(msgspec.Struct, frozen=True):
    """What a tier holds and what waits at it."""

    capacity_bytes: int | None = None
    used_bytes: int | None = None
    pinned_bytes: int | None = None
    evictable_bytes: int | None = None
    depth: int | None = None
    in_flight: int | None = None
    orphans: int | None = None


class TierNow(msgspec.Struct, frozen=True):
    """A tier as its newest samples have it."""

    tier: str
    level: TierLevel


class TierBucket(msgspec.Struct, frozen=True):
    """The largest of each figure in one bucket of time."""

    tier: str
    start_ns: int
    wall_ns: int
    level: TierLevel


class TierLevels(msgspec.Struct, frozen=True):
    """All tiers, now and over time."""

    bucket_ms: int
    now: tuple[TierNow, ...] = ()
    series: tuple[TierBucket, ...] = ()


class Quantiles(msgspec.Struct, frozen=True):
    """Three percentiles in the unit of their place."""

    p50: float | None = None
    p95: float | None = None
    p99: float | None = None


class Move(msgspec.Struct, frozen=True):
    """Transfers from one tier to another."""

    src: str
    dst: str
    ops: int
    failed: int = 0
    open: int = 0
    bytes: int = 0
    total_ms: Quantiles = Quantiles()
    queue_p99_ms: float | None = None
    io_p99_ms: float | None = None


class Cost(msgspec.Struct, frozen=True):
    """What one way to get KV cost those requests that took it."""

    requests: int
    tokens: int = 0
    ms: Quantiles = Quantiles()
    us_per_token: Quantiles = Quantiles()


class Tiers(msgspec.Struct, frozen=True):
    """Tiers of an engine."""

    levels: TierLevels
    restore: Cost
    recompute: Cost
    moves: tuple[Move, ...] = ()
    device: str | None = None


class Holding(msgspec.Struct, frozen=True):
    """How much of a tier a tenant holds, and how much it may."""

    tier: str
    used_bytes: int | None = None
    quota_bytes: int | None = None


class TenantAccount(msgspec.Struct, frozen=True):
    """One tenant."""

    tenant: str | None
    requests: int
    censored: int = 0
    rejected: int = 0
    prompt_tokens: int = 0
    ttft: Percentiles = Percentiles()
    refused_by_quota: int = 0
    evicted_by_quota: int = 0
    foreign_misses: int = 0
    version_misses: int = 0
    holdings: tuple[Holding, ...] = ()


class CopiesGone(msgspec.Struct, frozen=True):
    """How many copies an invalidation took from a tier."""

    tier: str
    copies: int


class Deletion(msgspec.Struct, frozen=True):
    """One invalidation, and its evidence."""

    engine: str
    epoch: int
    rank: int
    seq: int
    wall_ns: int
    reason: str | None = None
    selector: str | None = None
    gone: tuple[CopiesGone, ...] = ()
    lasted_ns: int | None = None


class Tenants(msgspec.Struct, frozen=True):
    """The accounts of tenants, deletions, and whether any block was looked for."""

    tenants: tuple[TenantAccount, ...] = ()
    deletions: tuple[Deletion, ...] = ()
    device: str | None = None
    has_lookups: bool = False
    tenants_left_out: int = 0


class PrefetchFigures(msgspec.Struct, frozen=True):
    """Blocks that were prefetched, and what became of them."""

    issued: int
    completed: int = 0
    ready: int = 0
    used: int = 0
    wasted: int = 0
    cancelled: int = 0
    deadline_missed: int = 0
    bytes: int = 0
    wasted_bytes: int = 0


class PrefetchTimes(msgspec.Struct, frozen=True):
    """Device time that prefetches hid, that requests waited for them, and that was for nothing."""

    hidden_ns: int = 0
    waited_ns: int = 0
    caused_ns: int = 0


class PrefetchLoss(msgspec.Struct, frozen=True):
    """Blocks that were of no use."""

    outcome: str
    blocks: int
    bytes: int = 0
    reason: str | None = None
    tier: str | None = None
    tenant: str | None = None


class PrefetchBucket(msgspec.Struct, frozen=True):
    """The blocks that were issued in one bucket of time."""

    start_ns: int
    wall_ns: int
    figures: PrefetchFigures


class NotIssued(msgspec.Struct, frozen=True):
    """Blocks that the engine would have fetched ahead, and did not."""

    blocks: int
    reason: str | None = None


class PrefetchFlow(msgspec.Struct, frozen=True):
    """Prefetches in all, over time, and where they were in vain."""

    bucket_ms: int
    total: PrefetchFigures
    times: PrefetchTimes = PrefetchTimes()
    losses: tuple[PrefetchLoss, ...] = ()
    not_issued: tuple[NotIssued, ...] = ()
    series: tuple[PrefetchBucket, ...] = ()
    device: str | None = None
    losses_left_out: int = 0


class RecorderBucket(msgspec.Struct, frozen=True):
    """The events a second that a stream produced in one bucket of time."""

    engine: str
    rank: int
    start_ns: int
    wall_ns: int
    events_per_s: float | None = None
    longest_beat_ms: float | None = None


class RecorderStream(msgspec.Struct, frozen=True):
    """One stream: when it was last heard, how long its newest batch was on the way, and what recording takes of the engine."""

    engine: str
    epoch: int
    rank: int
    produced: int
    state: int
    heard_wall_ns: int
    delay_ns: int
    clock_error_ns: int = 0
    beat_wall_ns: int | None = None
    recorder_share: float | None = None
    has_cost_samples: bool = False


class Recorder(msgspec.Struct, frozen=True):
    """All streams now and over time."""

    now_wall_ns: int
    bucket_ms: int
    streams: tuple[RecorderStream, ...] = ()
    series: tuple[RecorderBucket, ...] = ()
    device: str | None = None
    streams_left_out: int = 0


class Linked(msgspec.Struct, frozen=True):
    """Another event, by its name and kind."""

    event: EventRef
    kind: str


class OneEvent(msgspec.Struct, frozen=True):
    """One event in full."""

    event: EventRef
    kind: str
    t_ns: int
    wall_ns: int
    fields: dict[str, str | int | float | bool] = {}
    cause: Linked | None = None
    effects: tuple[Linked, ...] = ()


class BlockCopy(msgspec.Struct, frozen=True):
    """One copy of a block: where, from when until when, and what ended it; no end: it is still there."""

    tier: str | None = None
    from_ns: int | None = None
    to_ns: int | None = None
    slot: int | None = None
    ended_by: str | None = None


class Block(msgspec.Struct, frozen=True):
    """The life of a block."""

    copies: tuple[BlockCopy, ...] = ()
    chain: tuple[ChainLink, ...] = ()
    unknown: tuple[Window, ...] = ()
