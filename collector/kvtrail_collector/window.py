"""Which stretch of time is to be explained, and which one it is compared with (LEDGER §5, steps 1 to 3)."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from kvtrail_collector.attribution_shapes import Measure
from kvtrail_collector.attribution_tail import choose_quantile
from kvtrail_collector.facts_rows import Interval
from kvtrail_collector.population import Population
from kvtrail_collector.window_reference import quiet_part
from kvtrail_collector.window_search import search_windows, warm_up_end_ns

MIN_LIFT_NS: Final = {Measure.TTFT: 5_000_000, Measure.GAPS: 1_000_000}
REFERENCE_IN_WINDOWS: Final = 5
_RECOVERY_SHARE: Final = 0.1


@dataclass(frozen=True, slots=True)
class Choice:
    """A window, its reference, and the quantile that both can bear; `side` says where the reference lies.

    `notes` say what was cut from the reference; `refused` why it cannot serve, if it cannot. `others` are the other spikes.
    """

    window: Interval
    reference: Interval
    quantile: Fraction
    side: str
    notes: tuple[str, ...] = ()
    refused: str | None = None
    others: tuple[Interval, ...] = ()

    @property
    def worth(self) -> tuple[bool, Fraction]:
        """One that is not refused is better than one that is; then one that bears a higher quantile."""
        return self.refused is None, self.quantile


def search_window(population: Population, *, seed: int) -> Interval | None:
    """The costliest spike in a population that is not empty, or None where none is better than chance."""
    found = search_windows(population, seed=seed)
    return found[0] if found else None


def choose(
    population: Population,
    window: Interval,
    reference: Interval | None,
    *,
    others: Sequence[Interval] = (),
    seed: int = 0,
) -> Choice | None:
    """A reference for a window: as given, or before the window, or after it where that bears a higher quantile.

    The other spikes, where some are known, and spells are cut out of it. One with a trend is the choice only where nothing
    else is, and says that it is refused. None where nothing bears even the median.
    """
    requests = len(population.arrived_in(*window))
    sides = {"given": reference} if reference else _sides(population, window)
    best: Choice | None = None
    for side, stretch in sides.items():
        quiet = quiet_part(population, stretch, known=others, seed=seed)
        quantile = choose_quantile(requests, len(population.arrived_in(*quiet.stretch)))
        if quantile is not None:
            found = Choice(window, quiet.stretch, quantile, side, quiet.notes, quiet.refused, tuple(others))
            best = found if best is None or found.worth > best.worth else best
    return best


def _sides(population: Population, window: Interval) -> dict[str, Interval]:
    """The stretches on both sides of a window, without warm-up and recovery, the preferred one first."""
    length = window[1] - window[0]
    longest = REFERENCE_IN_WINDOWS * length
    warm, last = warm_up_end_ns(population), int(population.arrived_ns[-1]) + 1
    recovered = window[1] + int(length * _RECOVERY_SHARE)
    before = (max(warm, window[0] - longest), max(window[0], warm))
    after = (min(recovered, last), min(recovered + longest, last))
    return {"before": before, "after": after}
