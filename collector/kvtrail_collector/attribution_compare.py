"""Two windows compared, from the highest quantile down that both can bear (LEDGER §5, steps 1, 2, 4 to 6)."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from kvtrail_collector.attribution_strata import Strata, strata_of
from kvtrail_collector.attribution_tail import Excess, excess_of, quantiles_for
from kvtrail_collector.bootstrap import Resamples, resample
from kvtrail_collector.population import Population

MIN_LIFT_SHARE: Final = 0.10
MIN_KNOWN_SHARE: Final = 0.2
MOST_CHANCE: Final = 0.01
MOST_CHANCE_WHERE_SEARCHED: Final = 0.025
MIX_SHARE: Final = 0.8
LOWEST_FALLBACK: Final = Fraction(90, 100)


@dataclass(frozen=True, slots=True)
class Comparison:
    """A window and its reference at one quantile. Resamples are there where the lift is worth them."""

    quantile: Fraction
    window: Population
    reference: Population
    strata: Strata
    excess: Excess
    min_lift_ns: int
    most_chance: float
    resamples: Resamples | None

    @property
    def is_lifted(self) -> bool:
        """Whether requests of the same kind are slower by enough to speak of."""
        return _is_lift(float(self.excess.within_ns), float(self.excess.reference.mean_ns), self.min_lift_ns)

    @property
    def is_chance(self) -> bool:
        """Whether such a difference may be chance: its interval holds 0, or windows of the same kind differ as much."""
        if self.resamples is None:
            return True
        low_ns, _ = self.resamples.interval_ns(list(range(len(self.window.causes))))
        return low_ns <= 0 or self.resamples.chance(float(self.excess.within_ns)) > self.most_chance

    @property
    def is_mix(self) -> bool:
        """Whether the whole excess disappears once like is compared with like, and is no chance."""
        mixed = self.excess.mix_ns >= Fraction(MIX_SHARE) * self.excess.tail_ns
        return not self.is_lifted and mixed and self._is_mix_sure

    @property
    def is_partly_mix(self) -> bool:
        """Whether the whole excess is no chance and another mix is part of it, though the rest may be chance by itself."""
        return self._is_mix_sure and self.resamples is not None and self.resamples.excess_interval_ns()[0] > 0

    @property
    def _is_mix_sure(self) -> bool:
        """Whether the tail is slower by enough to speak of, and another mix makes it slower."""
        base = float(self.excess.whole.mean_ns - self.excess.tail_ns)
        is_lift = _is_lift(float(self.excess.tail_ns), base, self.min_lift_ns)
        return is_lift and self.resamples is not None and self.resamples.mix_interval_ns()[0] > 0


@dataclass(frozen=True, slots=True)
class Comparability:
    """At which quantiles a window can be compared with a reference, and what keeps it from others."""

    strata: Strata
    quantiles: tuple[Fraction, ...]
    unknown: str | None
    notes: tuple[str, ...]


def comparability(window: Population, reference: Population) -> Comparability:
    """What can be compared. P50 serves only where nothing higher has requests enough: a median says little of a tail."""
    strata = strata_of(window, reference)
    known = int(strata.known.sum())
    notes = tuple(_newcomers(len(window) - known, len(window))) if known < len(window) else ()
    if known < MIN_KNOWN_SHARE * len(window):
        return Comparability(strata, (), "the reference has nothing like most requests of the window: give another", notes)
    borne = quantiles_for(known, len(reference))
    borne = tuple(p for p in borne if p == borne[0] or p >= LOWEST_FALLBACK)
    censored = {p: text for p in borne if (text := _censored(p, window, reference)) is not None}
    left = tuple(p for p in borne if p not in censored)
    told = tuple(censored.values())
    return Comparability(strata, left, None if left or not told else told[0], (*notes, *told) if left else notes)


def comparisons(
    window: Population, reference: Population, able: Comparability, *, min_lift_ns: int, searched: bool, seed: int
) -> Iterator[Comparison]:
    """Compare at each quantile in turn, the highest first. Under 0.7 s each for 100,000 requests."""
    for p in able.quantiles:
        excess = excess_of(window, reference, p, able.strata)
        base = float(excess.whole.mean_ns - excess.tail_ns)
        worth = any(_is_lift(float(ns), base, min_lift_ns) for ns in (excess.within_ns, excess.tail_ns))
        resamples = resample(window, reference, p, able.strata, seed=seed) if worth else None
        # A window that was searched for has been judged already, by what searching finds in shuffled time.
        most_chance = MOST_CHANCE_WHERE_SEARCHED if searched else MOST_CHANCE
        yield Comparison(p, window, reference, able.strata, excess, min_lift_ns, most_chance, resamples)


def _is_lift(ns: float, base_ns: float, min_lift_ns: int) -> bool:
    """Whether a difference is large enough to speak of."""
    return ns >= min_lift_ns and ns >= MIN_LIFT_SHARE * base_ns


def _newcomers(number: int, of: int) -> Iterator[str]:
    """What is said of requests that have nothing to be compared with."""
    yield f"{number} of {of} requests of the window are of a kind that the reference has not: what they add is counted as mix"


def _censored(p: Fraction, window: Population, reference: Population) -> str | None:
    """Why a quantile is not known, where too many requests never got their first token."""
    for name, requests in (("window", window), ("reference", reference)):
        censored = int(requests.censored.sum())
        if censored > (1 - p) * len(requests):
            return f"P{float(p) * 100:g} is not known: {censored} of {len(requests)} requests of the {name} got no first token"
    return None
