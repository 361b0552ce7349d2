"""Estimates: medians that a burst does not turn, and a choice that follows from them."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kvtrail_engine.estimates import REFRESH_EVERY, Estimator, RunningMedian
from kvtrail_engine.settings import FloorSettings, RestorePolicy, StepSettings, TierSettings
from kvtrail_engine.testing import CollectingEmitter
from kvtrail_schema.enums import Tier
from kvtrail_schema.events import PrefillChunk, RecomputeChosen, RestoreChosen, SwapInQueued
from kvtrail_schema.reasons import PrefillReason

from tests.engine.conftest import StartEngine
from tests.engine.engines import ask, tiny

MS = 1_000_000


@given(values=st.lists(st.integers(0, 10**9), min_size=1, max_size=200), window=st.integers(1, 64))
def test_the_median_is_one_of_the_values(values: list[int], window: int) -> None:
    """An estimate is something that was observed."""
    running = RunningMedian(window, prior=-1)
    for value in values:
        running.add(value)

    assert running.value in values


def test_a_burst_does_not_turn_a_long_window() -> None:
    """Fewer slow ops than half of the window leave the estimate where it was."""
    running = RunningMedian(1024, prior=0)
    for value in [10] * 300 + [1000] * (300 - REFRESH_EVERY):
        running.add(value)

    assert running.value == 10


def test_before_anything_was_seen_the_floors_speak(data_dir: Path) -> None:
    """A new engine knows at least what it was told to take."""
    floor = FloorSettings(read_latency_ns=7 * MS)
    settings = tiny(data_dir, nvme=TierSettings(10, floor=floor), step=StepSettings(floor_prefill_token_ns=50_000))
    estimates = Estimator(settings)

    assert estimates.restore_ns({Tier.NVME: 3}) == 7 * MS
    assert estimates.restore_ns({Tier.NVME: 17}) == 14 * MS
    assert estimates.recompute_ns(100, 60) == 8 * MS


@pytest.mark.parametrize(
    ("read_ms", "is_restored"),
    [(1, True), (500, False)],
)
def test_the_cheaper_way_is_taken_and_both_prices_are_told(
    data_dir: Path, start_engine: StartEngine, recorded: CollectingEmitter, read_ms: int, is_restored: bool
) -> None:
    """A quick tier is restored from, a slow one is not; the decision names both estimates."""
    step = StepSettings(floor_prefill_token_ns=300_000)
    host = TierSettings(slots=40, floor=FloorSettings(read_latency_ns=read_ms * MS))
    engine = start_engine(tiny(data_dir, step=step, host=host, restore_policy=RestorePolicy.AUTO))
    engine.submit(ask(1)).result(10)
    while engine.ask(lambda: engine.transfers.in_flight):
        pass
    engine.ask(lambda: engine.maintenance.clear(Tier.GPU))
    result = engine.submit(ask(1)).result(10)
    chosen = recorded.of(RestoreChosen) if is_restored else recorded.of(RecomputeChosen)

    assert bool(result.restored) is is_restored
    assert [(event.tier, event.tokens) for event in chosen] == [(Tier.HOST, 128)]
    assert ((chosen[0].restore_estimate_ns or 0) <= (chosen[0].recompute_estimate_ns or 0)) is is_restored
    if is_restored:
        first = recorded.of(SwapInQueued)[0]
        assert first.restore_estimate_ns == chosen[0].restore_estimate_ns
    else:
        assert PrefillReason.CHOSEN in {event.reason for event in recorded.of(PrefillChunk)}
