"""Whole runs of a simulated engine: each fault gets its code, health gets silence, and drills are never read."""

import os

import msgspec
import pytest
from kvtrail_collector.attribution import attribute
from kvtrail_collector.attribution_shapes import Attribution

from tests.collector.attribution.synthetic import SECOND, Fault, Plan, Run, simulate, stream_table, without_drills

IS_LONG = bool(os.environ.get("KVTRAIL_LONG"))
FAULTY_SEEDS, HEALTHY_SEEDS = (10, 30) if IS_LONG else (3, 6)
FAULTY = {
    Fault.NVME_SLOW: ("TIER_SLOW", "nvme"),
    Fault.NVME_QUEUE: ("TIER_QUEUE", "nvme"),
    Fault.LONG_PREFILL: ("SCHED_QUEUE", None),
}


def plan(seed: int, fault: Fault) -> Plan:
    """A fault of 15 to 30 s that begins at 25 to 55 s."""
    start = 25.0 + (seed * 37) % 31
    return Plan(seed=seed, fault=fault, start_s=start, end_s=start + 15 + (seed * 7) % 16)


@pytest.mark.parametrize("seed", range(FAULTY_SEEDS))
@pytest.mark.parametrize("fault", FAULTY, ids=lambda fault: fault.value)
def test_fault(fault: Fault, seed: int) -> None:
    """The first verdict names the fault, in a window that is the fault's own to a few seconds."""
    run = simulate(plan(seed, fault))
    answer = attribute(run.table(), seed=seed)
    start, end = run.fault_window_ns

    assert answer.verdicts, answer.why_not
    assert FAULTY[fault] == (answer.verdicts[0].code, answer.verdicts[0].tier)
    assert answer.identified
    assert answer.window is not None
    assert abs(answer.window.start_ns - start) < 5 * SECOND
    assert abs(answer.window.end_ns - end) < 5 * SECOND


@pytest.mark.parametrize("seed", range(HEALTHY_SEEDS))
def test_healthy(seed: int) -> None:
    """A run in which nothing goes wrong gives no window and no verdict."""
    answer = attribute(simulate(Plan(seed=seed)).table(), seed=seed)

    assert answer.verdicts == ()
    assert answer.window is None
    assert answer.why_not


def test_no_conviction_without_a_lead() -> None:
    """Where the first cause leads in too few resamples, it is shown among the components, and nobody is convicted."""
    answer = attribute(simulate(Plan(seed=5, fault=Fault.NVME_SLOW)).table(), seed=5)

    assert not answer.identified
    assert answer.verdicts == ()
    assert answer.components[0].component.value == "storage_read"
    assert "storage_read leads in only" in (answer.why_not or "")


@pytest.fixture(scope="module", name="slow_answer")
def answer_of_slow_run(slow_run: Run) -> Attribution:
    """What is said of a run with a slow tier."""
    return attribute(slow_run.table(), seed=1)


def test_drills_are_not_read(slow_run: Run, slow_answer: Attribution) -> None:
    """Without what the drill says of itself, the answer is the same but for the seqs that it names."""
    stripped = attribute(stream_table(without_drills(slow_run.numbered())), seed=1)

    assert _without_events(slow_answer) == _without_events(stripped)


def _without_events(answer: Attribution) -> Attribution:
    """An answer whose verdicts name no events."""
    verdicts = tuple(msgspec.structs.replace(verdict, events=()) for verdict in answer.verdicts)
    return msgspec.structs.replace(answer, verdicts=verdicts)


def test_repeatable(slow_run: Run, slow_answer: Attribution) -> None:
    """The same events and seed give the same answer, in whatever order the rows come."""
    table = slow_run.table()
    backwards = table.take(list(range(table.num_rows))[::-1])

    assert slow_answer == attribute(backwards, seed=1)


def test_shape(slow_answer: Attribution) -> None:
    """The answer serialises to the published shape."""
    shown = msgspec.to_builtins(slow_answer)

    assert {
        *(
            "outcome",
            "window",
            "reference",
            "quantile",
            "excess_tail_ms",
            "excess_quantile_ms",
            "mix_ms",
            "components",
            "identified",
        ),
        *(
            "why_not",
            "blame",
            "exemplars",
            "exemplar_requests",
            "verdicts",
            "notes",
            "other_spikes",
            "measure",
            "clock_offset_ns",
            "schema",
            "device",
        ),
    } == set(shown)
    assert {"component", "tier", "excess_ms", "low_ms", "high_ms", "share"} == set(shown["components"][0])
    assert {"queue", "tenant", "kind", "waited_ns", "share"} == set(shown["blame"][0])
    assert {
        *("code", "tier", "tenant", "component", "share", "confidence", "basis", "window", "evidence", "events"),
        *("action", "also"),
    } == set(shown["verdicts"][0])
    assert (shown["schema"], shown["device"]) == (1, "cpu-emulated")


def test_sums(slow_answer: Attribution) -> None:
    """Components and mix add up to the excess of the tail; shares add up to one."""
    within_ms = sum(delta.excess_ms for delta in slow_answer.components)

    assert slow_answer.mix_ms is not None
    assert slow_answer.excess_tail_ms == pytest.approx(within_ms + slow_answer.mix_ms)
    assert sum(delta.share for delta in slow_answer.components) == pytest.approx(1.0)
    assert sum(row.share for row in slow_answer.blame) == pytest.approx(1.0)


def test_given_window(healthy_run: Run) -> None:
    """A window that was given is compared, and where it is no slower that is said."""
    answer = attribute(healthy_run.table(), (40 * SECOND, 60 * SECOND))

    assert answer.window is not None
    assert answer.excess_tail_ms is not None
    assert answer.verdicts == ()
    assert answer.why_not == "the window is less than 10 % or 5 ms slower than its reference"


def test_given_reference(slow_run: Run) -> None:
    """A reference that was given is used."""
    answer = attribute(slow_run.table(), (46 * SECOND, 64 * SECOND), (70 * SECOND, 90 * SECOND))

    assert answer.reference is not None
    assert (answer.reference.start_ns, answer.reference.end_ns) == (70 * SECOND, 90 * SECOND)
    assert answer.verdicts[0].evidence["reference"] == "given"


def test_nothing() -> None:
    """Of no events nothing is said."""
    assert attribute(stream_table([])).why_not == "no request arrived"


def test_too_many_unfinished(slow_run: Run) -> None:
    """Where more requests of the window never got a first token than the quantile allows, it is not known."""
    start, end = slow_run.fault_window_ns
    lost = [
        event
        for event in slow_run.numbered()
        if not (type(event).__name__ == "RequestFirstToken" and start < event.t_ns < end and event.seq % 5 == 0)
    ]
    renumbered = without_drills(lost)
    answer = attribute(stream_table(renumbered), (start, end))

    assert answer.why_not is not None
    assert " is not known: " in answer.why_not
    assert answer.verdicts == ()


def test_no_verdict_is_surer_than_what_was_recorded(slow_run: Run) -> None:
    """Where a part of the window is lost, its coverage bounds what is said of it."""
    start, end = slow_run.fault_window_ns
    events = [event for event in slow_run.numbered() if not start <= event.t_ns < end or event.t_ns % SECOND >= SECOND // 10]
    answer = attribute(stream_table(events), (start, end), seed=1)

    assert answer.window is not None
    assert answer.window.coverage < 0.95
    assert answer.verdicts
    assert all(verdict.confidence <= answer.window.coverage for verdict in answer.verdicts)
