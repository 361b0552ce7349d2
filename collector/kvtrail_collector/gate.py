"""Whether a candidate may take the place of a baseline: conditions over two sides, each with its interval. Pure.

Latencies are compared by the ratio of a quantile, resampled in blocks of neighbours in time (a moving-block bootstrap: Künsch,
Annals of Statistics 17, 1989), since requests that come together wait together. Shares are compared by the difference, with
Newcombe's hybrid interval (Statistics in Medicine 17, 1998). What is not sure is undecided, never passed.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

import numpy as np

from kvtrail_collector.gate_shapes import Condition, Gate, GateEvent, GateResult, ManifestDiff
from kvtrail_collector.gate_side import Floats, Side

THRESHOLDS: Final[Mapping[str, float]] = {
    "ttft_p50_ratio": 1.15,
    "ttft_p95_ratio": 1.3,
    "tpot_p50_ratio": 1.15,
    "tpot_p95_ratio": 1.3,
    "rejected_share": 0.01,
    "unanswered_share": 0.01,
    "broken_loads": 0.0,
    "invariants": 0.0,
    "settings_not_active": 0.0,
    "unaccounted_events": 0.0,
}
"""The most that each may be: of latencies the candidate's over the baseline's, of shares the difference, else as it is."""

LEAST_REQUESTS: Final = 200
_RESAMPLES: Final = 1_000
_MOST_AT_ONCE: Final = 2_000_000
_MS: Final = 1_000_000
_Z: Final = 1.959964
_VOLATILE: Final = frozenset({"memory_used_bytes", "started_ns"})
"""Members of a manifest that differ from start to start."""


class Findings(NamedTuple):
    """What else is known of a candidate: broken invariants, settings without effect, and events that nobody accounts for."""

    invariants: tuple[str, ...]
    not_active: tuple[str, ...]
    unaccounted: int


def judge_gate(
    baseline: Side,
    candidate: Side,
    found: Findings,
    thresholds: Mapping[str, float],
    *,
    seed: int = 0,
    device: str | None = None,
) -> Gate:
    """Every condition, manifests first. A tenth of a second for ten thousand requests; the same seed gives the same answer."""
    limits = {**THRESHOLDS, **thresholds}
    conditions = tuple(_conditions(baseline, candidate, found, limits, np.random.default_rng(seed)))
    results = {condition.result for condition in conditions}
    worst = next(result for result in (GateResult.FAIL, GateResult.UNDECIDED, GateResult.PASS) if result in results)
    return Gate(worst, conditions, tuple(manifest_diff(baseline.manifest, candidate.manifest)), device)


def manifest_diff(baseline: Mapping[str, object], candidate: Mapping[str, object], prefix: str = "") -> Iterator[ManifestDiff]:
    """What two manifests say differently, member by member."""
    for name in sorted({*baseline, *candidate} - _VOLATILE):
        before, after, path = baseline.get(name), candidate.get(name), f"{prefix}{name}"
        if isinstance(before, dict) and isinstance(after, dict):
            yield from manifest_diff(before, after, f"{path}.")
        elif before != after or (name in baseline) != (name in candidate):
            yield ManifestDiff(path, _text(baseline, name), _text(candidate, name))


def _text(members: Mapping[str, object], name: str) -> str | None:
    """A member as JSON; None where it is absent."""
    return json.dumps(members[name]) if name in members else None


def _conditions(
    baseline: Side, candidate: Side, found: Findings, limits: Mapping[str, float], random: np.random.Generator
) -> Iterator[Condition]:
    """Each condition once."""
    censored = tuple(side.censored / max(len(side.ttft_ns), 1) for side in (baseline, candidate))
    for rank in (50, 95):
        both = baseline.ttft_ns, candidate.ttft_ns
        yield _ratio(f"ttft_p{rank}_ratio", rank / 100, both, censored, limits, candidate, random)
    for rank in (50, 95):
        yield _ratio(f"tpot_p{rank}_ratio", rank / 100, (baseline.tpot_ns, candidate.tpot_ns), (), limits, candidate, random)
    sizes = baseline.requests, candidate.requests
    yield _share("rejected_share", (baseline.rejected, candidate.rejected), sizes, limits)
    yield _share("unanswered_share", (baseline.unanswered, candidate.unanswered), sizes, limits, candidate.hanging)
    yield _count("broken_loads", len(baseline.broken), len(candidate.broken), limits, candidate)
    yield _count("invariants", None, len(found.invariants), limits, note=", ".join(found.invariants))
    yield _count("settings_not_active", None, len(found.not_active), limits, note=", ".join(found.not_active))
    yield _count("unaccounted_events", None, found.unaccounted, limits)


def _ratio(  # noqa: PLR0917 - what one condition is made of
    name: str,
    rank: float,
    both: tuple[Floats, Floats],
    censored: tuple[float, ...],
    limits: Mapping[str, float],
    candidate: Side,
    random: np.random.Generator,
) -> Condition:
    """A quantile of a latency: fails where it is over the threshold and surely longer, passes where it is surely under it."""
    before, after = both
    if min(len(before), len(after)) < LEAST_REQUESTS:
        note = f"{len(before)} and {len(after)} requests; {LEAST_REQUESTS} of each are needed"
        return Condition(name, None, None, None, None, limits[name], GateResult.UNDECIDED, note=note)
    if hidden := [f"{share:.1%}" for share in censored if share > 1 - rank]:
        note = f"not known: {' and '.join(hidden)} of the requests never had a first token"
        return Condition(name, None, None, None, None, limits[name], GateResult.UNDECIDED, candidate.slowest, note)
    old, new = float(np.quantile(before, rank)), float(np.quantile(after, rank))
    ratios = _resampled(after, rank, random) / np.maximum(_resampled(before, rank, random), 1.0)
    low, high = (float(value) for value in np.quantile(ratios, [0.025, 0.975]))
    result = GateResult.UNDECIDED
    if high <= limits[name]:
        result = GateResult.PASS
    elif new / max(old, 1.0) > limits[name] and low > 1.0:
        result = GateResult.FAIL
    return Condition(
        name, old / _MS, new / _MS, low, high, limits[name], result, candidate.slowest, "figures in ms, interval of the ratio"
    )


def _resampled(values: Floats, rank: float, random: np.random.Generator) -> Floats:
    """A quantile of resamples that are put together from blocks of neighbours."""
    size = len(values)
    length = max(1, min(size // 10, round(2 * math.sqrt(size))))
    at_once = max(1, _MOST_AT_ONCE // size)
    found: list[Floats] = []
    for first in range(0, _RESAMPLES, at_once):
        count = min(at_once, _RESAMPLES - first)
        starts = random.integers(0, size - length + 1, (count, -(-size // length)))
        picked = (starts[:, :, None] + np.arange(length)).reshape(count, -1)[:, :size]
        found.append(np.quantile(values[picked], rank, axis=1))
    return np.concatenate(found)


def _share(
    name: str,
    counts: tuple[int, int],
    sizes: tuple[int, int],
    limits: Mapping[str, float],
    events: tuple[GateEvent, ...] = (),
) -> Condition:
    """A share of all requests, as a difference: passes where it is surely under the threshold."""
    limit = limits[name]
    if min(sizes) < LEAST_REQUESTS:
        note = f"{sizes[0]} and {sizes[1]} requests; {LEAST_REQUESTS} of each are needed"
        return Condition(name, None, None, None, None, limit, GateResult.UNDECIDED, note=note)
    old, old_low, old_high = _wilson(counts[0], sizes[0])
    new, new_low, new_high = _wilson(counts[1], sizes[1])
    low = new - old - math.hypot(new - new_low, old_high - old)
    high = new - old + math.hypot(new_high - new, old - old_low)
    result = GateResult.UNDECIDED
    if high <= limit:
        result = GateResult.PASS
    elif new - old > limit and low > 0:
        result = GateResult.FAIL
    return Condition(name, old, new, low, high, limit, result, events, "interval of the difference")


def _wilson(count: int, size: int) -> tuple[float, float, float]:
    """A share with its Wilson interval."""
    share, square = count / size, _Z * _Z
    middle = (share + square / (2 * size)) / (1 + square / size)
    half = _Z * math.sqrt(share * (1 - share) / size + square / (4 * size * size)) / (1 + square / size)
    return share, max(middle - half, 0.0), min(middle + half, 1.0)


def _count(  # noqa: PLR0917 - what one condition is made of
    name: str, old: int | None, new: int, limits: Mapping[str, float], candidate: Side | None = None, note: str = ""
) -> Condition:
    """What must not happen at all: a count has no interval."""
    result = GateResult.PASS if new <= limits[name] else GateResult.FAIL
    events = candidate.broken[:5] if candidate is not None else ()
    return Condition(
        name, None if old is None else float(old), float(new), float(new), float(new), limits[name], result, events, note
    )
