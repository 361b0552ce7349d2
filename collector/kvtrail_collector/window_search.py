"""The search for spikes in a run: one spell in all, else two in all, else a spell of what requests spent on one cause.

Each looks where the one before is blind. Of two spells each makes the other look like chance. And what is small beside the
restlessness of all that requests wait for stands out in the one queue that it fills. Whether requests are slower there at all
is for the comparison to say.
"""

from collections.abc import Sequence
from typing import Final

from kvtrail_collector.facts_rows import Interval
from kvtrail_collector.population import Population
from kvtrail_collector.window_scan import MIN_REQUESTS, SECOND_NS, Spell, find_pairs, find_spells
from kvtrail_collector.window_series import Series, cause_series, series_of

MAX_P_VALUE: Final = 0.005
MAX_P_VALUE_IN_SHORT: Final = 0.02
SHORT_NS: Final = 120 * SECOND_NS
"""In a short run few orders of its stretches differ, and only a plain spell is rarer than this."""
MOST_SPIKES: Final = 4
LONG_SHARE: Final = 0.3
CALM_SHARE: Final = 0.2
REACH_SHARE: Final = 0.1
_WARM_UP_SHARE: Final = 0.08
_WARM_UP_NS: Final = 5 * SECOND_NS
_WARM_UP_MOST_NS: Final = 60 * SECOND_NS
_WARM_UP_MOST_SHARE: Final = 0.2


def warm_up_end_ns(population: Population) -> int:
    """When a run has warmed up: after 8 % of it, at least 5 s and at most a minute or a fifth."""
    start, end = int(population.arrived_ns[0]), int(population.arrived_ns[-1])
    wanted = min(max(_WARM_UP_NS, int((end - start) * _WARM_UP_SHARE)), _WARM_UP_MOST_NS)
    return start + min(wanted, int((end - start) * _WARM_UP_MOST_SHARE))


def search_windows(population: Population, *, seed: int) -> list[Interval]:
    """The spikes of a population that is not empty and that are no chance, the costliest first; most runs have none.

    Pure; up to a second for any number of requests, most of it where there is nothing to be found. The same seed gives the same
    answer.
    """
    warm = population.arrived_in(warm_up_end_ns(population), int(population.arrived_ns[-1]) + 1)
    span_ns = int(population.arrived_ns[-1] - population.arrived_ns[0])
    most = MAX_P_VALUE_IN_SHORT if span_ns < SHORT_NS else MAX_P_VALUE
    series = series_of(warm)
    alone = _first_sure([(spell,) for spell in find_spells(series, seed=seed)], most)
    if not alone or alone[0][1] - alone[0][0] >= LONG_SHARE * span_ns:
        pair = _first_sure(find_pairs(series, seed=seed), most)
        alone = pair if not alone or _is_calm_between(pair, alone[0]) else alone
    found = alone or _first_sure([(spell,) for spell in find_spells(cause_series(warm), seed=seed)], most)
    return _with_others(found, series[0], most, seed) if found else []


def _is_calm_between(pair: Sequence[Interval], whole: Interval) -> bool:
    """Whether a long spike is two within it, with a good part of it between them."""
    if len(pair) < 2:  # noqa: PLR2004 - no pair
        return False
    (start, low), (high, end) = sorted(pair)
    length = whole[1] - whole[0]
    reach = REACH_SHARE * length
    return start >= whole[0] - reach and end <= whole[1] + reach and high - low >= CALM_SHARE * length


def _first_sure(ranked: Sequence[tuple[Spell, ...]], most: float) -> list[Interval]:
    """The first of what was found that is no chance, its costliest spell first."""
    sure = next((spells for spells in ranked if spells[0].p_value <= most), ())
    return [(spell.start_ns, spell.end_ns) for spell in sorted(sure, key=lambda spell: -spell.cost)]


def _with_others(found: list[Interval], series: Series, most: float, seed: int) -> list[Interval]:
    """What is found besides, once what was found before is left out."""
    spikes = list(found)
    while len(spikes) < MOST_SPIKES:
        left = series
        for spike in sorted(spikes, reverse=True):
            left = left.without(spike)
        if len(left.arrived_ns) < MIN_REQUESTS:
            break
        more = _first_sure([(spell,) for spell in find_spells([left], seed=seed)], most)
        if not more or (placed := _placed(more[0], spikes)) is None:
            break
        spikes.append(placed)
    return spikes


def _placed(stretch: Interval, without: Sequence[Interval]) -> Interval | None:
    """Where a stretch of the closed time lies in the whole; None where one that was left out lies within it."""
    start, end = stretch
    for low, high in sorted(without):
        if start < low < end:
            return None
        if low <= start:
            start, end = start + high - low, end + high - low
    return start, end
