"""Puts the parts of alerts together, as the settings ask for. Starts nothing."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from kvtrail_schema.clock import Clock

from kvtrail_collector.alerts.alerter import Alerter
from kvtrail_collector.alerts.file import load_alerts
from kvtrail_collector.alerts.post import make_post
from kvtrail_collector.alerts.verdict_watch import VerdictWatch
from kvtrail_collector.detectors.thresholds import load_thresholds
from kvtrail_collector.settings import Settings
from kvtrail_collector.store import Store


class Alerting(NamedTuple):
    """What watches a store; the second is there only where a rule names a verdict."""

    alerter: Alerter
    verdicts: VerdictWatch | None


def make_alerting(settings: Settings, store: Store, clock: Clock) -> Alerting:
    """The parts, from the settings.

    Raises:
        SettingsInvalid: the file of alerts, or of thresholds, cannot be used.
    """
    given = load_alerts(Path(settings.alerts_file) if settings.alerts_file else None)
    wants_verdicts = any(rule.code and rule.is_on for rule in given.rules)
    watch = VerdictWatch(store, clock, load_thresholds(settings.thresholds_file)) if wants_verdicts else None
    figures = None if watch is None else watch.figures
    return Alerting(Alerter(store, clock, given, post=make_post(), new_id=_new_id, verdicts=figures), watch)


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
