"""One parameter at a time: what prefetch did, what restores took, and how idle the gpu was, beside each other."""

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
from kvtrail_engine.modes import Mode
from kvtrail_engine.proof import sink
from kvtrail_engine.settings import EngineSettings
from kvtrail_schema.absent import NO_U64
from kvtrail_schema.emitter import Emitter
from kvtrail_schema.kinds import Kind

from kvtrail_cli.compare.figures import Tally
from kvtrail_cli.compare.fleet import Lane, fleet, turns, warm_up
from kvtrail_cli.compare.parameter import full_name, with_parameter
from kvtrail_cli.compare.plan import HINT_LEAD_NS, SCENARIOS, SWEEP_LOAD, Load, sweep_settings
from kvtrail_cli.compare.shapes import Sweep, SweepPoint
from kvtrail_cli.output import Advance
from kvtrail_cli.quantiles import quantiles_ms


class Counter:
    """An observer that counts prefetches and keeps the length of restores; everything else it forgets. One engine's."""

    def __init__(self) -> None:
        self.issued = self.used = 0
        self.restores_ns: list[int] = []

    def prefetch_issued(self, *_args: Any, **_kwargs: Any) -> int:
        """One more block."""
        self.issued += 1
        return 0

    def prefetch_used(self, *_args: Any, **_kwargs: Any) -> int:
        """One more block that somebody read."""
        self.used += 1
        return 0

    def swap_in_loaded(self, *_args: Any, **parts: Any) -> int:
        """The first row of an op carries its parts, which add up to its length."""
        if parts.get("queue_ns", NO_U64) != NO_U64:
            names = ("queue_ns", "alloc_ns", "submit_ns", "io_ns", "copy_ns", "sync_ns")
            self.restores_ns.append(sum(parts[name] for name in names))
        return 0

    def emit_blocks(self, kind: Kind, _blocks: Sequence[int], _slots: Sequence[int] | None = None, /, **parts: Any) -> int:
        """Rows of an op, the first of which carries its parts."""
        return self.swap_in_loaded(**parts) if kind is Kind.SWAP_IN_LOADED else 0

    def __getattr__(self, name: str) -> Callable[..., int]:
        if name.startswith("_"):
            raise AttributeError(name)
        return _forget


def _forget(*_args: Any, **_kwargs: Any) -> int:
    """Any other event."""
    return 0


def run_sweep(
    base: EngineSettings, mode: Mode, name: str, values: list[str], *, seed: int, requests: int, advance: Advance
) -> Sweep:
    """A busy load on one path, at each value in turn; sweeping a setting of prefetch turns prefetch on, and announces
    each request a while before it comes. Blocks for it.

    Raises:
        InputInvalid: no such setting, or no such value.
        SettingsError: a value that the engine cannot work with.
    """
    counters = {value: Counter() for value in values}
    prefetches = full_name(name).startswith("prefetch.")
    start = sweep_settings(base, prefetches=prefetches)
    settings = {value: with_parameter(start, name, value) for value in values}
    load, done = Load(seed, len(SCENARIOS), requests), 0
    with fleet(settings, {value: cast("Emitter", counter) for value, counter in counters.items()}) as lanes:
        for _ in warm_up(lanes, load.warm_up):
            pass
        for lane in lanes:
            sink(lane.engine, max(tier for tier, pool in lane.engine.context.pools.items() if pool.slots))
            _forget_warm_up(counters[lane.path])
            lane.hint_lead_ns = HINT_LEAD_NS if prefetches else None
        for number, stretch in enumerate(load.rounds()):
            for lane in turns(lanes, number):
                lane.run(stretch)
                done += len(stretch)
                advance(done, requests * len(lanes))
        points = tuple(_point(lane, counters[lane.path]) for lane in lanes)
    return Sweep(name, mode.value, SWEEP_LOAD.name, points)


def _forget_warm_up(counter: Counter) -> None:
    """What filled the caches does not count."""
    counter.issued = counter.used = 0
    counter.restores_ns.clear()


def _point(lane: Lane, counter: Counter) -> SweepPoint:
    """One value's line."""
    tally: Tally = lane.tally
    restores_ns = counter.restores_ns
    return SweepPoint(
        value=lane.path,
        prefetches_issued=counter.issued,
        prefetches_used=counter.used,
        restore_p95_ms=round(float(np.quantile(restores_ns, 0.95)) / 1e6, 3) if restores_ns else None,
        gpu_idle=round(max(1 - tally.busy_ns / max(tally.elapsed_ns, 1), 0.0), 4),
        ttft_ms=quantiles_ms([result.ttft_ns for result in tally.results if result.ttft_ns is not None]),
    )
