"""What `GET /v1/alerts` and `kvtrail alerts` answer, in the shape that both publish; loads no database."""

from __future__ import annotations

import msgspec


class AuditRow(msgspec.Struct, frozen=True):
    """One thing that happened; `subject` is an action, or for an alert its tier."""

    wall_ns: int
    engine: str
    what: str
    subject: str
    rule: str = ""
    version: int | None = None
    detail: str = ""


class DeadLetter(msgspec.Struct, frozen=True):
    """A webhook that was given up."""

    wall_ns: int
    target: str
    webhook_id: str
    engine: str
    attempts: int
    reason: str


class AlertNow(msgspec.Struct, frozen=True):
    """A rule at one engine (and tier, where it is a tier's): its phase, and the last figure."""

    engine: str
    tier: str
    phase: str
    value: float | None
    since_s: float


class RuleNow(msgspec.Struct, frozen=True):
    """A rule, and how it stands at each engine of which there are figures."""

    name: str
    measure: str
    meaning: str
    raise_at: float
    clear_at: float
    window_s: int
    for_s: float
    hold_s: float
    severity: str
    action: str
    is_on: bool
    alerts: tuple[AlertNow, ...]


class ActionNow(msgspec.Struct, frozen=True):
    """An action in force: by which rules, until when unless it is ordered anew, and whether events show it."""

    engine: str
    action: str
    version: int
    since_wall_ns: int
    expires_wall_ns: int
    rules: tuple[str, ...]
    effect: str


class Alerts(msgspec.Struct, frozen=True):
    """Everything about alerts, now; `audit` and `dead_letters` newest first."""

    rules: tuple[RuleNow, ...]
    actions: tuple[ActionNow, ...]
    audit: tuple[AuditRow, ...]
    dead_letters: tuple[DeadLetter, ...]
    targets: tuple[str, ...]
    webhooks_waiting: int
    rows_left_out: int
    subjects_refused: int
    wall_ns: int
    device: str | None = None
    schema: int = 1


class ActionAsked(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A person's wish: an action of an engine; `seconds` for how long, where it is asked for."""

    engine: str
    action: str
    seconds: float = 300.0


class ActionAnswer(msgspec.Struct, frozen=True):
    """What came of a wish."""

    engine: str
    action: str
    changed: bool
    device: str | None = None
    schema: int = 1
