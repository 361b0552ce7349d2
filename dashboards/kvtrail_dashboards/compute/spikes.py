"""The slow stretches that there are to choose from, in words, and which of them is looked at."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from kvtrail_dashboards.answers import Window
from kvtrail_dashboards.asked import Asked
from kvtrail_dashboards.compute.figures import duration
from kvtrail_dashboards.compute.latency import Band
from kvtrail_dashboards.compute.wall import WallTime
from kvtrail_dashboards.page_answers import SpikeRow

_LONG_S: Final = 10

Span = tuple[int, int]
"""Arrivals in [start, end), on the engine's monotonic clock."""


@dataclass(frozen=True, slots=True)
class SpikeChoice:
    """One slow stretch: what a link holds, what a list says, and what a chart marks."""

    window: Span
    told: str
    band: Band


def spike_choices(spikes: Sequence[SpikeRow], wall: WallTime) -> tuple[SpikeChoice, ...]:
    """The stretches in the order given, the latest first."""
    return tuple(_choice(spike, wall) for spike in spikes)


def spikes_within(spikes: Sequence[SpikeRow], asked: Asked, wall: WallTime) -> tuple[SpikeChoice, ...]:
    """Those that have time in common with what is asked about."""
    start_ns, end_ns = asked.start_ns, asked.end_ns
    own = [
        spike
        for spike in spikes
        if (start_ns is None or spike.end_ns > start_ns) and (end_ns is None or spike.start_ns < end_ns)
    ]
    return spike_choices(own, wall)


def place_of_spike(choices: Sequence[SpikeChoice], window: Span | None) -> int | None:
    """Which of the stretches a window is: the one that shares most time with it; None where none shares half of its own."""
    if window is None:
        return None
    shared = [(_shared_ns(choice.window, window), place) for place, choice in enumerate(choices)]
    most_ns, place = max(shared, default=(0, 0))
    return place if choices and 2 * most_ns > _length_ns(choices[place].window) else None


def span_of(window: Window | None) -> Span | None:
    """A window as a link holds it."""
    return None if window is None else (window.start_ns, window.end_ns)


def _choice(spike: SpikeRow, wall: WallTime) -> SpikeChoice:
    """One stretch."""
    start, end = wall.at(spike.start_ns), wall.at(spike.end_ns)
    length_s = (spike.end_ns - spike.start_ns) / 1e9
    slow = f"P95 {duration(spike.p95_ms)}, else {duration(spike.usual_p95_ms)}"
    length = f"{length_s:,.0f} s" if length_s >= _LONG_S else f"{length_s:.1f} s"
    told = f"{start:%m-%d %H:%M:%S} to {end:%H:%M:%S} UTC ({length}): {slow}"
    return SpikeChoice((spike.start_ns, spike.end_ns), told, Band("slow", start, end))


def _shared_ns(one: Span, other: Span) -> int:
    """The time that two stretches have in common."""
    return max(min(one[1], other[1]) - max(one[0], other[0]), 0)


def _length_ns(one: Span) -> int:
    """How long a stretch is."""
    return one[1] - one[0]
