"""Promises of kept answers: they hold for as long as what they were computed of, time included, and their number is bounded."""

from __future__ import annotations

import pytest
from kvtrail_collector import answers, diagnose_store
from kvtrail_collector.answers import Answers, AttributionQuestion
from kvtrail_collector.attribution_shapes import Attribution
from kvtrail_collector.diagnose_shapes import Verdicts
from kvtrail_collector.diagnose_store import VerdictKeeper, VerdictQuestion
from kvtrail_collector.loss import FRESH_NS
from kvtrail_collector.testing import memory_store

from tests.collector.frames import HEARD_NS, batch, span

MOST = 3


def codes(found: Verdicts) -> set[str]:
    """The codes of a diagnosis."""
    return {verdict.code for verdict in found.verdicts}


def test_what_was_on_its_way_is_lost_after_a_while() -> None:
    """Asked at once, the tail of a dead engine may be on its way; asked again later, it is missed, though nothing came."""
    with memory_store() as store:
        store.submit(batch(span(1, 40), produced=400)).result()
        keeper = VerdictKeeper(store, {})
        fresh = keeper.answer(VerdictQuestion(), None, HEARD_NS + 1)
        later = keeper.answer(VerdictQuestion(), None, HEARD_NS + 2 * FRESH_NS)

        assert "INGEST_LOSS" not in codes(fresh)
        assert "INGEST_LOSS" in codes(later)
        assert later is keeper.answer(VerdictQuestion(), None, HEARD_NS + 3 * FRESH_NS)


def test_few_diagnoses_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those asked last: the one asked longest ago is computed anew."""
    monkeypatch.setattr(diagnose_store, "MOST_KEPT", MOST)
    with memory_store() as store:
        store.submit(batch(span(1, 40))).result()
        keeper, late_ns = VerdictKeeper(store, {}), HEARD_NS + 2 * FRESH_NS
        first = keeper.answer(VerdictQuestion(seed=0), None, late_ns)
        found = [keeper.answer(VerdictQuestion(seed=seed), None, late_ns) for seed in range(1, MOST)]

        assert first is keeper.answer(VerdictQuestion(seed=0), None, late_ns)
        keeper.answer(VerdictQuestion(seed=MOST), None, late_ns)
        assert found[0] is not keeper.answer(VerdictQuestion(seed=1), None, late_ns)
        assert first is keeper.answer(VerdictQuestion(seed=0), None, late_ns)


def test_few_attributions_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same for what is explained from populations."""
    monkeypatch.setattr(answers, "MOST_KEPT", MOST)
    with memory_store() as store:
        store.submit(batch(span(1, 40))).result()
        own = Answers(store)
        found: list[Attribution] = [own.attribution(AttributionQuestion(seed=seed)) for seed in range(MOST + 1)]

        assert found[MOST] is own.attribution(AttributionQuestion(seed=MOST))
        assert found[0] is not own.attribution(AttributionQuestion(seed=0))
