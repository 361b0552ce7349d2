"""Attribution over a store: the spike is found in kept ledgers, and only its events, and those of the reference, are read."""

from __future__ import annotations

from typing import Final

import duckdb
import numpy as np

from kvtrail_collector.attribution import attribute, explain, no_spike
from kvtrail_collector.attribution_shapes import Attribution, Measure
from kvtrail_collector.facts_rows import Interval
from kvtrail_collector.population import Population
from kvtrail_collector.questions.facts import device
from kvtrail_collector.questions.population import stored_population
from kvtrail_collector.questions.rows import StreamRow, event_rows
from kvtrail_collector.questions.window_look import Look
from kvtrail_collector.questions.windows import WindowsRecording
from kvtrail_collector.window import REFERENCE_IN_WINDOWS, Choice, choose
from kvtrail_collector.window_search import search_windows

MOST_USUAL: Final = 5_000
"""By so many requests of the reference mechanisms are judged, those nearest to the window; excess and mix by all of it."""
_WINDOWS_BEFORE: Final = REFERENCE_IN_WINDOWS + 3


def attribute_stored(
    cursor: duckdb.DuckDBPyConnection,
    wanted: list[StreamRow],
    window: Interval | None = None,
    reference: Interval | None = None,
    *,
    seed: int = 0,
    measure: Measure = Measure.TTFT,
) -> Attribution:
    """As `attribute`, for the stored requests of some streams. Worker thread; under a second for ten million events.

    What is read of the events is what the verdict asks for, in several looks: it may be of several commits.

    Gaps between tokens are not kept: for them the events around the windows are read, or all where no window is given.
    """
    if measure is Measure.GAPS:
        span = None if window is None else gap_span(window, reference)
        return attribute(event_rows(cursor, wanted, span), window, reference, seed=seed, measure=measure)
    stored = stored_population(cursor, wanted)
    population = stored.population
    spikes = [window] if window else search_windows(population, seed=seed) if len(population) else []
    found = spikes[0] if spikes else None
    choice = choose(population, found, reference, others=spikes[1:]) if found else None
    if found is None and len(population):
        return no_spike(len(population), measure, device(cursor))
    if choice is None:
        return attribute(event_rows(cursor, wanted, found), window, reference, seed=seed)
    usual = nearest_part(population, choice)
    look = Look.at(cursor, wanted, _span(population, choice.window, usual))
    recording = WindowsRecording(look, stored)
    return explain(recording, choice, searched=window is None, seed=seed, population=population, usual=usual)


def nearest_part(population: Population, choice: Choice, most: int = MOST_USUAL) -> Interval:
    """The part of the reference that is nearest to the window, with so many requests at most: all of most references."""
    start, end = choice.reference
    arrived = population.arrived_in(start, end).arrived_ns
    if len(arrived) <= most:
        return start, end
    return (int(arrived[-most]), end) if end <= choice.window[0] else (start, int(arrived[most]))


def gap_span(window: Interval, reference: Interval | None) -> Interval:
    """The time whose events say all of the gaps in a window and in what it is compared with.

    So much more lies before it that what is left out as a warm-up lies there too. Requests that arrived before the span are not
    known.
    """
    length, first = window[1] - window[0], min(window[0], (reference or window)[0])
    last = max(window[1], (reference or window)[1])
    return first - _WINDOWS_BEFORE * length, last + (REFERENCE_IN_WINDOWS + 1) * length


def _span(population: Population, window: Interval, usual: Interval) -> Interval:
    """The time in which the requests of both windows lived."""
    low = min(window[0], usual[0])
    own = population.arrived_in(low, max(window[1], usual[1]))
    return low, int(np.max(own.arrived_ns + own.latency_ns, initial=low))
