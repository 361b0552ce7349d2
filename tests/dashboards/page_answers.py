"""Answers to the questions of pages, as a collector would send them; see `answers`."""

from collections.abc import Mapping

from tests.dashboards.answers import BIG_ID, SECOND_NS, WALL_OFFSET_NS, Json, all_answers, verdict, window


def figures(requests: int = 10, censored: int = 0, p99_ms: float = 35.0) -> Json:
    """Requests and their latencies."""
    percentiles = {"p50_ms": 5.0, "p95_ms": 20.0, "p99_ms": p99_ms}
    return {"requests": requests, "censored": censored, "ttft": percentiles, "tpot": percentiles, "within": 0.97}


def latency(*starts_s: int) -> Json:
    """Buckets of a second that begin at these seconds."""
    rows = [
        {"start_ns": at * SECOND_NS, "wall_ns": WALL_OFFSET_NS + at * SECOND_NS, "figures": figures()}
        for at in starts_s or range(30, 70)
    ]
    return {"bucket_ms": 1_000, "total": figures(len(rows) * 10), "series": rows, "device": "cpu-emulated", "schema": 1}


def verdicts(*codes: str) -> Json:
    """What is wrong."""
    found = [verdict(code) for code in codes or ("TIER_SLOW",)]
    missing = [{"kind": "copy_waited", "so_what": "waits for copies inside a step look like computing"}]
    return {"coverage": 1.0, "window": window(40, 60), "verdicts": found, "missing": missing, "schema": 1}


def pressure() -> Json:
    """An action in force, and a layer that pushes back."""
    since = {"rank": 0, "since_ns": 0, "since_wall_ns": WALL_OFFSET_NS, "engine": "engine-a"}
    return {
        "degrade": [{"action": "disable_nvme", "state": "applied", **since}],
        "backpressure": [{"tier": "nvme", "reason": "disk_queue", **since}],
    }


def level(used: int, depth: int = 0) -> Json:
    """A tier of a thousand bytes."""
    return {
        "capacity_bytes": 1_000,
        "used_bytes": used,
        "pinned_bytes": 100,
        "evictable_bytes": used - 300,
        "depth": depth,
        "in_flight": 1,
        "orphans": None,
    }


def tiers() -> Json:
    """A healthy tier, and one at which many wait."""
    rows = [
        {"tier": tier, "start_ns": at * SECOND_NS, "wall_ns": WALL_OFFSET_NS + at * SECOND_NS, "level": level(600)}
        for tier in ("gpu", "nvme")
        for at in (0, 1, 5)
    ]
    now = [{"tier": "gpu", "at_ns": 0, "level": level(600)}, {"tier": "nvme", "at_ns": 0, "level": level(900, depth=50)}]
    quantiles = {"p50": 10.0, "p95": 20.0, "p99": 30.0}
    move = {"src": "nvme", "dst": "gpu", "ops": 4, "failed": 1, "open": 0, "bytes": 4_096, "total_ms": quantiles}
    cost = {"requests": 3, "tokens": 300, "ms": quantiles}
    return {
        "levels": {"bucket_ms": 1_000, "now": now, "series": rows},
        "moves": [move],
        "restore": {**cost, "us_per_token": {"p50": 10.0, "p95": 10.0, "p99": 10.0}},
        "recompute": {**cost, "us_per_token": {"p50": 25.0, "p95": 25.0, "p99": 25.0}},
        "device": "cpu-emulated",
    }


def prefetches() -> Json:
    """Ten blocks: five used, three wasted, one cancelled, one open."""
    total = {"issued": 10, "completed": 9, "ready": 8, "used": 5, "wasted": 3, "cancelled": 1, "deadline_missed": 2}
    total |= {"bytes": 1_000, "wasted_bytes": 300}
    loss = {"outcome": "wasted", "reason": "too_late", "tier": "nvme", "tenant": "aa", "blocks": 3, "bytes": 300}
    row = {"start_ns": 0, "wall_ns": WALL_OFFSET_NS, "figures": total}
    skipped = [{"reason": "byte_cap", "blocks": 7}]
    times = {"hidden_ns": 9_000_000, "waited_ns": 0, "caused_ns": 2_000_000}
    return {"bucket_ms": 1_000, "total": total, "times": times, "losses": [loss], "not_issued": skipped, "series": [row]}


def tenants() -> Json:
    """A tenant with a name and one without; one deletion."""
    account = {"requests": 9, "ttft": {"p50_ms": 1.0, "p95_ms": 2.0, "p99_ms": 3.0}, "foreign_misses": 2}
    account |= {"holdings": [{"tier": "host", "used_bytes": 512, "quota_bytes": 1_024}]}
    deletion = {"engine": "engine-a", "epoch": BIG_ID, "rank": 0, "seq": 5, "at_ns": 0, "wall_ns": WALL_OFFSET_NS}
    deletion |= {
        "reason": "document_deleted",
        "selector": "0011",
        "gone": [{"tier": "nvme", "copies": 3}],
        "lasted_ns": 7_000_000,
    }
    return {"tenants": [{"tenant": "aa", **account}, {"tenant": None, **account}], "deletions": [deletion]}


def recorder(heard_s_ago: int = 1) -> Json:
    """A stream that runs."""
    now_ns = WALL_OFFSET_NS + 200 * SECOND_NS
    heard_ns = now_ns - heard_s_ago * SECOND_NS
    stream = {"engine": "engine-a", "epoch": 7, "rank": 0, "produced": 100, "state": 0, "heard_wall_ns": heard_ns}
    row = {"engine": "engine-a", "rank": 0, "start_ns": 0, "wall_ns": WALL_OFFSET_NS, "events_per_s": 123.0}
    return {
        "now_wall_ns": now_ns,
        "bucket_ms": 1_000,
        "streams": [{**stream, "delay_ns": 2_000_000, "beat_wall_ns": heard_ns}],
        "series": [row],
    }


def event() -> Json:
    """An eviction that made a block be loaded again."""
    ref = {"engine": "engine-a", "epoch": BIG_ID, "rank": 0}
    return {
        "event": {**ref, "seq": 3},
        "kind": "evicted",
        "t_ns": 0,
        "wall_ns": WALL_OFFSET_NS,
        "fields": {"block": str(BIG_ID), "tier": "gpu", "bytes": 4_096},
        "cause": {"event": {**ref, "seq": 2}, "kind": "prefetch_issued"},
        "effects": [{"event": {**ref, "seq": 9}, "kind": "swap_in_queued"}],
    }


def page_answers(**changes: Json) -> Mapping[str, Json]:
    """What a collector with one spike answers to every page, by path."""
    named = {
        "latency": latency(),
        "verdicts": verdicts(),
        "pressure": pressure(),
        "tiers": tiers(),
        "prefetch/flow": prefetches(),
        "tenants": tenants(),
        "recorder": recorder(),
        "event": event(),
    } | changes
    return {**all_answers(), **{f"/v1/{name}": answer for name, answer in named.items()}}
