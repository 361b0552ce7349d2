"""Promises of verdicts for alerts: each engine is judged once, however many ranks it has, and a defect ends nothing."""

import time

import pytest
from kvtrail_collector.alerts import verdict_watch
from kvtrail_collector.alerts.verdict_watch import LOOK_BACK_NS, VerdictWatch
from kvtrail_collector.detectors.scene import Bounds
from kvtrail_collector.diagnose_shapes import Verdicts
from kvtrail_collector.diagnose_store import diagnose_store
from kvtrail_collector.store import Store
from kvtrail_collector.testing import memory_store

from tests.collector.frames import HEARD_NS, batch, span

LONGEST_S = 20.0


class StandingClock:
    """A clock at the moment at which the batches of a test came."""

    def monotonic_ns(self) -> int:
        """Nothing here measures."""
        return 0

    def wall_ns(self) -> int:
        """A second after the batches."""
        return HEARD_NS + 1_000_000_000


def two_ranks(store: Store) -> None:
    """Two ranks of one engine, each with a hole that nobody accounts for."""
    for rank in (0, 1):
        for seqs in (span(1, 16), span(25, 40)):
            store.submit(batch(seqs, rank=rank)).result()


def test_an_engine_is_judged_once() -> None:
    """Its figures are those of one diagnosis of it, not one for each rank."""
    with memory_store() as store:
        two_ranks(store)
        watch = VerdictWatch(store, StandingClock(), {})
        watch.judge()
        asked = diagnose_store(store, None, Bounds(engine="engine"), StandingClock().wall_ns())
        codes = [verdict.code for verdict in asked.verdicts]

        assert codes
        assert {(f"verdict:{code}", "engine"): float(codes.count(code)) for code in codes} == watch.figures().by_subject


def test_what_runs_now_is_looked_at_whatever_its_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Epochs are drawn at random: the process heard of last is the one that runs, and its clock says how far to look back."""
    asked: list[Bounds] = []

    def noted(store: Store, found: None, bounds: Bounds, *others: object) -> Verdicts:
        """Note what is asked."""
        asked.append(bounds)
        return diagnose_store(store, found, bounds, *others)  # type: ignore[arg-type]  # passed on as they came

    monkeypatch.setattr(verdict_watch, "diagnose_store", noted)
    with memory_store() as store:
        store.submit(batch(span(1, 9_000), epoch=9)).result()
        store.submit(batch(span(1, 16), epoch=3, heard_ns=HEARD_NS + 1)).result()
        VerdictWatch(store, StandingClock(), {}).judge()

    assert [16 - LOOK_BACK_NS] == [bounds.start_ns for bounds in asked]


def test_a_defect_ends_no_verdicts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A judgement that fails in whatever way is followed by the next one."""
    left = [ZeroDivisionError("a defect")]

    def first_fails(*args: object) -> Verdicts:
        """Fail once."""
        if left:
            raise left.pop()
        return diagnose_store(*args)  # type: ignore[arg-type]  # passed on as they came

    monkeypatch.setattr(verdict_watch, "EVERY_S", 0.05)
    monkeypatch.setattr(verdict_watch, "diagnose_store", first_fails)
    with memory_store() as store:
        two_ranks(store)
        with VerdictWatch(store, StandingClock(), {}) as watch:
            until = time.monotonic() + LONGEST_S
            while not watch.figures().by_subject and time.monotonic() < until:
                time.sleep(0.02)

            assert watch.figures().by_subject
