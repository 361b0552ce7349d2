"""What the collector answers about alerts, as far as the page reads it."""

from __future__ import annotations

import msgspec


class AlertNow(msgspec.Struct, frozen=True):
    """A rule at one engine's tier; its figure is absent where nothing was observed."""

    engine: str
    tier: str
    phase: str
    value: float | None = None
    since_s: float = 0.0


class RuleNow(msgspec.Struct, frozen=True):
    """A rule, and its alerts."""

    name: str
    measure: str
    meaning: str
    raise_at: float
    clear_at: float
    severity: str
    action: str
    is_on: bool
    alerts: tuple[AlertNow, ...] = ()


class ActionNow(msgspec.Struct, frozen=True):
    """An action in force."""

    engine: str
    action: str
    expires_wall_ns: int
    effect: str
    rules: tuple[str, ...] = ()


class AuditRow(msgspec.Struct, frozen=True):
    """One thing that happened."""

    wall_ns: int
    engine: str
    what: str
    subject: str
    rule: str = ""
    detail: str = ""


class DeadLetter(msgspec.Struct, frozen=True):
    """A webhook that was given up."""

    wall_ns: int
    target: str
    engine: str
    attempts: int
    reason: str


class Alerts(msgspec.Struct, frozen=True):
    """Everything about alerts, now; what happened newest first."""

    wall_ns: int
    rules: tuple[RuleNow, ...] = ()
    actions: tuple[ActionNow, ...] = ()
    audit: tuple[AuditRow, ...] = ()
    dead_letters: tuple[DeadLetter, ...] = ()
    targets: tuple[str, ...] = ()


class Released(msgspec.Struct, frozen=True):
    """Whether an action was in force, and is ended now."""

    changed: bool
