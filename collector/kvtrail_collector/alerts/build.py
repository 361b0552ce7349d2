"""Puts the parts of alerts together, as the settings ask for. Starts nothing."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

from kvtrail_schema.clock import Clock

from kvtrail_collector.alerts.alerter import Alerter
from kvtrail_collector.alerts.evaluate import Asked
from kvtrail_collector.alerts.file import load_alerts
from kvtrail_collector.alerts.post import make_post
from kvtrail_collector.alerts.verdict_watch import VerdictWatch
from kvtrail_collector.detectors.thresholds import load_thresholds
from kvtrail_collector.invariants.watch import InvariantWatch
from kvtrail_collector.settings import Settings
from kvtrail_collector.store import Store


class Alerting(NamedTuple):
    """What watches a store; the second is there only where a rule names a verdict. The caller runs the third beside them."""

    alerter: Alerter
    verdicts: VerdictWatch | None
    invariants: InvariantWatch


def make_alerting(settings: Settings, store: Store, clock: Clock) -> Alerting:
    """The parts, from the settings.

    Raises:
        SettingsInvalid: the file of alerts, or of thresholds, cannot be used.
    """
    given = load_alerts(Path(settings.alerts_file) if settings.alerts_file else None)
    wants_verdicts = any(rule.code and rule.is_on for rule in given.rules)
    thresholds = load_thresholds(settings.thresholds_file)
    invariants = InvariantWatch(store, clock, thresholds)
    watch = VerdictWatch(store, clock, thresholds) if wants_verdicts else None
    figures = None if watch is None else partial(_figures, watch, invariants)
    alerter = Alerter(store, clock, given, post=make_post(), new_id=_new_id, verdicts=figures)
    return Alerting(alerter, watch, invariants)


def _figures(watch: VerdictWatch, invariants: InvariantWatch) -> Asked:
    """Verdicts that were judged lately, and those on invariants, which are known within a second or two."""
    return Asked({**invariants.recent(), **watch.figures().by_subject})


@contextmanager
def running(alerting: Alerting) -> Iterator[None]:
    """Watch, until the block ends."""
    with ExitStack() as stack:
        if alerting.verdicts is not None:
            stack.enter_context(alerting.verdicts)
        stack.enter_context(alerting.alerter)
        yield


def _new_id() -> str:
    """An id for a webhook, the same on each attempt."""
    return f"msg_{secrets.token_hex(16)}"
