"""Each detector fires on its own story and is silent on the one that looks like it."""

import pytest
from kvtrail_collector.attribution import attribute
from kvtrail_collector.attribution_shapes import Attribution
from kvtrail_collector.detectors.registry import DETECTORS

from tests.collector.attribution.synthetic import Fault, Plan, simulate


@pytest.fixture(scope="module", name="answers")
def answers_to_faults() -> dict[Fault, Attribution]:
    """What is said of each fault."""
    return {fault: attribute(simulate(Plan(seed=3, fault=fault)).table(), seed=3) for fault in Fault}


def codes(answer: Attribution) -> list[str]:
    """The codes of an answer."""
    return [verdict.code for verdict in answer.verdicts]


def test_registry() -> None:
    """Each code has one detector; the first three are asked first."""
    codes = [detector.code for detector in DETECTORS]

    assert codes[:3] == ["TIER_SLOW", "TIER_QUEUE", "SCHED_QUEUE"]
    assert len(set(codes)) == len(codes)


def test_tier_slow_fires(answers: dict[Fault, Attribution]) -> None:
    """A tier whose reads take longer is slow; its queue is named beside it, not instead of it."""
    verdict = answers[Fault.NVME_SLOW].verdicts[0]

    assert (verdict.code, verdict.tier, verdict.basis) == ("TIER_SLOW", "nvme", "population")
    assert float(verdict.evidence["read_cost_ratio"]) > 5
    assert float(verdict.evidence["load_ratio"]) < 1.5
    assert verdict.also in {(), ("TIER_QUEUE",)}
    assert len(verdict.events) == 5


def test_tier_slow_is_silent(answers: dict[Fault, Attribution]) -> None:
    """A longer queue at a tier that is as fast as ever is not slowness, nor is anything elsewhere."""
    assert "TIER_SLOW" not in {code for fault in Fault if fault is not Fault.NVME_SLOW for code in codes(answers[fault])}


def test_tier_queue_fires(answers: dict[Fault, Attribution]) -> None:
    """A queue behind another tenant's writes is a queue, and blame names tenant and kind."""
    verdict = answers[Fault.NVME_QUEUE].verdicts[0]

    assert (verdict.code, verdict.tier, verdict.tenant) == ("TIER_QUEUE", "nvme", "bb")
    assert verdict.evidence["blamed_kind"] == "write_back"
    assert float(verdict.evidence["blamed_share"]) > 0.8
    assert float(verdict.evidence["read_cost_ratio"]) < 1.25


def test_tier_queue_is_silent(answers: dict[Fault, Attribution]) -> None:
    """A queue that grew since the device got slower is no queue of its own."""
    assert "TIER_QUEUE" not in {code for fault in Fault if fault is not Fault.NVME_QUEUE for code in codes(answers[fault])}


def test_sched_queue_fires(answers: dict[Fault, Attribution]) -> None:
    """Long prompts that take the budget are named, with their tenant and the event they came with."""
    verdict = answers[Fault.LONG_PREFILL].verdicts[0]

    assert (verdict.code, verdict.tier, verdict.tenant) == ("SCHED_QUEUE", None, "bb")
    assert verdict.evidence["taker_prompt_tokens"] == 12_000
    assert float(verdict.evidence["long_prompts_share"]) > 0.5
    assert verdict.events


def test_sched_queue_is_silent(answers: dict[Fault, Attribution]) -> None:
    """Waits for data, or steps that are merely slower, are not a queue for the budget."""
    assert "SCHED_QUEUE" not in {code for fault in Fault if fault is not Fault.LONG_PREFILL for code in codes(answers[fault])}


@pytest.mark.parametrize("seed", range(3))
def test_slow_steps_are_silent(seed: int) -> None:
    """Steps that take longer for the same tokens make requests wait for the budget, but nobody took it."""
    answer = attribute(simulate(Plan(seed=seed, fault=Fault.SLOW_STEPS)).table(), seed=seed)

    assert answer.window is not None
    assert codes(answer) == []
