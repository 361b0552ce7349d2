"""A reference must be a quiet time: what is wrong with it is found before anything is compared with it."""

import numpy as np
import pytest
from kvtrail_collector.population import Population
from kvtrail_collector.window import choose
from kvtrail_collector.window_reference import quiet_part, trend_of

from tests.collector.attribution.populations import MS, population

SECOND = 1_000 * MS


def noisy(seed: int, *, slow: tuple[int, int] = (0, 0), growth: float = 0.0) -> Population:
    """2,000 requests in 100 s, some of them slow from one second to another, or all of them slower with time."""
    rng = np.random.default_rng(seed)
    at = np.sort(rng.uniform(0, 100, 2_000) * SECOND).astype(np.int64)
    latency = (rng.exponential(30 * MS, 2_000) + 20 * MS) * (1 + growth * at / at[-1])
    latency[(at >= slow[0] * SECOND) & (at < slow[1] * SECOND) & (rng.random(2_000) < 0.4)] += 150 * MS
    return population([[int(ns)] for ns in latency], at=at)


@pytest.mark.parametrize("seed", range(3))
def test_a_spell_is_left_out(seed: int) -> None:
    """A fault in the reference does not hide the next one: what lies after it serves, and that is said."""
    quiet = quiet_part(noisy(seed, slow=(20, 40)), (10 * SECOND, 80 * SECOND), seed=seed)

    assert abs(quiet.stretch[0] - 40 * SECOND) < 2 * SECOND
    assert quiet.stretch[1] == 80 * SECOND
    assert quiet.refused is None
    assert "had a spell of" in quiet.notes[0]


def test_a_spike_that_is_known_is_left_out_however_mild() -> None:
    """What the search found beside the window is in no reference, though the reference by itself shows nothing."""
    known = (20 * SECOND, 30 * SECOND)
    quiet = quiet_part(noisy(1), (10 * SECOND, 80 * SECOND), known=[known, (85 * SECOND, 90 * SECOND)], seed=1)

    assert (30 * SECOND, 80 * SECOND) == quiet.stretch
    assert ("the reference had a spell of 10 s in it, which was left out",) == quiet.notes


def test_what_lies_before_serves_where_it_is_more() -> None:
    """Where the spell reaches to the window, as when a window was given too late, what lies before the spell serves."""
    quiet = quiet_part(noisy(1, slow=(65, 80)), (10 * SECOND, 80 * SECOND), seed=1)

    assert quiet.stretch[0] == 10 * SECOND
    assert abs(quiet.stretch[1] - 65 * SECOND) < 2 * SECOND


@pytest.mark.parametrize("seed", range(3))
def test_what_lasts_longer_is_the_usual(seed: int) -> None:
    """Pools that have filled make every request slower from then on: that is no spell, and what came before is no measure."""
    quiet = quiet_part(noisy(seed, slow=(42, 80)), (10 * SECOND, 80 * SECOND), seed=seed)

    assert abs(quiet.stretch[0] - 42 * SECOND) < 3 * SECOND
    assert abs(quiet.stretch[1] - 80 * SECOND) < 3 * SECOND
    assert quiet.refused is None
    assert ("the reference became slower on its way: the part since then was used",) == quiet.notes


@pytest.mark.parametrize("seed", range(2, 5))
def test_a_trend_is_refused(seed: int) -> None:
    """A reference that grows all the time would make any window after it look ill: it is refused, with the reason."""
    choice = choose(noisy(seed, growth=3.0), (75 * SECOND, 100 * SECOND), None)

    assert choice is not None
    assert "the reference has a trend: its tail grew by" in (choice.refused or "")


def test_what_settles_serves() -> None:
    """A reference that becomes faster, as caches fill, invents no fault: what has settled most serves."""
    quiet = quiet_part(noisy(2, growth=-0.7), (10 * SECOND, 70 * SECOND), seed=2)

    assert quiet.refused is None
    assert 40 * SECOND <= quiet.stretch[0] < 50 * SECOND
    assert quiet.stretch[1] == 70 * SECOND


def test_health_is_not_refused() -> None:
    """A quiet reference is taken whole, nearly always."""
    quiets = [quiet_part(noisy(seed), (10 * SECOND, 80 * SECOND), seed=seed) for seed in range(20)]
    whole = [quiet for quiet in quiets if quiet.stretch == (10 * SECOND, 80 * SECOND) and quiet.refused is None]

    assert len(whole) >= 19


def test_a_spell_is_no_trend() -> None:
    """Values that keep company for a while do not make a trend; steady growth does, and fall does."""
    rng = np.random.default_rng(5)
    restless = np.repeat(rng.exponential(50 * MS, 25), 80) + rng.exponential(20 * MS, 2_000)

    assert trend_of(population([[int(ns)] for ns in restless]), seed=1) is None
    assert (trend_of(noisy(3, growth=2.0), seed=1) or 0) > 1.5
    assert (trend_of(noisy(3, growth=-0.7), seed=1) or 1) < 0.7
