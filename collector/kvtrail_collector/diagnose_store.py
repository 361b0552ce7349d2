"""Diagnosis of what a store holds, and its answers kept for as long as they hold."""

from __future__ import annotations

import threading
from typing import Final, NamedTuple

from kvtrail_collector.attribution_shapes import Attribution
from kvtrail_collector.detectors.judge import Thresholds
from kvtrail_collector.detectors.scene import Bounds, Scene
from kvtrail_collector.diagnose import diagnose
from kvtrail_collector.diagnose_shapes import Verdicts
from kvtrail_collector.loss import loss_of
from kvtrail_collector.loss_shapes import Loss
from kvtrail_collector.store import Store

MOST_KEPT: Final = 32


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
    """What is wrong in what a store holds. Blocks the calling thread, not the store; about 5 s for ten million events.

    Raises:
        StoreError: the store cannot be asked.
    """
    return _diagnosed(store, attribution, bounds, _loss(store, bounds, now_wall_ns), thresholds)


def _loss(store: Store, bounds: Bounds, now_wall_ns: int) -> Loss:
    """The balance of the streams that are judged, as of now. Cheap."""
    accounts = [one for one in store.accounts().values() if bounds.engine in {None, one.stream.engine}]
    return loss_of(accounts, now_wall_ns)


def _diagnosed(
    store: Store, attribution: Attribution | None, bounds: Bounds, loss: Loss, thresholds: Thresholds | None
) -> Verdicts:
    """Diagnose with a balance that is known."""
    with store.read() as cursor:
        return diagnose(Scene(cursor, loss, bounds), attribution, thresholds=thresholds)


class _Kept(NamedTuple):
    """An answer, and what it was computed of: time changes a balance where nothing is stored."""

    version: int
    loss: Loss
    answer: Verdicts


class VerdictKeeper:
    """Keeps the newest answers, `MOST_KEPT` of them. Any thread; two callers never compute at once."""

    def __init__(self, store: Store, thresholds: Thresholds) -> None:
        self._store = store
        self._thresholds = thresholds
        self._lock = threading.Lock()
        self._known: dict[VerdictQuestion, _Kept] = {}  # guarded by _lock; the one asked last stands last

    def answer(self, question: VerdictQuestion, attribution: Attribution | None, now_wall_ns: int) -> Verdicts:
        """The verdicts as of now. What was computed for the same version of the store and the same balance is given again."""
        with self._lock:
            version, loss = self._store.version, _loss(self._store, question.bounds, now_wall_ns)
            kept = self._known.pop(question, None)
            if kept is None or (kept.version, kept.loss) != (version, loss):
                found = _diagnosed(self._store, attribution, question.bounds, loss, self._thresholds)
                kept = _Kept(version, loss, found)
            current = [(asked, one) for asked, one in self._known.items() if one.version == version]
            self._known = dict([*current[-MOST_KEPT + 1 :], (question, kept)])
            return kept.answer
