"""What `kvtrail drill storm` answers."""

from __future__ import annotations

import msgspec


class StormRun(msgspec.Struct, frozen=True):
    """One storm. Times are from its beginning, by the engine's own events; None: it did not come to it.

    `reference` is the time to first token before the storm, `storm` from its beginning until the action was applied, `after`
    from two seconds later to the end of the load; the storm itself goes on for a while in that last stretch. `fired` is how
    often the rule of wasted prefetches fired.
    """

    seed: int
    applied_s: float | None
    released_s: float | None
    stalled: bool
    fired: int
    reference_p99_ms: float
    storm_p99_ms: float | None
    after_p99_ms: float | None


class Storms(msgspec.Struct, frozen=True):
    """All of them; the quantiles of latencies are of the requests of all runs together."""

    runs: tuple[StormRun, ...]
    applied_p95_s: float | None
    reference_p99_ms: float
    storm_p99_ms: float | None
    after_p99_ms: float | None
    after_over_reference: float | None
    passed: bool
    device: str
    floors: str
    schema: int = 1
