"""Which findings stand: the component decides where no detector does, and of two faults both are named where both are sure."""

import pytest
from kvtrail_collector.attribution import attribute
from kvtrail_collector.attribution_shapes import Attribution, Measure
from kvtrail_collector.detectors.registry import DETECTORS
from kvtrail_collector.ledger_parts import Component
from kvtrail_collector.verdicts_table import CODE_OF, GENERAL_OF, RECOMPUTE_CODE_OF, is_more_specific

from tests.collector.attribution.synthetic import Fault, Plan, simulate


def answer_to(fault: Fault, second: Fault = Fault.NONE, seed: int = 1) -> Attribution:
    """What is said of a run with one fault or two."""
    return attribute(simulate(Plan(seed=seed, fault=fault, second=second, rate_per_s=28)).table(), seed=seed)


@pytest.mark.parametrize("seed", range(3))
def test_a_component_that_no_detector_tests(seed: int) -> None:
    """Data that nobody looks for has the code of its component, with both figures and the requests that it hit most."""
    answer = answer_to(Fault.NOTICED_LATE, seed=seed)
    verdict = answer.verdicts[0]

    assert (verdict.code, verdict.tier, verdict.component) == ("PREFETCH_READY_DELAY", None, Component.DEFERRED)
    assert float(verdict.evidence["sched_wait.deferred_ms"]) > 10 * float(verdict.evidence["reference_sched_wait.deferred_ms"])
    assert len(verdict.events) == 5
    assert answer.identified


@pytest.mark.parametrize("seed", range(3))
def test_two_faults(seed: int) -> None:
    """Of two faults at once both are named, the larger first, and no nanosecond is in both."""
    answer = answer_to(Fault.NVME_SLOW, Fault.SLOW_LOOKUP, seed=seed)
    shares = [verdict.share for verdict in answer.verdicts]

    assert {"TIER_SLOW", "LOOKUP_BOUND"} == {verdict.code for verdict in answer.verdicts}
    assert shares == sorted(shares, reverse=True)
    assert sum(shares) <= 1.0 + 1e-9
    assert all(verdict.confidence >= 0.95 for verdict in answer.verdicts)


def test_every_component_has_its_code() -> None:
    """Each component gives a code, but recomputing, which depends on its reason, and what nobody owns."""
    assert set(Component) - {Component.RECOMPUTE_PREFILL, Component.UNATTRIBUTED} == set(CODE_OF)
    assert {"evicted", "load_failed", "checksum"} == set(RECOMPUTE_CODE_OF)


def test_detectors_agree_with_the_table() -> None:
    """A detector takes a component from another code only where it is the more specific word for it."""
    apart = {
        (detector.code, CODE_OF[component].name)
        for detector in DETECTORS
        for component in detector.components
        if component in CODE_OF and CODE_OF[component].name != detector.code
    }

    # A slow tier grows a queue before it: one cause, and its detectors leave no case to both. A wait for steps is a shift of
    # the mix only where no demand or newcomer explains it, and what is broken keeps it where both fit.
    assert {pair for pair in apart if not is_more_specific(*pair)} <= {
        ("TIER_SLOW", "TIER_QUEUE"),
        ("READ_FAILURE", "SUBMIT_BOUND"),
        ("MIX_SHIFT", "SCHED_QUEUE"),
    }


def test_more_specific_is_no_circle() -> None:
    """No code is more specific than one that is more specific than it."""
    assert all(not is_more_specific(general, code) for code, generals in GENERAL_OF.items() for general in generals)
    assert is_more_specific("PREFETCH_WASTE", "TIER_QUEUE")
    assert not is_more_specific("TIER_QUEUE", "PREFETCH_WASTE")


def test_gaps_of_requests_with_one_token() -> None:
    """Where no request got two tokens there are no gaps, and that is said."""
    answer = attribute(simulate(Plan(seed=1, run_s=20)).table(), measure=Measure.GAPS)

    assert (Measure.GAPS, "no request got two tokens") == (answer.measure, answer.why_not)
