"""What is so with alerts now, for whoever asks."""

from __future__ import annotations

from typing import Final

import duckdb

from kvtrail_collector.alerts.alerter import Alerter, AlertView
from kvtrail_collector.alerts.audit import last_audit, last_dead
from kvtrail_collector.alerts.measures import MEASURES
from kvtrail_collector.alerts.rules import Rule
from kvtrail_collector.alerts.shapes import ActionNow, AlertNow, Alerts, RuleNow

_MOST_DEAD: Final = 100
_NS_S: Final = 1_000_000_000


def alerts_now(alerter: Alerter, cursor: duckdb.DuckDBPyConnection, most: int, device: str | None) -> Alerts:
    """Everything about alerts. Two short questions to the store; the rest is in memory."""
    view = alerter.view()
    actions = tuple(
        ActionNow(one.engine, str(one.action), one.version, one.since_wall_ns, one.expires_wall_ns, one.rules, effect.value)
        for one, effect in view.in_force
    )
    return Alerts(
        rules=tuple(_rule(rule, view) for rule in alerter.rules),
        actions=actions,
        audit=last_audit(cursor, most),
        dead_letters=last_dead(cursor, _MOST_DEAD),
        targets=alerter.targets,
        webhooks_waiting=view.webhooks_waiting,
        rows_left_out=view.rows_left_out,
        subjects_refused=view.subjects_refused,
        wall_ns=view.wall_ns,
        device=device,
    )


def _rule(rule: Rule, view: AlertView) -> RuleNow:
    """One rule, with its alerts."""
    alerts = tuple(
        AlertNow(key.engine, key.tier, state.phase.value, state.value, (view.monotonic_ns - state.since_ns) / _NS_S)
        for key, state in view.states.items()
        if key.rule == rule.name
    )
    meaning = MEASURES[rule.measure].meaning
    own = (rule.raise_at, rule.clear_at, rule.window_s, rule.for_s, rule.hold_s, rule.severity.value, rule.action, rule.is_on)
    return RuleNow(rule.name, rule.measure, meaning, *own, alerts)
