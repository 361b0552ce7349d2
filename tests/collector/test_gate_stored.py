"""A gate reads what is stored: what runs were like, those that hang and give up among them, and which codes count."""

from __future__ import annotations

import pytest
from kvtrail_collector.errors import NotFound, QuestionInvalid
from kvtrail_collector.gate_shapes import Condition, Gate, GateResult
from kvtrail_collector.gate_side import Side, side_of
from kvtrail_collector.gate_store import INVARIANTS, Run, gate_runs, parse_run
from kvtrail_collector.store import Store
from kvtrail_collector.testing import memory_store
from kvtrail_schema.events import Event

from tests.collector.frames import HEARD_NS, events_batch
from tests.collector.gate_runs import EVERY_NS, MS, TPOT_NS, TTFT_NS, Fate, collision, run

LATER_NS = HEARD_NS + 60_000_000_000
SOUND = [Fate.FINISHED] * 600


def stored(store: Store, events: list[Event], engine: str = "engine") -> None:
    """Store a run."""
    store.submit(events_batch(events, engine=engine)).result()


def side(fates: list[Fate]) -> Side:
    """What a gate reads of a run."""
    with memory_store() as store:
        stored(store, run(fates))
        with store.read() as cursor:
            return side_of(cursor, [account.stream_id for account in store.accounts().values()])


def gate(candidate: list[Event]) -> Gate:
    """A candidate against a sound baseline, both of one store."""
    with memory_store() as store:
        stored(store, run(SOUND), "old")
        stored(store, candidate, "new")
        return gate_runs(Run(store, "old"), Run(store, "new"), LATER_NS, {})


def named(found: Gate, name: str) -> Condition:
    """One condition."""
    return next(condition for condition in found.conditions if condition.name == name)


def test_a_side_is_what_its_events_say() -> None:
    """Every fate once: counts, latencies with the time so far of those that never got there, and the events behind them."""
    found = side([Fate.FINISHED, Fate.REJECTED, Fate.GIVEN_UP, Fate.CUT, Fate.HANGING, Fate.FINISHED])
    end_ns = 5 * EVERY_NS + TTFT_NS + 5 + 10 * TPOT_NS

    assert (6, 1, 3, 2) == (found.requests, found.rejected, found.unanswered, found.censored)
    assert [TTFT_NS, 50 * MS, TTFT_NS + 3, end_ns - 4 * EVERY_NS, TTFT_NS + 5] == found.ttft_ns.tolist()
    assert [TPOT_NS, TPOT_NS] == found.tpot_ns.tolist()
    assert 3 == len(found.hanging)
    assert 5 == len(found.slowest)
    assert found.hanging[:2] == found.slowest[:2]


def test_a_sound_run_passes() -> None:
    """Equal runs pass in every condition."""
    found = gate(run(SOUND))

    assert {GateResult.PASS} == {condition.result for condition in found.conditions}
    assert named(found, "ttft_p50_ratio").baseline == named(found, "ttft_p50_ratio").candidate


def test_a_slower_run_fails() -> None:
    """Half as long again to the first token and for each token."""
    found = gate(run(SOUND, slower=1.5))

    assert GateResult.FAIL is found.result
    assert GateResult.FAIL is named(found, "tpot_p50_ratio").result


def test_a_run_that_hangs_or_is_given_up_fails() -> None:
    """However fast those are that got there; and it shows which ones did not."""
    for fate in (Fate.HANGING, Fate.GIVEN_UP, Fate.CUT):
        found = gate(run([Fate.FINISHED, fate] * 300))
        condition = named(found, "unanswered_share")

        assert GateResult.FAIL is found.result
        assert (GateResult.FAIL, 0.0, 0.5, 5) == (
            condition.result,
            condition.baseline,
            condition.candidate,
            len(condition.events),
        )


def test_a_tail_that_nobody_saw_is_undecided() -> None:
    """Where a tenth never had a first token, the ninety-fifth percentile is not known; the median is."""
    found = gate(run(([Fate.FINISHED] * 9 + [Fate.HANGING]) * 60))

    assert GateResult.UNDECIDED is named(found, "ttft_p95_ratio").result
    assert GateResult.PASS is named(found, "ttft_p50_ratio").result


def test_an_interval_across_the_threshold_is_undecided() -> None:
    """Four refusals in six hundred may be more than one in a hundred: neither passed nor failed."""
    condition = named(gate(run([*SOUND[:596], *[Fate.REJECTED] * 4])), "rejected_share")

    assert condition.high is not None
    assert condition.high > condition.threshold
    assert GateResult.UNDECIDED is condition.result


def test_what_is_no_fault_of_a_candidate_does_not_fail_it() -> None:
    """One hash in two namespaces is told by diagnosing, and is no violation."""
    found = gate(run(SOUND, beside=collision()))

    assert GateResult.PASS is named(found, "invariants").result
    assert {"NAMESPACE_VIOLATION", "CORRUPT_BLOCK", "ACCOUNTING_INVALID", "GAP", "REFCOUNT_NEGATIVE"} < INVARIANTS
    assert not {"HASH_COLLISION", "CLOCK_STEP", "SCHEMA_UNKNOWN", "CONFIG_NOT_ACTIVE"} & INVARIANTS


def test_a_run_is_named_as_it_is_shown() -> None:
    """Hexadecimal as people see it, decimal as JSON has it, and of digits that may be either the one that is stored."""
    with memory_store() as store:
        for epoch in (0x1F, 0x12, 34):
            store.submit(events_batch(run(SOUND[:1]), engine="chat@home", epoch=epoch)).result()
        stored(store, run(SOUND[:1]), "plain")

        assert [0x1F, 0x1F, 31] == [parse_run(store, f"chat@home@{text}").epoch for text in ("1f", f"{0x1F:016x}", "31")]
        assert [0x12, 34] == [parse_run(store, f"chat@home@{text}").epoch for text in ("12", "34")]
        assert (None, "chat@home") == (parse_run(store, "chat@home").epoch, parse_run(store, "chat@home").engine)
        with pytest.raises(QuestionInvalid, match="as `kvtrail loss` shows it"):
            parse_run(store, "plain@newest")
        with pytest.raises(NotFound, match="name one that is: chat@home@0000000000000012"):
            parse_run(store, "plain@99").accounts()
