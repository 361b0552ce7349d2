"""Which webhook goes to which target. Used by the thread `kvtrail-alerts` alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from kvtrail_schema.degrade import DegradeOrder, Desired, parse_action

from kvtrail_collector.alerts.bodies import alert_body, manager_body, order_body, template_body
from kvtrail_collector.alerts.delivery import Delivery, Outgoing
from kvtrail_collector.alerts.evaluate import AlertKey, Change
from kvtrail_collector.alerts.lmcache import can
from kvtrail_collector.alerts.state import Turn
from kvtrail_collector.alerts.targets import Form, Target

ALERT_EXPIRES_S: Final = 3_600
"""What people are told may come late."""
ORDER_EXPIRES_S: Final = 10
"""What an engine is told must not: it is ordered anew while it is wanted. A release is not, so it is tried to its end."""
_NS_S: Final = 1_000_000_000


class Dispatch:
    """Writes each webhook once a target; remembers when alerts began that have not ended."""

    def __init__(self, targets: Sequence[Target], delivery: Delivery, new_id: Callable[[], str]) -> None:
        self._targets = tuple(targets)
        self._delivery = delivery
        self._new_id = new_id
        self._fired_wall_ns: dict[AlertKey, int] = {}

    def order(self, order: DegradeOrder, now_wall_ns: int, *, is_told: bool = True) -> None:
        """To every target that takes orders to this engine."""
        soon_wall_ns = now_wall_ns + ORDER_EXPIRES_S * _NS_S
        is_release = order.state is Desired.RELEASED
        expires_wall_ns = order.expires_wall_ns if is_release else min(order.expires_wall_ns, soon_wall_ns)
        text = str(order.action)
        for target in self._targets:
            if _takes_order(target, order.engine, text):
                is_template = target.form is Form.TEMPLATE
                body = template_body(target.body, order) if is_template else order_body(order, now_wall_ns)
                self._delivery.put(target, Outgoing(self._new_id(), order.engine, text, body, expires_wall_ns, is_told))

    def takes(self, engine: str, text: str) -> bool:
        """Whether any target would be sent an order of this action to this engine."""
        return any(_takes_order(target, engine, text) for target in self._targets)

    def is_told_of(self, engine: str) -> bool:
        """Whether an agent is among those who take orders to an engine: it says by events what it does, others do not."""
        return any(target.form is Form.ORDERS and target.takes(engine) for target in self._targets)

    def alert(self, change: Change, now_wall_ns: int) -> None:
        """To every target that takes alerts of this engine."""
        is_fired = change.turn is Turn.FIRED
        fired_wall_ns = self._fired_wall_ns.setdefault(change.key, now_wall_ns)
        if not is_fired:
            del self._fired_wall_ns[change.key]
        expires_wall_ns = now_wall_ns + ALERT_EXPIRES_S * _NS_S
        for target in self._targets:
            if not target.takes(change.key.engine):
                continue
            if target.form is Form.ALERTS:
                body = alert_body(change, now_wall_ns)
                self._delivery.put(target, Outgoing(self._new_id(), change.key.engine, "", body, expires_wall_ns))
            elif target.form is Form.ALERTMANAGER:
                body = manager_body(change, target.name, fired_wall_ns, now_wall_ns)
                self._delivery.put(target, Outgoing(self._new_id(), change.key.engine, "", body, expires_wall_ns))


def _takes_order(target: Target, engine: str, text: str) -> bool:
    """Whether a target is sent orders of an action to an engine."""
    if not target.takes(engine):
        return False
    match target.form:
        case Form.ORDERS:
            return True
        case Form.TEMPLATE:
            return not target.actions or text in target.actions
        case Form.LMCACHE:
            return can(parse_action(text)) and (not target.actions or text in target.actions)
        case _:
            return False
