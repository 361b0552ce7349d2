"""What counts as right: a file for every fault, and nothing else counts."""

import pytest
from kvtrail_cli.drill.expected import NEIGHBOUR, Answer, expected_of, known_faults
from kvtrail_cli.drill.generated.mechanism import FAULTS
from kvtrail_collector.attribution_shapes import Verdict, Window
from kvtrail_engine.drills.registry import DRILL_NAMES

WINDOW = Window(0, 1, 100, 1.0)


def verdict(code: str, tier: str | None = None, tenant: str | None = None) -> Verdict:
    """A verdict of which only its name matters."""
    return Verdict(code, tier, tenant, None, 1.0, 1.0, "population", WINDOW, {}, (), "")


def test_every_fault_has_its_answer() -> None:
    """Live and generated faults are the same, and each has a file that says what is right."""
    assert set(known_faults()) == set(DRILL_NAMES)
    assert set(FAULTS) | {"none"} == set(known_faults())
    assert [fault for fault in known_faults() if expected_of(fault).fault != fault] == []


def test_only_no_fault_has_no_answer() -> None:
    """Wherever something is broken, or shifted, something is the right answer."""
    assert [fault for fault in known_faults() if not expected_of(fault).right] == ["none"]


def test_tier_and_tenant_are_judged_where_they_are_named() -> None:
    """The right code for another tier, or for somebody else's work, is wrong; what an answer does not name is not judged."""
    queue = expected_of("nvme-queue")

    assert queue.accepts(verdict("TIER_QUEUE", "nvme", "ab12"), neighbour="ab12")
    assert not queue.accepts(verdict("TIER_QUEUE", "host", "ab12"), neighbour="ab12")
    assert not queue.accepts(verdict("TIER_QUEUE", "nvme", "cd34"), neighbour="ab12")
    assert not queue.accepts(verdict("TIER_QUEUE", "nvme"), neighbour="ab12")
    assert expected_of("noticed-late").accepts(verdict("PREFETCH_READY_DELAY", "nvme"))


def test_a_neighbour_that_is_not_known_is_named_by_nobody() -> None:
    """Where the events do not show whose work it was, no verdict is right by chance."""
    assert not Answer("TIER_QUEUE", tenant=NEIGHBOUR).is_given_by(verdict("TIER_QUEUE", "nvme"), None)


def test_ties_count() -> None:
    """A tie is another true name for the same nanoseconds."""
    flood = expected_of("prefetch-flood")

    assert flood.accepts(verdict("PREFETCH_WASTE", "nvme"))
    assert flood.accepts(verdict("TIER_QUEUE", "nvme", "ab12"), neighbour="ab12")
    assert not flood.accepts(verdict("TIER_SLOW", "nvme"))


@pytest.mark.parametrize("fault", known_faults())
def test_silence_is_no_tie(fault: str) -> None:
    """Nothing that is said is right where nothing was broken."""
    assert not expected_of("none").accepts(verdict(next((a.code for a in expected_of(fault).right), "GAP")))
