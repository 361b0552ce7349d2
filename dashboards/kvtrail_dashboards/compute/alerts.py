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
    actions = action_lines(alerts, engine)
    stalled = sum(line.is_stalled for line in actions)
    dead = len(dead_lines(alerts, engine))
    told = f"{stalled} without effect" if stalled else "each shown by events, or just asked for"
    return (
        _firing_tile(rules),
        Tile("Actions in force", f"{len(actions)}", told if actions else "none", _mood(len(actions), bad=stalled)),
        Tile("Webhooks given up", f"{dead}", _webhooks_told(alerts, dead), _mood(len(alerts.targets), bad=dead)),
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


def _firing_tile(rules: tuple[RuleLine, ...]) -> Tile:
    """What fires, of how many, and how many have nothing to judge by; good only where each has a figure, and none fires."""
    firing = [line.rule for line in rules if line.state in _FIRING]
    blind = sum(line.state == BLIND for line in rules)
    named = ", ".join(dict.fromkeys(firing)) or "none"
    unknown = f", of which {blind:,} have no figure" if blind else ""
    mood = Mood.PLAIN if blind and not firing else _mood(len(rules), bad=len(firing))
    return Tile("Alerts that fire", f"{len(firing)}", f"{named}, of {len(rules):,} rules{unknown}", mood)


def _webhooks_told(alerts: Alerts, dead: int) -> str:
    """Of how many, or that there is nobody to tell."""
    return "of the last hundred" if alerts.targets or dead else "no target is named"


def _told(measure: str, value: float | None) -> str:
    """A figure of a measure."""
    return "" if value is None else with_unit(measure, value)


def _action(one: ActionNow, now_wall_ns: int) -> ActionLine:
    """One action."""
    left_s = max(one.expires_wall_ns - now_wall_ns, 0) / _NS_S
    wanted = f", wanted by {', '.join(one.rules)}" if one.rules else ""
    sentence = f"{one.action}: {one.effect}, ends in {left_s:.0f} s unless it is ordered anew{wanted}"
    return ActionLine(one.action, sentence, one.effect == "stalled")


def _mood(count: int, *, bad: int) -> Mood:
    """How a tile looks of which so many are bad; of nothing that none is bad is no good news."""
    return Mood.BAD if bad else Mood.GOOD if count else Mood.PLAIN
