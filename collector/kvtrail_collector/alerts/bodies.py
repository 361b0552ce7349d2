"""What stands in a webhook: an order, an alert, the same as Alertmanager writes it, or a template filled in. Pure."""

from __future__ import annotations

import hashlib
import re
from datetime import UTC, datetime
from typing import Final

import msgspec
from kvtrail_schema.degrade import ORDER_TYPE, DegradeOrder, OrderBody

from kvtrail_collector.alerts.evaluate import Change
from kvtrail_collector.alerts.state import Turn

_NEVER: Final = "0001-01-01T00:00:00Z"
_ALERT_TYPE: Final = "kvtrail.alert"
_PLACE: Final = re.compile(r"\$(engine|action|state|version|rule)\b")
_NS_S: Final = 1_000_000_000


class AlertBody(msgspec.Struct, frozen=True):
    """An alert that fired or ended."""

    rule: str
    engine: str
    tier: str
    severity: str
    state: str
    value: float | None
    measure: str


class _Alert(msgspec.Struct, frozen=True):
    """The body of a webhook with an alert."""

    type: str
    timestamp: str
    data: AlertBody


class _ManagerAlert(msgspec.Struct, frozen=True, rename="camel"):
    """One alert as Alertmanager writes it."""

    status: str
    labels: dict[str, str]
    annotations: dict[str, str]
    starts_at: str
    ends_at: str
    generator_url: str = msgspec.field(name="generatorURL", default="")
    fingerprint: str = ""


class _Manager(msgspec.Struct, frozen=True, rename="camel"):
    """The body of Alertmanager's webhook, version 4."""

    version: str
    group_key: str
    truncated_alerts: int
    status: str
    receiver: str
    group_labels: dict[str, str]
    common_labels: dict[str, str]
    common_annotations: dict[str, str]
    external_url: str = msgspec.field(name="externalURL")
    alerts: tuple[_ManagerAlert, ...]


def order_body(order: DegradeOrder, now_wall_ns: int) -> bytes:
    """An order in the form of Standard Webhooks."""
    return msgspec.json.encode(OrderBody(ORDER_TYPE, _moment(now_wall_ns), order))


def alert_body(change: Change, now_wall_ns: int) -> bytes:
    """An alert in the form of Standard Webhooks."""
    rule, key = change.rule, change.key
    state = "firing" if change.turn is Turn.FIRED else "resolved"
    data = AlertBody(rule.name, key.engine, key.tier, rule.severity.value, state, change.value, rule.measure)
    return msgspec.json.encode(_Alert(_ALERT_TYPE, _moment(now_wall_ns), data))


def manager_body(change: Change, receiver: str, fired_wall_ns: int, now_wall_ns: int) -> bytes:
    """An alert in the form of Alertmanager's webhooks: a group of one."""
    rule, key = change.rule, change.key
    labels = {"alertname": rule.name, "engine": key.engine, "severity": rule.severity.value}
    labels |= {"tier": key.tier} if key.tier else {}
    text = f"{rule.measure} is {'without a figure' if change.value is None else format(change.value, '.6g')}"
    notes = {"summary": text, "action": rule.action} if rule.action else {"summary": text}
    is_firing = change.turn is Turn.FIRED
    status, group = ("firing" if is_firing else "resolved"), "/".join(key)
    ended = _NEVER if is_firing else _moment(now_wall_ns)
    fingerprint = hashlib.sha256(group.encode()).hexdigest()[:16]
    alert = _ManagerAlert(status, labels, notes, _moment(fired_wall_ns), ended, fingerprint=fingerprint)
    return msgspec.json.encode(_Manager("4", group, 0, status, receiver, labels, labels, notes, "", (alert,)))


def template_body(body: str, order: DegradeOrder) -> bytes:
    """A template with the values of an order, each as JSON writes it, in one pass: no value is looked at again."""
    values: dict[str, object] = {
        "engine": order.engine,
        "action": str(order.action),
        "state": order.state.value,
        "version": order.version,
        "rule": order.rule,
    }
    return _PLACE.sub(lambda found: msgspec.json.encode(values[found[1]]).decode(), body).encode()


def _moment(wall_ns: int) -> str:
    """A moment as RFC 3339 writes it."""
    return datetime.fromtimestamp(wall_ns / _NS_S, tz=UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
