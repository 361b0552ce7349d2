"""Diagnosis of what a store holds, and its answer kept for as long as the store does not change."""

from __future__ import annotations

import threading
from typing import NamedTuple

from kvtrail_collector.attribution_shapes import Attribution
from kvtrail_collector.detectors.judge import Thresholds
from kvtrail_collector.detectors.scene import Bounds, Scene
from kvtrail_collector.diagnose import diagnose
from kvtrail_collector.diagnose_shapes import Verdicts
from kvtrail_collector.loss import loss_of
from kvtrail_collector.loss_shapes import Loss
from kvtrail_collector.store import Store


class VerdictQuestion(NamedTuple):
    """Which events to judge, and the seed of what is drawn."""

    bounds: Bounds = Bounds()
    seed: int = 0


def diagnose_store(
    store: Store,
    attribution: Attribution | None,
    bounds: Bounds,
    now_wall_ns: int,
    thresholds: Thresholds | None = None,
) -> Verdicts:
    """What is wrong in what a store holds. Blocks the calling thread, not the store; about 2 s for ten million events.

    Raises:
        StoreError: the store cannot be asked.
    """
    accounts = [one for one in store.accounts().values() if bounds.engine in {None, one.stream.engine}]
    loss: Loss = loss_of(accounts, now_wall_ns)
    with store.read() as cursor:
        return diagnose(Scene(cursor, loss, bounds), attribution, thresholds=thresholds)


class VerdictKeeper:
    """Keeps the newest answer to each question. Any thread; two callers never compute at once."""

    def __init__(self, store: Store, thresholds: Thresholds) -> None:
        self._store = store
        self._thresholds = thresholds
        self._lock = threading.Lock()
        self._known: dict[VerdictQuestion, tuple[int, Verdicts]] = {}  # guarded by _lock

    def answer(self, question: VerdictQuestion, attribution: Attribution | None, now_wall_ns: int) -> Verdicts:
        """The verdicts as of now. What was computed for the same version of the store is given again."""
        with self._lock:
            version = self._store.version
            known = self._known.get(question)
            if known is not None and known[0] == version:
                return known[1]
            answer = diagnose_store(self._store, attribution, question.bounds, now_wall_ns, self._thresholds)
            self._known = {asked: kept for asked, kept in self._known.items() if kept[0] == version}
            self._known[question] = (version, answer)
            return answer
