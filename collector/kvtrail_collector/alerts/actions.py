"""Which actions each engine shall have: who wants what, what follows from it, and the orders that make it so. Pure.

An action stays in force while any rule wants it (it is latched: a rule wants it until its alert has ended, hold time and all).
Of two that contradict only the stricter is ordered: `gpu_only` covers `recompute` and `disable_tier`, a limit larger ones.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Final

from kvtrail_schema.degrade import Action, ActionKind, DegradeOrder, Desired

NS_S: Final = 1_000_000_000
_RENEW_AT: Final = 0.5
"""An action that goes on is ordered anew once so much of its time has passed."""
_RELEASE_S: Final = 60.0
"""So long a release is tried, and until the action has ended by itself where that is later."""
_COVERED: Final = frozenset({ActionKind.RECOMPUTE, ActionKind.DISABLE_TIER})


@dataclass(frozen=True, slots=True)
class Want:
    """A rule, or a person, that wants an action."""

    rule: str
    action: Action
    expires_s: float
    until_wall_ns: int | None = None
    """A person's wish ends then; a rule's when its alert does."""


@dataclass(frozen=True, slots=True)
class InForce:
    """An action that was ordered and not released."""

    engine: str
    action: Action
    version: int
    since_wall_ns: int
    ordered_wall_ns: int
    expires_wall_ns: int
    rules: tuple[str, ...]


@dataclass(slots=True)
class _Engine:
    """One engine's wishes, and what was ordered of it."""

    wants: dict[str, Want] = field(default_factory=dict)
    in_force: dict[str, InForce] = field(default_factory=dict)
    version: int = 0
    muted: set[str] = field(default_factory=set)
    """Rules whose action a person released: they want nothing until their alert has ended."""


def desired(wants: Iterable[Want]) -> dict[str, Action]:
    """What follows from wishes: never two that contradict, by text."""
    asked = {str(want.action): want.action for want in wants}
    if any(action.kind is ActionKind.GPU_ONLY for action in asked.values()):
        asked = {text: action for text, action in asked.items() if action.kind not in _COVERED}
    limits = [action.tokens for action in asked.values() if action.tokens is not None]
    return {text: action for text, action in asked.items() if action.tokens is None or action.tokens == min(limits)}


class ActionBook:
    """Used by the thread `kvtrail-alerts` alone. Each verb returns the orders that follow, those that apply before releases."""

    def __init__(self) -> None:
        self._engines: dict[str, _Engine] = {}
        self._last_version = 0
        """The largest of engines that were forgotten; those that come anew go on from it."""

    def want(self, engine: str, want: Want, now_wall_ns: int) -> list[DegradeOrder]:
        """Somebody wants an action. A rule whose action a person released is not heard."""
        own = self._engines.setdefault(engine, _Engine(version=self._last_version))
        if want.rule in own.muted:
            return []
        own.wants[want.rule] = want
        return self._settle(engine, own, now_wall_ns)

    def unwant(self, engine: str, rule: str, now_wall_ns: int) -> list[DegradeOrder]:
        """A rule's alert has ended."""
        own = self._engines.setdefault(engine, _Engine(version=self._last_version))
        own.wants.pop(rule, None)
        own.muted.discard(rule)
        return self._settle(engine, own, now_wall_ns)

    def release(self, engine: str, text: str, now_wall_ns: int) -> list[DegradeOrder]:
        """A person ends an action, whoever wants it; empty where it is not in force. It mutes rules, and no person."""
        own = self._engines.get(engine)
        if own is None or text not in own.in_force:
            return []
        gone = [want for want in own.wants.values() if str(want.action) == text]
        for want in gone:
            del own.wants[want.rule]
        own.muted.update(want.rule for want in gone if want.until_wall_ns is None)
        return self._settle(engine, own, now_wall_ns)

    def lapse(self, now_wall_ns: int) -> list[DegradeOrder]:
        """Let go of what a person wanted for a time that is over, and of engines of whom nothing is wanted."""
        orders: list[DegradeOrder] = []
        for engine, own in self._engines.items():
            over = [
                rule for rule, want in own.wants.items() if want.until_wall_ns is not None and want.until_wall_ns <= now_wall_ns
            ]
            for rule in over:
                del own.wants[rule]
            orders += self._settle(engine, own, now_wall_ns)
        for engine in [name for name, own in self._engines.items() if not (own.wants or own.in_force or own.muted)]:
            self._last_version = max(self._last_version, self._engines.pop(engine).version)
        return orders

    def renew(self, now_wall_ns: int) -> list[DegradeOrder]:
        """Order anew what goes on and would expire soon; nothing else follows from that."""
        orders: list[DegradeOrder] = []
        for engine, own in self._engines.items():
            due = [one for one in own.in_force.values() if _is_due(one, now_wall_ns)]
            orders += [self._apply(engine, own, one.action, now_wall_ns) for one in due]
        return orders

    def in_force(self) -> list[InForce]:
        """What is ordered now."""
        return [one for own in self._engines.values() for one in own.in_force.values()]

    def _settle(self, engine: str, own: _Engine, now_wall_ns: int) -> list[DegradeOrder]:
        """The orders from what is in force to what is wanted; nothing changes where that is the same."""
        target = desired(own.wants.values())
        orders = [self._apply(engine, own, action, now_wall_ns) for text, action in target.items() if text not in own.in_force]
        for text in [text for text in own.in_force if text not in target]:
            gone = own.in_force.pop(text)
            expires_wall_ns = max(now_wall_ns + int(_RELEASE_S * NS_S), gone.expires_wall_ns)
            version = _next_version(own, now_wall_ns)
            rule = ", ".join(gone.rules)
            orders.append(DegradeOrder(engine, gone.action, Desired.RELEASED, version, expires_wall_ns, rule))
        return orders

    def _apply(self, engine: str, own: _Engine, action: Action, now_wall_ns: int) -> DegradeOrder:
        """Order an action, for the first time or anew."""
        text = str(action)
        holders = [want for want in own.wants.values() if str(want.action) == text]
        span_ns = int(max(want.expires_s for want in holders) * NS_S)
        ends = [want.until_wall_ns for want in holders]
        last = max((end for end in ends if end is not None), default=0) if None not in ends else 0
        expires_wall_ns = min(now_wall_ns + span_ns, last) if last else now_wall_ns + span_ns
        rules = tuple(want.rule for want in holders)
        known = own.in_force.get(text)
        version = _next_version(own, now_wall_ns)
        made = InForce(engine, action, version, now_wall_ns, now_wall_ns, expires_wall_ns, rules)
        own.in_force[text] = made if known is None else replace(made, since_wall_ns=known.since_wall_ns)
        return DegradeOrder(engine, action, Desired.APPLIED, version, expires_wall_ns, ", ".join(rules))


def _is_due(one: InForce, now_wall_ns: int) -> bool:
    """Whether so much of an order's time has passed that it has to be given anew; also once the wall clock stepped back."""
    passed_ns = now_wall_ns - one.ordered_wall_ns
    return passed_ns < 0 or passed_ns >= int((one.expires_wall_ns - one.ordered_wall_ns) * _RENEW_AT)


def _next_version(own: _Engine, now_wall_ns: int) -> int:
    """Larger than any before, also those of a collector that ran before this one: milliseconds of wall time, at least."""
    own.version = max(own.version + 1, now_wall_ns // 1_000_000)
    return own.version
