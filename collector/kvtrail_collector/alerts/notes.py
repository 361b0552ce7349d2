"""What is written down of each thing that happens. Pure."""

from __future__ import annotations

from typing import Final

from kvtrail_schema.degrade import DegradeOrder, Desired

from kvtrail_collector.alerts.attempt import Outcome
from kvtrail_collector.alerts.audit import What
from kvtrail_collector.alerts.delivery import Ended
from kvtrail_collector.alerts.effects import Effect, Finding
from kvtrail_collector.alerts.evaluate import Change
from kvtrail_collector.alerts.shapes import AuditRow
from kvtrail_collector.alerts.state import Turn

_OF_EFFECT: Final = {Effect.APPLIED: What.APPLIED, Effect.STALLED: What.STALLED}
_DETAIL_CHARACTERS: Final = 300


def note_of_change(change: Change, now_wall_ns: int) -> AuditRow:
    """An alert that fired or ended."""
    what = What.FIRED if change.turn is Turn.FIRED else What.CLEARED
    figure = "no figure" if change.value is None else f"{change.value:.6g}"
    detail = f"{change.rule.measure} {figure}; raise {change.rule.raise_at:g}, clear {change.rule.clear_at:g}"
    return AuditRow(now_wall_ns, change.key.engine, what.value, change.key.tier, change.rule.name, detail=detail)


def note_of_order(order: DegradeOrder, why: What, now_wall_ns: int) -> AuditRow:
    """An order that was given; of one that releases, the same whoever wanted it, but for a person."""
    is_release = order.state is Desired.RELEASED
    what = What.RELEASED if is_release and why is not What.RELEASED_BY_HAND else why
    detail = "" if is_release else f"expires at {order.expires_wall_ns}"
    return AuditRow(now_wall_ns, order.engine, what.value, str(order.action), order.rule, order.version, detail)


def note_of_effect(finding: Finding) -> AuditRow:
    """What events say of an action."""
    what = What.ENDED_BY_ENGINE if finding.effect is None else _OF_EFFECT[finding.effect]
    return AuditRow(finding.wall_ns, finding.engine, what.value, finding.action, detail=finding.detail)


def note_of_delivery(ended: Ended, now_wall_ns: int) -> AuditRow:
    """A webhook that was delivered or given up."""
    what = What.DELIVERED if ended.outcome is Outcome.DELIVERED else What.UNDELIVERED
    detail = f"{ended.target.name}, {ended.attempts} attempts, {ended.item.id}: {ended.detail}"[:_DETAIL_CHARACTERS]
    return AuditRow(now_wall_ns, ended.item.engine, what.value, ended.item.subject, detail=detail)
