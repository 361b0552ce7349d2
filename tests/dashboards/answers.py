"""A small language for the dashboard's tests: answers in the published shapes, as a collector would send them."""

from collections.abc import Mapping
from typing import Any, Final

SECOND_NS: Final = 1_000_000_000
WALL_OFFSET_NS: Final = 1_700_000_000 * SECOND_NS
BIG_ID: Final = 2**64 - 7
"""An id that a floating-point number cannot hold."""

Json = dict[str, Any]


def window(start_s: int, end_s: int, requests: int = 600, coverage: float = 1.0) -> Json:
    """A window in whole seconds."""
    return {"start_ns": start_s * SECOND_NS, "end_ns": end_s * SECOND_NS, "requests": requests, "coverage": coverage}


def verdict(code: str = "TIER_SLOW", **changes: object) -> Json:
    """A verdict on reads of nvme, or what it is changed to."""
    return {
        "code": code,
        "tier": "nvme",
        "tenant": None,
        "component": "storage_read",
        "share": 0.87,
        "confidence": 0.9975,
        "basis": "population",
        "window": window(40, 60),
        "evidence": {"read_ns_per_kib": 900.5, "read_cost_ratio": 7.1, "reads": 200, "waited_ns": 12_000_000},
        "events": [{"engine": "engine-a", "epoch": BIG_ID, "rank": 0, "seq": 12}],
        "action": "recompute instead of reading from this tier",
        "also": ["TIER_QUEUE"],
    } | changes


def delta(component: str, excess_ms: float, tier: str | None = None) -> Json:
    """The excess of one component, with an interval of 10 ms on both sides."""
    return {
        "component": component,
        "tier": tier,
        "excess_ms": excess_ms,
        "low_ms": excess_ms - 10,
        "high_ms": excess_ms + 10,
        "share": max(excess_ms, 0) / 200,
    }


def attribution(**changes: object) -> Json:
    """A spike whose cause is identified, or what it is changed to."""
    return {
        "window": window(40, 60),
        "reference": window(10, 40, 1_000),
        "quantile": 0.95,
        "excess_tail_ms": 212.4,
        "excess_quantile_ms": 180.0,
        "mix_ms": 0.0,
        "components": [delta("storage_read", 174.0, "nvme"), delta("sched_wait.budget", 26.0)],
        "identified": True,
        "why_not": None,
        "blame": [{"queue": "engine-a/0/nvme", "tenant": "aa", "kind": "write_back", "waited_ns": 9_000_000, "share": 0.6}],
        "exemplars": ["r-1"],
        "verdicts": [verdict()],
        "schema": 1,
        "device": "cpu-emulated",
    } | changes


def no_spike() -> Json:
    """Nothing to explain."""
    return attribution(
        window=None,
        reference=None,
        quantile=None,
        excess_tail_ms=None,
        excess_quantile_ms=None,
        mix_ms=None,
        components=[],
        identified=False,
        why_not="no spike: no stretch of time is slower than chance makes one",
        blame=[],
        exemplars=[],
        verdicts=[],
    )


def series(seconds: int = 100, bucket_ms: int = 1_000) -> Json:
    """A point a bucket from second 0 on."""
    step_ns = bucket_ms * 1_000_000
    starts = range(0, seconds * SECOND_NS, step_ns)
    return {"schema": 1, "device": "cpu-emulated", "bucket_ms": bucket_ms, "series": [bucket(start) for start in starts]}


def bucket(start_ns: int) -> Json:
    """One bucket, slow between second 40 and 60."""
    slow = 40 * SECOND_NS <= start_ns < 60 * SECOND_NS
    return {
        "engine": "engine-a",
        "start_ns": start_ns,
        "wall_ns": WALL_OFFSET_NS + start_ns,
        "requests": 35,
        "censored": 0,
        "p50_ms": 6.0,
        "p95_ms": 150.0 if slow else 30.0,
        "p99_ms": 220.0 if slow else 35.0,
    }


def spikes(*borders_s: tuple[int, int]) -> Json:
    """The slow stretches, between these seconds; the latest first."""
    slow = {"requests": 600, "p95_ms": 150.0, "p99_ms": 220.0, "usual_p95_ms": 30.0}
    rows = [{"start_ns": start * SECOND_NS, "end_ns": end * SECOND_NS, **slow} for start, end in borders_s or ((40, 60),)]
    return {"schema": 1, "device": "cpu-emulated", "clock_offset_ns": WALL_OFFSET_NS, "spikes": rows}


def requests(count: int = 3) -> Json:
    """The slowest requests; the first has an id that no float holds."""
    rows = [
        {
            "request": BIG_ID - place,
            "text": f"r-{place}",
            "engine": "engine-a",
            "epoch": 7,
            "rank": 0,
            "arrived_ns": 41 * SECOND_NS,
            "arrived_wall_ns": WALL_OFFSET_NS + 41 * SECOND_NS,
            "ttft_ns": 300_000_000 - place,
            "censored": False,
            "prompt_tokens": 100,
            "output_tokens": 7,
        }
        for place in range(count)
    ]
    return {"schema": 1, "device": "cpu-emulated", "requests": rows}


def why(name: str = "r-0") -> Json:
    """One request: 100 ms in a queue, 180 reading, 20 computing; a copy overlapped."""
    return {
        "request": name,
        "ttft_ns": 300_000_000,
        "censored": False,
        "parts": [
            {"component": "tier_queue", "tier": "nvme", "reason": None, "ns": 100_000_000},
            {"component": "storage_read", "tier": "nvme", "reason": None, "ns": 180_000_000},
            {"component": "new_prefill", "tier": None, "reason": None, "ns": 20_000_000},
        ],
        "hidden": [{"component": "copy", "tier": "host", "reason": "host→gpu", "ns": 6_000_000}],
        "gaps": [
            {"step": 9, "ns": 50_000_000, "parts": [{"component": "decode_step", "tier": None, "reason": "pure", "ns": 5}]}
        ],
        "waited_on": [{"op": BIG_ID, "tier": "nvme", "owner": "aa", "ns": 90_000_000}],
        "chain": [{"event": {"engine": "engine-a", "epoch": 7, "rank": 0, "seq": 3}, "text": "loaded from nvme [slow]"}],
        "recompute_estimate_ns": 34_000_000,
        "schema": 1,
        "device": "cpu-emulated",
    }


def stream(engine: str = "engine-a", **changes: object) -> Json:
    """One balanced stream."""
    whole = {"epoch": 7, "rank": 0, "produced": 100, "stored": 100, "dropped": [], "in_flight": 0, "unaccounted": 0, "gaps": []}
    return {"engine": engine, **whole} | changes


def loss(*streams: Json) -> Json:
    """The balance of streams."""
    return {
        "schema": 1,
        "device": None,
        "streams": list(streams),
        "balanced": all(one["unaccounted"] == 0 for one in streams),
    }


def engines(*names: str) -> Json:
    """What there is to choose from; one tenant has a name."""
    rows = [
        {
            "engine": name,
            "ranks": [0],
            "first_ns": 0,
            "last_ns": 100 * SECOND_NS,
            "wall_offset_ns": WALL_OFFSET_NS,
            "requests": 3_500,
            "heard_wall_ns": WALL_OFFSET_NS + 100 * SECOND_NS,
            "device": "cpu-emulated",
        }
        for name in names or ("engine-a",)
    ]
    tenants = [{"id": "aa", "name": "Search"}, {"id": "bb", "name": "bb"}]
    return {"schema": 1, "device": "cpu-emulated", "engines": rows, "tenants": tenants, "models": []}


def all_answers(**changes: Json) -> Mapping[str, Json]:
    """What a collector with one spike answers, by path."""
    named = {
        "engines": engines(),
        "loss": loss(stream()),
        "series": series(),
        "attribution": attribution(),
        "requests": requests(),
        "spikes": spikes(),
    } | changes
    return {f"/v1/{name}": answer for name, answer in named.items()} | {"/v1/requests/": why()}
