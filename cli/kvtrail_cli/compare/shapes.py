"""What `kvtrail compare` answers (OUTPUTS, `compare`)."""

import msgspec

from kvtrail_cli.quantiles import Quantiles


class PathFigures(msgspec.Struct, frozen=True):
    """One path over some requests. Times are in milliseconds, shares from 0 to 1."""

    path: str
    requests: int
    restore_bytes: int
    """Bytes that were loaded into the gpu from a slower tier."""
    ttft_ms: Quantiles
    tpot_ms: Quantiles
    goodput_rps: float
    """Requests a second that were answered within the SLO."""
    gpu_idle: float
    """Share of the time in which no step ran."""
    error_rate: float
    """Share of the requests that were not answered."""
    energy_j: float | None
    """What the device took, where its driver says so."""
    device: str
    energy_j_reason: str | None = None


class Baseline(msgspec.Struct, frozen=True):
    """The median TTFT of one path, a request at a time, by what a cache can know of the prompt."""

    path: str
    cold_ms: float | None
    """Nothing is stored yet."""
    warm_ms: float | None
    """The whole prefix is on the gpu."""
    partial_ms: float | None
    """The first half of the prefix lies in the path's slowest tier."""
    miss_ms: float | None
    """The caches are full, and none of it is this prompt's."""


class ScenarioResult(msgspec.Struct, frozen=True):
    """One load on every path."""

    scenario: str
    prefix_tokens: int
    documents: int
    rate_per_s: float
    winners: tuple[str, ...]
    """The path with the lowest median TTFT, and those within the tie of it."""
    paths: tuple[PathFigures, ...]


def scenario_title(scenario: ScenarioResult) -> str:
    """A load in words."""
    documents = f"{scenario.documents} documents of {scenario.prefix_tokens} tokens"
    return f"{scenario.scenario}: {documents}, {scenario.rate_per_s:g} requests/s"


class SweepPoint(msgspec.Struct, frozen=True):
    """One value of one parameter, everything else as it was."""

    value: str
    prefetches_issued: int
    prefetches_used: int
    restore_p95_ms: float | None
    """From an op's queueing to its end."""
    gpu_idle: float
    ttft_ms: Quantiles


class Sweep(msgspec.Struct, frozen=True):
    """One parameter at several values, on one path and one load."""

    parameter: str
    path: str
    scenario: str
    points: tuple[SweepPoint, ...]


class SkippedPath(msgspec.Struct, frozen=True):
    """A path that could not be run here."""

    path: str
    reason: str


class Compare(msgspec.Struct, frozen=True):
    """The whole answer."""

    outputs_equal: bool
    """Every path gave every request the same tokens, and the same logits of the first one, bit for bit."""
    paths: tuple[PathFigures, ...]
    """All scenarios together."""
    baselines: tuple[Baseline, ...]
    scenarios: tuple[ScenarioResult, ...]
    slo_ttft_ms: float
    tie: str
    """What counts as equally good."""
    statement: str
    """What these figures say, and what they do not."""
    floors: str
    seed: int
    device: str
    skipped: tuple[SkippedPath, ...] = ()
    sweep: Sweep | None = None
    schema: int = 1
