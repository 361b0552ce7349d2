"""What the page of alerts shows, of one engine: pure, from the answer to lines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kvtrail_dashboards.alert_answers import ActionNow, Alerts, RuleNow
from kvtrail_dashboards.compute.ages import age
from kvtrail_dashboards.compute.figures import with_unit
from kvtrail_dashboards.compute.now import Mood, Tile

_NS_S: Final = 1_000_000_000
_FIRING: Final = frozenset({"firing", "clearing"})
BLIND: Final = "no figure"
"""The state of a rule that has nothing to judge by."""
_ORDER: Final = ("firing", "clearing", "pending", "quiet", BLIND)


@dataclass(frozen=True, slots=True)
class RuleLine:
    """One rule at one tier of the engine; figures with their units, nothing where none was seen."""

    rule: str
    tier: str
    state: str
    figure: str
    raise_at: str
    clear_at: str
    severity: str
    action: str
    meaning: str


@dataclass(frozen=True, slots=True)
class ActionLine:
    """One action in force, in a sentence."""

    action: str
    sentence: str
    is_stalled: bool


@dataclass(frozen=True, slots=True)
class AuditLine:
    """One thing that happened."""

    when: str
    what: str
    subject: str
    rule: str
    detail: str


@dataclass(frozen=True, slots=True)
class DeadLine:
    """One webhook that was given up."""

    when: str
    target: str
    attempts: int
    reason: str


def alert_tiles(alerts: Alerts, engine: str) -> tuple[Tile, ...]:
    """What fires, what is in force, what was not delivered."""
    rules = rule_lines(alerts, engine)
    firing = [line.rule for line in rules if line.state in _FIRING]
    blind = sum(line.state == BLIND for line in rules)
    actions = action_lines(alerts, engine)
    stalled = sum(line.is_stalled for line in actions)
    dead = len(dead_lines(alerts, engine))
    told = f"{stalled} without effect" if stalled else "each shown by events, or just asked for"
    return (
        Tile("Alerts that fire", f"{len(firing)}", _firing_told(firing, len(rules), blind), _firing_mood(firing, blind)),
        Tile("Actions in force", f"{len(actions)}", told if actions else "none", _mood(is_good=not stalled)),
        Tile("Webhooks given up", f"{dead}", "of the last hundred", _mood(is_good=not dead)),
    )


def rule_lines(alerts: Alerts, engine: str) -> tuple[RuleLine, ...]:
    """Rules that are on, what fires first; one that has no figure of this engine says so: it is not known to be quiet."""
    lines: list[RuleLine] = []
    for rule in alerts.rules:
        own = [alert for alert in rule.alerts if alert.engine == engine]
        states = [(alert.tier, alert.phase, alert.value) for alert in own] or [("", BLIND, None)]
        lines += [_line(rule, tier, _state(phase, value), value) for tier, phase, value in states if rule.is_on]
    return tuple(sorted(lines, key=lambda line: _ORDER.index(line.state) if line.state in _ORDER else len(_ORDER)))


def action_lines(alerts: Alerts, engine: str) -> tuple[ActionLine, ...]:
    """Actions in force of one engine."""
    return tuple(_action(one, alerts.wall_ns) for one in alerts.actions if one.engine == engine)


def audit_lines(alerts: Alerts, engine: str) -> tuple[AuditLine, ...]:
    """What happened with one engine, newest first."""
    rows = [row for row in alerts.audit if row.engine == engine]
    return tuple(
        AuditLine(age(row.wall_ns, alerts.wall_ns), row.what.replace("_", " "), row.subject, row.rule, row.detail)
        for row in rows
    )


def dead_lines(alerts: Alerts, engine: str) -> tuple[DeadLine, ...]:
    """Webhooks about one engine that were given up, newest first."""
    rows = [row for row in alerts.dead_letters if row.engine == engine]
    return tuple(DeadLine(age(row.wall_ns, alerts.wall_ns), row.target, row.attempts, row.reason) for row in rows)


def _line(rule: RuleNow, tier: str, state: str, figure: float | None) -> RuleLine:
    """One rule at one tier."""
    seen, raise_at, clear_at = (_told(rule.measure, value) for value in (figure, rule.raise_at, rule.clear_at))
    return RuleLine(rule.name, tier, state, seen, raise_at, clear_at, rule.severity, rule.action, rule.meaning)


def _state(phase: str, figure: float | None) -> str:
    """The state of a rule at a tier: one that fires does so also while no figure comes, others know nothing without."""
    return BLIND if figure is None and phase == "quiet" else phase


def _firing_told(firing: list[str], rules: int, blind: int) -> str:
    """What fires, of how many, and how many have nothing to judge by."""
    named = ", ".join(dict.fromkeys(firing)) or "none"
    unknown = f", of which {blind:,} have no figure" if blind else ""
    return f"{named}, of {rules:,} rules{unknown}"


def _firing_mood(firing: list[str], blind: int) -> Mood:
    """Good only where every rule has a figure, and none fires."""
    return Mood.BAD if firing else Mood.PLAIN if blind else Mood.GOOD


def _told(measure: str, value: float | None) -> str:
    """A figure of a measure."""
    return "" if value is None else with_unit(measure, value)


def _action(one: ActionNow, now_wall_ns: int) -> ActionLine:
    """One action."""
    left_s = max(one.expires_wall_ns - now_wall_ns, 0) / _NS_S
    wanted = f", wanted by {', '.join(one.rules)}" if one.rules else ""
    sentence = f"{one.action}: {one.effect}, ends in {left_s:.0f} s unless it is ordered anew{wanted}"
    return ActionLine(one.action, sentence, one.effect == "stalled")


def _mood(*, is_good: bool) -> Mood:
    """How a tile looks."""
    return Mood.GOOD if is_good else Mood.BAD
